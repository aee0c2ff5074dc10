#pragma once

// The facts of a project's units in one file: thousands of small files would cost more to open than to
// analyse. New records are appended, later records win, and superseded ones are dropped when they
// outnumber the rest. Several runs can use a store at a time: each appends whole segments under a lock,
// and readers take the size under the same lock.

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/cache/codec.hpp"
#include "analyzer/cache/inputs.hpp"
#include "analyzer/cache/outline.hpp"

namespace mp::lint {

// The part of a record besides the unit. Only Python files use the last eight fields.
struct StoredHead {
    std::string key;  // begins with the path of the main file and a zero byte
    Inputs inputs{};
    Digest facts{};            // of the unit, from which write_record() computes it
    bool has_facts = true;     // false: the file was outside the slice, so only its text was scanned
    bool may_suppress = true;  // its text may contain a suppression comment
    bool has_words = true;     // its text has words of the front end or of a rule
    bool is_relevant = true;   // its tree can have facts: it has words, or the program has native code
    bool is_seed = true;       // it starts the slice
    std::vector<std::uint64_t> imports{};  // hashes of the names it imports, sorted
    std::vector<std::uint64_t> given{};    // hashes of the options that its text turns on, sorted
    std::vector<std::string> mentions{};   // names of configuration files its code contains
    Outline outline{};
};

// All but the key, which is read first, and the facts, which are read from the unit.
template <class V, Of<StoredHead> F>
void fields(V& v, F& f) {
    v("inputs", f.inputs);
    v("has_facts", f.has_facts, true);
    v("may_suppress", f.may_suppress, true);
    v("has_words", f.has_words, true);
    v("is_relevant", f.is_relevant, true);
    v("is_seed", f.is_seed, true);
    v("imports", f.imports);
    v("given", f.given);
    v("mentions", f.mentions);
    v("outline", f.outline);
}

// Writes a record, for a worker's output or for the store.
void write_record(SegmentWriter&, const StoredHead&, const Unit&);
// The unit follows, for RecordReader::unit() or shell().
StoredHead read_head(RecordReader&);

class FactStore {
public:
    // Opened by the first question. Never an error: a store that is damaged or missing is empty.
    // Segments are read on up to so many threads.
    explicit FactStore(std::string path, int threads = 1) : path_(std::move(path)), threads_(threads) {}
    ~FactStore();
    FactStore(const FactStore&) = delete;
    FactStore& operator=(const FactStore&) = delete;

    // nullptr: not in the store. The pointer is valid until the next save().
    const StoredHead* find(std::string_view key);
    // A unit that find() has found, without functions and dependencies.
    Unit read_shell(std::string_view key);
    // The whole unit. Several threads may call it at a time, each for another key.
    Unit read(std::string_view key);
    // Reads the facts of one more seed file, for a read() that is likely to follow. False when there is
    // none left. It saves 30 of 320 ms when the facts of one of 2,860 Python files change.
    bool read_ahead();

    void add(std::string segment) { added_.push_back(std::move(segment)); }
    // Writes the added records; find() finds them from then on. False: errno holds the reason.
    bool save();

    // The file ended in the middle of a segment, or a checksum was wrong. The data before it is used.
    bool damaged() const { return damaged_; }

private:
    struct Record {
        StoredHead head;
        Segment* segment = nullptr;  // in `segments_`
        std::string_view unit;
        std::optional<Unit> ahead{};
    };

    // A segment of the file, and its records by key.
    struct Indexed {
        Segment* segment = nullptr;
        bool intact = false;
        std::vector<std::pair<std::string_view, Record>> records{};
    };

    void open();
    void map();
    static void read_heads(Indexed&, std::string_view bytes);
    Unit read(const Record&);
    void index(std::string_view bytes);
    bool append();
    bool rewrite();

    std::string path_;
    int threads_;
    bool opened_ = false;
    void* mapping_ = nullptr;
    std::size_t length_ = 0;
    bool damaged_ = false;
    std::size_t all_records_ = 0;
    std::size_t ahead_ = 0;  // records before this one in `order_` have been read ahead
    std::deque<Segment> segments_;
    std::unordered_map<std::string_view, Record> records_;
    std::vector<Record*> order_;  // of first appearance
    std::vector<std::string> added_;
    std::deque<std::string> saved_;  // since the store was opened
    std::size_t indexed_ = 0;        // of saved_
};

}  // namespace mp::lint
