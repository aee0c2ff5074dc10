#pragma once

// Facts as bytes: what worker processes send and the pack keeps. Compact, quick to read, and only ever
// read by the mp-lint that wrote it (its binary is part of the pack's name), so there is no version in
// it. Damage is found by the checksum of the segment, and reading stays within bounds whatever the bytes.
//
// A segment, little-endian:
//   "MPSG"  size:u32 of the whole  check:u64 (XXH3 of all that follows)
//   strings:u32  records:u32  texts:u32 (their bytes)
//   strings * { end:u32 }   where the text of each ends; then the texts
//   records * { end:u32 }   where each record ends; then the records, fields as varints

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

// Writes values; texts are kept once per segment.
class SegmentWriter {
public:
    void end_record() { record_ends_.push_back(static_cast<std::uint32_t>(body_.size())); }

    void number(std::uint64_t value) {
        while (value >= 0x80) {
            body_ += static_cast<char>(value | 0x80);
            value >>= 7;
        }
        body_ += static_cast<char>(value);
    }
    void text(std::string_view);
    void symbol(Symbol s) { number(index_of(s)); }

    // Fields of a fact, as fields.hpp lists them.
    void place(const SourceSpan& s) { value(s); }
    void title(Symbol s) { symbol(s); }
    void dtypes(DType from, DType to) {
        value(from);
        value(to);
    }
    template <class F>
    void bare(std::string_view, const F& field, const F&) {
        value(field);
    }
    template <class F>
    void operator()(std::string_view, const F& field, const F& = F{}) {
        value(field);
    }
    void or_title(std::string_view, Symbol field, Symbol) { symbol(field); }
    void nested(std::string_view, const Operand& operand) { value(operand); }

    template <class T>
    void value(const T& v) {
        if constexpr (std::same_as<T, Symbol>) {
            symbol(v);
        } else if constexpr (std::same_as<T, Op>) {
            symbol(Symbol(v.name()));
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
            fields(*this, v);
        }
    }
    void value(const SourceSpan&);
    template <class T>
    void value(const std::vector<T>& list) {
        number(list.size());
        for (const T& item : list) value(item);
    }

    // The whole segment; the writer is empty after it.
    std::string take();
    std::size_t size() const { return body_.size() + texts_.size(); }

private:
    std::uint32_t index_of(Symbol);

    std::string body_;
    std::string texts_;
    std::vector<std::uint32_t> record_ends_;
    std::vector<std::uint32_t> text_ends_;
    std::unordered_map<Symbol, std::uint32_t> indices_;
    std::unordered_map<std::string, std::uint32_t> own_texts_;
};

// A segment at the start of `bytes`, which must outlive it. Texts are interned when they are met.
class Segment {
public:
    // False when `bytes` does not begin with an intact segment.
    bool open(std::string_view bytes);
    std::size_t size() const { return size_; }
    std::size_t records() const { return records_; }
    std::string_view record(std::size_t index) const;

    std::string_view text(std::uint64_t index) const;
    Symbol symbol(std::uint64_t index);

private:
    std::uint32_t word(std::size_t offset) const {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes_.data() + offset, sizeof value);
        return value;
    }

    std::string_view bytes_;
    std::size_t size_ = 0;
    std::size_t records_ = 0;
    std::size_t strings_ = 0;
    std::size_t text_ends_ = 0;    // offsets
    std::size_t texts_ = 0;
    std::size_t record_ends_ = 0;
    std::size_t bodies_ = 0;
    std::vector<Symbol> symbols_;
};

// Reads a record back. After the first impossible value everything is zero and `ok` is false.
class RecordReader {
public:
    RecordReader(Segment& segment, std::string_view record) : segment_(segment), rest_(record) {}

    std::uint64_t number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(rest_.front());
            rest_.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) return value;
        }
        ok = false;
        rest_ = {};
        return 0;
    }
    std::string_view text() { return segment_.text(number()); }
    Symbol symbol() { return segment_.symbol(number()); }

    void place(SourceSpan& s) { value(s); }
    void title(Symbol& s) { s = symbol(); }
    void dtypes(DType& from, DType& to) {
        value(from);
        value(to);
    }
    template <class F>
    void bare(std::string_view, F& field, const F&) {
        value(field);
    }
    template <class F>
    void operator()(std::string_view, F& field, const F& = F{}) {
        value(field);
    }
    void or_title(std::string_view, Symbol& field, Symbol) { field = symbol(); }
    void nested(std::string_view, Operand& operand) { value(operand); }

    template <class T>
    void value(T& v) {
        if constexpr (std::same_as<T, Symbol>) {
            v = symbol();
        } else if constexpr (std::same_as<T, Op>) {
            v = Op(symbol().str());
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
            fields(*this, v);
        }
    }
    void value(SourceSpan&);
    template <class T>
    void value(std::vector<T>& list) {
        const std::uint64_t count = number();
        if (count > rest_.size()) ok = false;  // every item takes a byte
        if (!ok) return;
        list.resize(static_cast<std::size_t>(count));
        for (T& item : list) value(item);
    }

    bool ok = true;

private:
    Segment& segment_;
    std::string_view rest_;
};

void write_unit(SegmentWriter&, const Unit&);
Unit read_unit(RecordReader&);

}  // namespace mp::lint
