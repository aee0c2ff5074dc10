#include "analyzer/cache/codec.hpp"

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

}  // namespace

void SegmentWriter::text(std::string_view text) {
    const auto [known, added] = own_texts_.try_emplace(
        std::string(text), static_cast<std::uint32_t>(text_ends_.size()));
    if (added) {
        texts_ += text;
        text_ends_.push_back(static_cast<std::uint32_t>(texts_.size()));
    }
    number(known->second);
}

std::uint32_t SegmentWriter::index_of(Symbol s) {
    const auto [known, added] =
        indices_.try_emplace(s, static_cast<std::uint32_t>(text_ends_.size()));
    if (added) {
        texts_ += s.str();
        text_ends_.push_back(static_cast<std::uint32_t>(texts_.size()));
    }
    return known->second;
}

void SegmentWriter::value(const SourceSpan& s) {
    // Most places are in few files and end on their line; unknown ones take a byte.
    if (s == SourceSpan{}) return number(0);
    number(std::uint64_t{index_of(s.file)} + 1);
    number(s.line);
    number(s.column);
    value(static_cast<std::int64_t>(s.end_line) - static_cast<std::int64_t>(s.line));
    number(s.end_column);
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

bool Segment::open(std::string_view bytes) {
    bytes_ = bytes;
    if (bytes.size() < kHeader || !bytes.starts_with(kMagic)) return false;
    size_ = word(kMagic.size());
    if (size_ < kHeader || size_ > bytes.size()) return false;
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
    symbols_.assign(strings_, Symbol());
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

Symbol Segment::symbol(std::uint64_t index) {
    if (index >= strings_) return {};
    Symbol& known = symbols_[static_cast<std::size_t>(index)];
    if (known.empty()) known = Symbol(text(index));
    return known;
}

void RecordReader::value(SourceSpan& s) {
    const std::uint64_t file = number();
    if (file == 0) return;
    s.file = segment_.symbol(file - 1);
    value(s.line);
    value(s.column);
    std::int64_t lines = 0;
    value(lines);
    s.end_line = static_cast<std::uint32_t>(static_cast<std::int64_t>(s.line) + lines);
    value(s.end_column);
}

void write_unit(SegmentWriter& out, const Unit& unit) {
    fields(out, unit);
    out.value(unit.coverage);
    out.value(unit.dependencies);
    out.number(unit.functions.size());
    for (const Function& f : unit.functions) {
        fields(out, f);
        body_fields(out, f);
    }
}

Unit read_unit(RecordReader& in) {
    Unit unit;
    fields(in, unit);
    in.value(unit.coverage);
    in.value(unit.dependencies);
    for (std::uint64_t n = in.number(); n > 0 && in.ok; --n) {
        Function& f = unit.functions.emplace_back();
        fields(in, f);
        body_fields(in, f);
    }
    if (!in.ok) unit = {};
    return unit;
}

}  // namespace mp::lint
