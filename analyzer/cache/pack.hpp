#pragma once

// Facts of the Python files of a project in one file: thousands of small files would cost more to open
// than to analyse. New facts are appended, later records win, and what no longer counts is dropped when
// it outweighs the rest. Safe under several runs at a time: each appends whole segments under a lock.

#include <string>
#include <string_view>
#include <unordered_map>
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
    bool may_suppress = true;  // its text may hold a suppression comment
    bool has_facts = true;     // else nobody has needed them yet
    bool relevant = true;      // a tree would show anything
    bool wanted = true;        // its own text speaks of precision
    std::vector<std::uint64_t> imports{};  // hashes of the names it imports, sorted
    std::vector<std::string_view> mentions{};  // names of configuration files its code gives
};

void write_record(SegmentWriter&, const PackedFile&, const Unit&);
PackedFile read_head(RecordReader&);

class FactsPack {
public:
    // Never an error: a file that is damaged or not there gives an empty pack.
    FactsPack(std::string directory, std::string path);
    ~FactsPack();
    FactsPack(const FactsPack&) = delete;
    FactsPack& operator=(const FactsPack&) = delete;

    // nullptr: not known. The views live as long as the pack.
    const PackedFile* find(std::string_view path) const;
    // The facts of a file that find() knows.
    Unit read(std::string_view path);
    // Of many, in their order, on up to so many threads.
    std::vector<Unit> read(const std::vector<std::string_view>& paths, int threads);

    void add(std::string segment) { added_.push_back(std::move(segment)); }
    // Writes what was added; false: errno says why.
    bool save();

private:
    struct Record {
        PackedFile file;
        std::size_t segment = 0;
        std::string_view facts;
    };

    void index();
    bool append();
    bool rewrite();

    std::string directory_;
    std::string path_;
    void* mapping_ = nullptr;
    std::size_t length_ = 0;
    bool damaged_ = false;
    std::size_t all_records_ = 0;
    std::vector<Segment> segments_;
    std::unordered_map<std::string_view, Record> records_;
    std::vector<std::string> added_;
};

}  // namespace mp::lint
