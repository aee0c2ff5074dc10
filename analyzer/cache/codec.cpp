#include "analyzer/cache/codec.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <xxhash.h>

namespace mp::lint {
namespace {

constexpr std::string_view kMagic = "MPSG";
constexpr std::size_t kCheckAt = 8;
constexpr std::size_t kCountsAt = 16;
constexpr std::size_t kHeader = 28;
constexpr std::size_t kWord = sizeof(std::uint32_t);

void append_word(std::string& out, std::size_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    char bytes[kWord];
    std::memcpy(bytes, &word, kWord);
    out.append(bytes, kWord);
}

// Maps a difference to a number that is small when the difference is: 0, -1, 1, -2 ... to 0, 1, 2, 3.
std::uint64_t folded(std::uint32_t difference) {
    return (difference << 1) ^ (difference >> 31 ? 0xffffffffU : 0U);
}
std::uint32_t unfolded(std::uint64_t number) {
    const auto raw = static_cast<std::uint32_t>(number);
    return (raw >> 1) ^ (0U - (raw & 1));
}

}  // namespace

void SegmentWriter::text(std::string_view text) {
    const auto [known, added] =
        own_texts_.try_emplace(std::string(text), static_cast<std::uint32_t>(text_ends_.size()));
    if (added) {
        texts_ += text;
        text_ends_.push_back(static_cast<std::uint32_t>(texts_.size()));
    }
    number(known->second);
}

std::uint32_t SegmentWriter::index_of(Symbol s) {
    const auto [known, added] = indices_.try_emplace(s, static_cast<std::uint32_t>(text_ends_.size()));
    if (added) {
        texts_ += s.str();
        text_ends_.push_back(static_cast<std::uint32_t>(texts_.size()));
    }
    return known->second;
}

void SegmentWriter::value(const SourceSpan& s) {
    const bool other_file = s.file != last_.file;
    const bool lines = s.end_line != s.line;
    number(folded(s.line - last_.line) << 2 | std::uint64_t{other_file} << 1 | std::uint64_t{lines});
    if (other_file) symbol(s.file);
    number(s.column);
    if (lines) number(folded(s.end_line - s.line));
    number(folded(s.end_column - s.column));
    last_ = s;
}

void SegmentWriter::value(const std::vector<std::uint64_t>& list) {
    number(list.size());
    for (const std::uint64_t word : list) {
        char bytes[sizeof word];
        std::memcpy(bytes, &word, sizeof word);
        body_.append(bytes, sizeof word);
    }
}

std::string SegmentWriter::take() {
    std::string out(kMagic);
    const std::size_t ends = (text_ends_.size() + record_ends_.size()) * kWord;
    out.reserve(kHeader + ends + texts_.size() + body_.size());
    append_word(out, kHeader + ends + texts_.size() + body_.size());
    out.append(sizeof(std::uint64_t), '\0');
    append_word(out, text_ends_.size());
    append_word(out, record_ends_.size());
    append_word(out, texts_.size());
    for (const std::uint32_t end : text_ends_) append_word(out, end);
    out += texts_;
    for (const std::uint32_t end : record_ends_) append_word(out, end);
    out += body_;
    const std::uint64_t check = XXH3_64bits(out.data() + kCountsAt, out.size() - kCountsAt);
    std::memcpy(out.data() + kCheckAt, &check, sizeof check);
    *this = {};
    return out;
}

std::size_t Segment::size_of(std::string_view bytes) {
    if (bytes.size() < kHeader || !bytes.starts_with(kMagic)) return 0;
    std::uint32_t size = 0;
    std::memcpy(&size, bytes.data() + kMagic.size(), sizeof size);
    return size < kHeader || size > bytes.size() ? 0 : size;
}

bool Segment::open(std::string_view bytes) {
    size_ = size_of(bytes);
    if (size_ == 0) return false;
    bytes_ = bytes.substr(0, size_);
    std::uint64_t check = 0;
    std::memcpy(&check, bytes_.data() + kCheckAt, sizeof check);
    if (XXH3_64bits(bytes_.data() + kCountsAt, size_ - kCountsAt) != check) return false;
    strings_ = word(kCountsAt);
    records_ = word(kCountsAt + kWord);
    text_ends_ = kHeader;
    texts_ = text_ends_ + strings_ * kWord;
    record_ends_ = texts_ + word(kCountsAt + 2 * kWord);
    bodies_ = record_ends_ + records_ * kWord;
    if (bodies_ > size_) return false;
    symbols_ = std::vector<std::atomic<Symbol>>(strings_);
    return true;
}

std::string_view Segment::record(std::size_t index) const {
    if (index >= records_) return {};
    const std::size_t begin = index == 0 ? 0 : word(record_ends_ + (index - 1) * kWord);
    const std::size_t end = word(record_ends_ + index * kWord);
    if (begin > end || end > size_ - bodies_) return {};
    return bytes_.substr(bodies_ + begin, end - begin);
}

std::string_view Segment::text(std::uint64_t index) const {
    if (index >= strings_) return {};
    const std::size_t at = text_ends_ + static_cast<std::size_t>(index) * kWord;
    const std::size_t begin = index == 0 ? 0 : word(at - kWord);
    const std::size_t end = word(at);
    if (begin > end || end > record_ends_ - texts_) return {};
    return bytes_.substr(texts_ + begin, end - begin);
}

// Interns 16 texts at once. Texts are stored in the order of first use, so the next ones are needed soon.
// Two threads that intern a text at once get the same symbol. Not inlined, so that symbol() stays small.
[[gnu::noinline]] Symbol Segment::intern_ahead(std::uint64_t index) {
    constexpr std::size_t kAhead = 16;
    std::array<std::string_view, kAhead> texts;
    std::array<Symbol, kAhead> interned;
    const std::size_t count = std::min<std::size_t>(kAhead, strings_ - index);
    for (std::size_t i = 0; i < count; ++i) texts[i] = text(index + i);
    Symbol::intern({texts.data(), count}, interned);
    for (std::size_t i = 0; i < count; ++i) symbols_[index + i].store(interned[i], std::memory_order_release);
    return interned[0];
}

std::uint64_t RecordReader::long_number(const char*& at) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at != end_; shift += 7) {
        const auto byte = static_cast<unsigned char>(*at++);
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
    }
    ok = false;
    at = end_;
    return 0;
}

void RecordReader::value(SourceSpan& s) {
    // Nearly all spans are on one line near the last span of the same file: three small numbers.
    if (end_ - at_ >= 3 && ((at_[0] | at_[1] | at_[2]) & 0x80) == 0 && (at_[0] & 3) == 0) {
        last_.line += unfolded(static_cast<std::uint64_t>(at_[0]) >> 2);
        const auto column = static_cast<std::uint32_t>(at_[1]);
        s = {.file = last_.file,
             .line = last_.line,
             .column = column,
             .end_line = last_.line,
             .end_column = column + unfolded(static_cast<std::uint64_t>(at_[2]))};
        at_ += 3;
        return;
    }
    const char* at = at_;
    const std::uint64_t head = number(at);
    s.file = head & 2 ? segment_.symbol(number(at)) : last_.file;
    s.line = last_.line + unfolded(head >> 2);
    s.column = static_cast<std::uint32_t>(number(at));
    s.end_line = s.line + (head & 1 ? unfolded(number(at)) : 0);
    s.end_column = s.column + unfolded(number(at));
    last_.file = s.file;
    last_.line = s.line;
    at_ = at;
}

void RecordReader::value(std::vector<std::uint64_t>& list) {
    const std::uint64_t count = number();
    if (count > static_cast<std::size_t>(end_ - at_) / sizeof(std::uint64_t)) ok = false;
    if (!ok) return;
    list.resize(static_cast<std::size_t>(count));
    const std::size_t bytes = list.size() * sizeof(std::uint64_t);
    if (bytes > 0) std::memcpy(list.data(), at_, bytes);
    at_ += bytes;
}

void write_unit(SegmentWriter& out, const Unit& unit) {
    out.value(unit);
    out.value(unit.coverage);
    out.value(unit.dependencies);
    out.value(unit.functions);
}

Unit read_shell(RecordReader& in) {
    Unit unit;
    in.value(unit);
    in.value(unit.coverage);
    if (!in.ok) unit = {};
    return unit;
}

Unit read_unit(RecordReader& in) {
    Unit unit = read_shell(in);
    in.value(unit.dependencies);
    in.value(unit.functions);
    if (!in.ok) unit = {};
    return unit;
}

}  // namespace mp::lint
