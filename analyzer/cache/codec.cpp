#include "analyzer/cache/codec.hpp"

#include <algorithm>
#include <array>
#include <memory>
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

std::uint32_t SegmentWriter::BodyTables::name(Symbol s) {
    const auto [known, added] = name_ordinals.try_emplace(s, static_cast<std::uint32_t>(names.size()));
    if (added) names.push_back(s);
    return known->second;
}

std::uint32_t SegmentWriter::BodyTables::line(Symbol file, std::uint32_t line) {
    if (places.empty() || file != last_file) last_file_ordinal = name(last_file = file);
    const std::uint64_t place = std::uint64_t{last_file_ordinal} << 32 | line;
    if (!places.empty() && places[last] == place) return last;
    const auto [known, added] = place_ordinals.try_emplace(place, static_cast<std::uint32_t>(places.size()));
    if (added) places.push_back(place);
    return known->second;
}

// Lines are hashed by their file and their rank, so that swapped lines are another hash.
std::uint64_t SegmentWriter::BodyTables::hash(std::string_view body) const {
    std::vector<std::uint64_t> sorted = places, ranks;
    std::ranges::sort(sorted);
    for (const std::uint64_t place : places) {
        const auto rank = std::ranges::lower_bound(sorted, place) - sorted.begin();
        ranks.push_back(place >> 32 << 32 | static_cast<std::uint64_t>(rank));
    }
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
    XXH3_64bits_reset(state.get());
    XXH3_64bits_update(state.get(), body.data(), body.size());
    XXH3_64bits_update(state.get(), ranks.data(), ranks.size() * sizeof ranks[0]);
    for (const Symbol name : names) {
        const std::string_view text = name.str();
        const std::uint64_t size = text.size();
        XXH3_64bits_update(state.get(), &size, sizeof size);
        XXH3_64bits_update(state.get(), text.data(), text.size());
    }
    return XXH3_64bits_digest(state.get());
}

void SegmentWriter::unit(const Unit& unit) {
    begin_body();
    value(unit);
    value(unit.functions);
    end_meaning();
    value(unit.coverage);
    value(unit.dependencies);
    end_body();
}

void SegmentWriter::begin_body() {
    tables_ = {};
    tables_.start = body_.size();
    in_body_ = true;
}

void SegmentWriter::end_meaning() {
    tables_.meaning = body_.size() - tables_.start;
    tables_.hash_of_meaning = tables_.hash(std::string_view(body_).substr(tables_.start));
}

std::vector<Line> SegmentWriter::end_body() {
    in_body_ = false;
    const std::string body = body_.substr(tables_.start);
    body_.resize(tables_.start);
    std::vector<Line> lines = write_tables();
    number(tables_.meaning);
    body_ += body;
    return lines;
}

std::vector<Line> SegmentWriter::write_tables() {
    std::vector<Line> lines;
    number(tables_.hash_of_meaning);
    number(tables_.places.size());
    Line last;
    for (const std::uint64_t place : tables_.places) {
        const Line& now = lines.emplace_back(tables_.names[place >> 32], static_cast<std::uint32_t>(place));
        number(folded(now.line - last.line) << 1 | std::uint64_t{now.file != last.file});
        if (now.file != last.file) symbol(now.file);
        last = now;
    }
    number(tables_.names.size());
    for (const Symbol name : tables_.names) append_word(body_, index_of(name));
    return lines;
}

void SegmentWriter::value(const SourceSpan& s) {
    const std::uint32_t begin = tables_.line(s.file, s.line);
    const std::uint32_t end = tables_.line(s.file, s.end_line);
    number(folded(begin - tables_.last) << 1 | std::uint64_t{end != begin});
    number(s.column);
    if (end != begin) number(folded(end - begin));
    number(folded(s.end_column - s.column));
    tables_.last = begin;
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

std::uint64_t RecordReader::long_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
        const auto byte = static_cast<unsigned char>(*at_++);
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
    }
    ok = false;
    at_ = end_;
    return 0;
}

Line RecordReader::line(std::uint64_t ordinal) {
    if (lines_ && ordinal < lines_->size()) return (*lines_)[ordinal];
    ok = false;
    return {};
}

void RecordReader::value(SourceSpan& s) {
    const std::uint64_t head = number();
    last_ += unfolded(head >> 1);
    const Line begin = line(last_);
    s.file = begin.file;
    s.line = begin.line;
    s.column = static_cast<std::uint32_t>(number());
    s.end_line = head & 1 ? line(last_ + unfolded(number())).line : s.line;
    s.end_column = s.column + unfolded(number());
}

std::string_view RecordReader::take(std::uint64_t bytes) {
    if (bytes > static_cast<std::size_t>(end_ - at_)) ok = false;
    if (!ok) return {};
    const char* const begin = at_;
    at_ += bytes;
    return {begin, at_};
}

Digest RecordReader::digest() {
    Digest out{.hash = number(), .lines = {}};
    const std::uint64_t count = number();
    if (count > static_cast<std::size_t>(end_ - at_)) ok = false;  // every line takes a byte
    if (!ok) return out;
    out.lines.reserve(count);
    Line last;
    for (std::uint64_t n = 0; n < count && ok; ++n) {
        const std::uint64_t head = number();
        if (head & 1) last.file = symbol();
        last.line += unfolded(head >> 1);
        out.lines.push_back(last);
    }
    return out;
}

const char* RecordReader::open_body(const std::vector<Line>& lines) {
    const std::uint64_t names = number();
    names_ = take(names > rest().size() ? ~std::uint64_t{0} : names * sizeof(std::uint32_t));
    lines_ = &lines;
    const std::uint64_t size = number();
    if (size > rest().size()) ok = false;
    return ok ? at_ + size : end_;
}

Unit RecordReader::shell(const std::vector<Line>& lines) {
    const char* const end = open_body(lines);
    Unit unit;
    value(unit);
    at_ = end;
    value(unit.coverage);
    if (!ok) unit = {};
    return unit;
}

Unit RecordReader::unit(const std::vector<Line>& lines) {
    (void)open_body(lines);
    Unit unit;
    value(unit);
    value(unit.functions);
    value(unit.coverage);
    value(unit.dependencies);
    if (!ok) unit = {};
    return unit;
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

}  // namespace mp::lint
