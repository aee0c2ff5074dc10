#pragma once

// Facts of the Python files of a project in one file: thousands of small files would cost more to open
// than to analyse. New facts are appended, later records win, and what no longer counts is dropped when
// it outweighs the rest. Safe under several runs at a time: each appends whole segments under a lock.

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/cache/codec.hpp"
#include "analyzer/cache/file_state.hpp"

namespace mp::lint {

// What a record says of its file besides the facts.
struct PackedFile {
    std::string_view path;
    std::string_view module;
    FileId id;  // mtime_ns 0: too fresh to be trusted, compare the content
    std::uint64_t hash = 0;
    bool may_suppress = true;                  // its text may hold a suppression comment
    bool has_facts = true;                     // else nobody has needed them yet
    bool relevant = true;                      // a tree would show anything
    bool wanted = true;                        // its own text speaks of precision
    std::vector<std::uint64_t> imports{};      // hashes of the names it imports, sorted
    std::vector<std::string_view> mentions{};  // names of configuration files its code gives
};

void write_record(SegmentWriter&, const PackedFile&, const Unit&);
PackedFile read_head(RecordReader&);

class FactsPack {
public:
    // Opened when it is first asked for a file. Never an error: one that is damaged or not there is empty.
    FactsPack(std::string directory, std::string path)
        : directory_(std::move(directory)), path_(std::move(path)) {}
    ~FactsPack();
    FactsPack(const FactsPack&) = delete;
    FactsPack& operator=(const FactsPack&) = delete;

    // nullptr: not known. The views live as long as the pack; a pointer is good until the next save().
    const PackedFile* find(std::string_view path);
    // The facts of a file that find() has found. May be asked on several threads at a time, for another
    // file on each.
    Unit read(std::string_view path);
    // Reads the facts of one more file that speaks of precision, for a read() that is likely to come.
    // False when there is none left.
    bool read_ahead();

    void add(std::string segment) { added_.push_back(std::move(segment)); }
    // Writes what was added, which find() knows from then on; false: errno says why.
    bool save();

private:
    struct Record {
        PackedFile file;
        std::size_t segment = 0;
        std::string_view facts;
        std::optional<Unit> ahead{};
    };

    void open();
    void map();
    Unit read(const Record&);
    void index(std::string_view bytes);
    bool append();
    bool rewrite();

    std::string directory_;
    std::string path_;
    bool opened_ = false;
    void* mapping_ = nullptr;
    std::size_t length_ = 0;
    bool damaged_ = false;
    std::size_t all_records_ = 0;
    std::size_t ahead_ = 0;  // files before this one, as they were met, have been read ahead
    std::deque<Segment> segments_;
    std::unordered_map<std::string_view, Record> records_;
    std::vector<Record*> order_;  // as they were met
    std::vector<std::string> added_;
    std::deque<std::string> saved_;  // ... since it was opened
    std::size_t indexed_ = 0;        // of those
};

}  // namespace mp::lint
