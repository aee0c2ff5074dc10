#pragma once

// Encodes facts as bytes, for worker processes and the store. The bytes are compact and fast to read. Only the
// binary that wrote the bytes reads them (the name of a store contains the binary's identity), so they
// have no version. The checksum of a segment finds damage, and reading stays within bounds for any bytes.
//
// A segment, little-endian:
//   "MPSG"  size:u32 of the whole  check:u64 (XXH3 of all that follows)
//   strings:u32  records:u32  texts:u32 (their bytes)
//   strings * { end:u32 }   where the text of each ends; then the texts
//   records * { end:u32 }   where each record ends; then the records
//
// A record is a sequence of varints. A fact is a mask with a bit for each field that is not at its
// default, then the values of those fields: most fields are at their default, and a large program has a
// million facts. Hashes in lists take eight bytes each.
//
// The facts of a unit are stored as a table of lines and a body. The body refers to texts and lines by their
// ordinals in the unit, counted in the order of first use:
//   hash:u64                 of the body and its texts, and of the order of the lines
//   lines * {file, line}
//   names:varint  names * { text:u32 }   the texts of the segment that the body uses
//   size:varint   body       then coverage and dependencies, which are not hashed
// An edit that only moves lines changes the table of lines alone.

#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "analyzer/facts/fields.hpp"

namespace mp::lint {

// A line to which facts of a unit refer. The line 0 is unknown.
struct Line {
    Symbol file;
    std::uint32_t line = 0;
    friend bool operator==(const Line&, const Line&) = default;
};

// What a unit's facts mean, and where they are. Two versions of a unit with the same hash differ at most in lines,
// and the same ordinal in `lines` is the same place: a comment, a docstring, a blank line was edited, or a constant
// that no fact contains. Coverage and dependencies are not hashed, because no rule reads them.
struct Digest {
    std::uint64_t hash = 0;
    std::vector<Line> lines;  // in the order of first use
};

// Forwards every field of fields.hpp to To::field(value, default).
template <class To>
class EveryField {
public:
    template <Of<SourceSpan> F>
    void place(F& value) {
        field(value, SourceSpan{});
    }
    template <Of<Symbol> F>
    void title(F& value) {
        field(value, Symbol{});
    }
    template <Of<DType> F>
    void dtypes(F& from, F& to) {
        field(from, DType::unknown);
        field(to, DType::unknown);
    }
    template <class F>
    void bare(std::string_view, F& value, const std::remove_const_t<F>& fallback) {
        field(value, fallback);
    }
    template <class F>
    void operator()(std::string_view, F& value, const std::remove_const_t<F>& fallback = {}) {
        field(value, fallback);
    }
    template <Of<Symbol> F>
    void or_title(std::string_view, F& value, Symbol title) {
        field(value, title);
    }
    template <Of<Operand> F>
    void nested(std::string_view, F& value) {
        field(value, Operand{});
    }

private:
    template <class F>
    void field(F& value, const std::remove_const_t<F>& fallback) {
        static_cast<To*>(this)->field(value, fallback);
    }
};

// Writes values. Each text is stored once per segment.
class SegmentWriter {
public:
    void end_record() { record_ends_.push_back(static_cast<std::uint32_t>(body_.size())); }
    void unit(const Unit&);
    // What is written between them is a body: it refers to texts and lines by their ordinals. end_body() returns the
    // lines. Up to end_meaning() it is hashed.
    void begin_body();
    void end_meaning();
    std::vector<Line> end_body();

    void number(std::uint64_t value) {
        while (value >= 0x80) {
            body_ += static_cast<char>(value | 0x80);
            value >>= 7;
        }
        body_ += static_cast<char>(value);
    }
    void text(std::string_view);
    void symbol(Symbol s) { number(in_body_ ? tables_.name(s) : index_of(s)); }

    template <class T>
    void value(const T& v) {
        if constexpr (std::same_as<T, Symbol>) {
            symbol(v);
        } else if constexpr (std::same_as<T, Op>) {
            symbol(v.symbol());
        } else if constexpr (std::same_as<T, std::string>) {
            text(v);
        } else if constexpr (std::is_enum_v<T>) {
            number(static_cast<std::uint64_t>(v));
        } else if constexpr (std::signed_integral<T>) {
            const auto wide = static_cast<std::int64_t>(v);
            number((static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63));
        } else if constexpr (std::integral<T>) {
            number(v);
        } else {
            Present present;
            fields(present, v);
            number(present.mask);
            PresentFields out(*this, present.mask);
            fields(out, v);
            if constexpr (std::same_as<T, Function>) body_fields(*this, v);
        }
    }
    void value(const SourceSpan&);
    void value(const std::vector<std::uint64_t>&);
    template <class T>
    void value(const std::vector<T>& list) {
        number(list.size());
        for (const T& item : list) value(item);
    }

    // The whole segment; the writer is empty after it.
    std::string take();
    std::size_t size() const { return body_.size() + texts_.size(); }

private:
    // A mask of the fields that are not at their default.
    struct Present : EveryField<Present> {
        template <class F>
        void field(const F& value, const F& fallback) {
            mask |= std::uint64_t{!(value == fallback)} << next++;
        }
        std::uint64_t mask = 0;
        unsigned next = 0;
    };
    class PresentFields : public EveryField<PresentFields> {
    public:
        PresentFields(SegmentWriter& out, std::uint64_t mask) : out_(out), mask_(mask) {}
        template <class F>
        void field(const F& value, const F&) {
            if constexpr (!std::same_as<F, bool>)  // the mask alone gives the value of a bool
                if (mask_ & 1) out_.value(value);
            mask_ >>= 1;
        }

    private:
        SegmentWriter& out_;
        std::uint64_t mask_;
    };

    // The texts and lines of a body that is being written, by their ordinals.
    struct BodyTables {
        std::uint32_t name(Symbol);
        std::uint32_t line(Symbol file, std::uint32_t line);
        std::uint64_t hash(std::string_view body) const;

        std::size_t start = 0;    // of the body in `body_`
        std::size_t meaning = 0;  // bytes of it that are hashed
        std::uint64_t hash_of_meaning = 0;
        std::vector<Symbol> names;
        std::vector<std::uint64_t>
            places;              // lines: the ordinal of the file's name, and in the low half the line
        std::uint32_t last = 0;  // ordinal of the line of the last span
        Symbol last_file;
        std::uint32_t last_file_ordinal = 0;
        std::unordered_map<Symbol, std::uint32_t> name_ordinals;
        std::unordered_map<std::uint64_t, std::uint32_t> place_ordinals;
    };

    std::uint32_t index_of(Symbol);
    std::vector<Line> write_tables();

    std::string body_;
    std::string texts_;
    std::vector<std::uint32_t> record_ends_;
    std::vector<std::uint32_t> text_ends_;
    std::unordered_map<Symbol, std::uint32_t> indices_;
    std::unordered_map<std::string, std::uint32_t> own_texts_;
    BodyTables tables_;
    bool in_body_ = false;
};

// A segment at the start of `bytes`, which must outlive it. Texts are interned on first use. Several
// threads may read its records at a time.
class Segment {
public:
    // The size of the segment at the start of `bytes`, which open() may still find damaged. 0: there is none.
    static std::size_t size_of(std::string_view bytes);
    // False when `bytes` does not begin with an intact segment.
    bool open(std::string_view bytes);
    std::size_t size() const { return size_; }
    std::size_t records() const { return records_; }
    std::string_view record(std::size_t index) const;

    std::string_view text(std::uint64_t index) const;
    Symbol symbol(std::uint64_t index) {
        if (index >= strings_) return {};
        const Symbol known = symbols_[index].load(std::memory_order_acquire);
        return known.empty() ? intern_ahead(index) : known;
    }

private:
    std::uint32_t word(std::size_t offset) const {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes_.data() + offset, sizeof value);
        return value;
    }
    Symbol intern_ahead(std::uint64_t index);

    std::string_view bytes_;
    std::size_t size_ = 0;
    std::size_t records_ = 0;
    std::size_t strings_ = 0;
    std::size_t text_ends_ = 0;  // offsets
    std::size_t texts_ = 0;
    std::size_t record_ends_ = 0;
    std::size_t bodies_ = 0;
    std::vector<std::atomic<Symbol>> symbols_;  // interned so far
};

// Reads a record back. After the first impossible value everything is zero and `ok` is false.
class RecordReader {
public:
    RecordReader(Segment& segment, std::string_view record)
        : segment_(segment), at_(record.data()), end_(at_ + record.size()) {}

    // Nearly all numbers take one or two bytes.
    std::uint64_t number() {
        if (end_ - at_ >= 2) [[likely]] {
            const auto first = static_cast<unsigned char>(at_[0]);
            const auto second = static_cast<unsigned char>(at_[1]);
            if (first < 0x80) return ++at_, first;
            if (second < 0x80) return at_ += 2, (first & 0x7fu) | second << 7;
        }
        return long_number();
    }
    std::string_view text() { return segment_.text(number()); }
    Symbol symbol() {
        const std::uint64_t index = number();
        if (!lines_) return segment_.symbol(index);
        if (index >= names_.size() / sizeof(std::uint32_t)) return {};
        std::uint32_t text = 0;
        std::memcpy(&text, names_.data() + index * sizeof text, sizeof text);
        return segment_.symbol(text);
    }
    // The part of the record that is not read yet.
    std::string_view rest() const { return {at_, end_}; }
    // A unit follows in two parts: its digest, then itself or its shell. The lines must outlive the reader.
    Digest digest();
    Unit unit(const std::vector<Line>& lines);
    // The unit without functions and dependencies.
    Unit shell(const std::vector<Line>& lines);
    // Begins to read a body, after its digest, with these lines. Returns where its meaning ends.
    const char* open_body(const std::vector<Line>& lines);

    template <class T>
    void value(T& v) {
        if constexpr (std::same_as<T, Symbol>) {
            v = symbol();
        } else if constexpr (std::same_as<T, Op>) {
            v = Op(symbol());
        } else if constexpr (std::same_as<T, std::string>) {
            v = text();
        } else if constexpr (std::is_enum_v<T>) {
            v = static_cast<T>(number());
        } else if constexpr (std::signed_integral<T>) {
            const std::uint64_t raw = number();
            v = static_cast<T>(static_cast<std::int64_t>(raw >> 1) ^ -static_cast<std::int64_t>(raw & 1));
        } else if constexpr (std::integral<T>) {
            v = static_cast<T>(number());
        } else {
            PresentFields in(*this, number());
            fields(in, v);
            if constexpr (std::same_as<T, Function>) body_fields(*this, v);
        }
    }
    void value(SourceSpan&);
    void value(std::vector<std::uint64_t>&);
    template <class T>
    void value(std::vector<T>& list) {
        const std::uint64_t count = number();
        if (count > static_cast<std::size_t>(end_ - at_)) ok = false;  // every item takes a byte
        if (!ok) return;
        list.resize(static_cast<std::size_t>(count));
        for (T& item : list) value(item);
    }

    bool ok = true;

private:
    // Reads the fields whose bit in the mask is set, into a fact that has its defaults.
    class PresentFields : public EveryField<PresentFields> {
    public:
        PresentFields(RecordReader& in, std::uint64_t mask) : in_(in), mask_(mask) {}
        template <class F>
        void field(F& value, const F& fallback) {
            const bool present = mask_ & 1;
            mask_ >>= 1;
            if constexpr (std::same_as<F, bool>)
                value = present != fallback;
            else if (present)
                in_.value(value);
            else if constexpr (std::same_as<F, Symbol>)
                value = fallback;  // which may be the title
        }

    private:
        RecordReader& in_;
        std::uint64_t mask_;
    };

    std::uint64_t long_number();
    Line line(std::uint64_t ordinal);
    std::string_view take(std::uint64_t bytes);

    Segment& segment_;
    const char* at_;
    const char* end_;
    std::string_view names_;                    // of the body
    const std::vector<Line>* lines_ = nullptr;  // of the body; nullptr: outside of a body
    std::uint32_t last_ = 0;                    // ordinal of the line of the last span
};

}  // namespace mp::lint
