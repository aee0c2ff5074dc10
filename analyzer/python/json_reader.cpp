#include "analyzer/python/json_reader.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace mp::lint::python {
namespace {

// Counts the bytes read, because the parser reports values without places.
class CountingIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountingIterator(const char* at, const char** read) : at_(at), read_(read) {}
    reference operator*() const { return *at_; }
    CountingIterator& operator++() {
        *read_ = ++at_;
        return *this;
    }
    CountingIterator operator++(int) {
        CountingIterator before = *this;
        ++*this;
        return before;
    }
    bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

private:
    const char* at_;
    const char** read_;
};

// Tracks the path and the places, which nlohmann's parser does not report.
class Handler : public nlohmann::json_sax<nlohmann::json> {
public:
    Handler(std::string_view text, JsonVisitor& visitor, const char* const* read)
        : text_(text), visitor_(visitor), read_(read) {}

    bool null() override { return scalar(); }
    bool boolean(bool) override { return scalar(); }
    bool number_integer(number_integer_t) override { return scalar(); }
    bool number_unsigned(number_unsigned_t) override { return scalar(); }
    bool number_float(number_float_t, const string_t&) override { return scalar(); }
    bool binary(binary_t&) override { return false; }  // cannot occur in JSON text
    bool start_object(std::size_t) override { return open(); }
    bool start_array(std::size_t) override { return open(); }
    bool end_array() override { return close(); }
    bool end_object() override {
        path_.back().clear();
        visitor_.on_object_end(path_);
        return close();
    }

    bool key(string_t& name) override {
        path_.back() = name;
        after_ = offset();
        return true;
    }

    bool string(string_t& value) override {
        const std::size_t begin = text_.find('"', after_) + 1;
        after_ = offset();
        visitor_.on_string(path_, value, begin, after_ - 1);
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
        error_at_ = std::min(position == 0 ? 0 : position - 1, text_.size());
        return false;
    }

    std::size_t error_at() const { return error_at_; }

private:
    std::size_t offset() const { return static_cast<std::size_t>(*read_ - text_.data()); }

    bool open() {
        path_.emplace_back();
        after_ = offset();
        return true;
    }
    bool close() {
        path_.pop_back();
        after_ = offset();
        return true;
    }
    // The parser reads one character past the end of a number, so the end is searched in the text.
    bool scalar() {
        const std::size_t begin = text_.find_first_not_of(" \t\r\n,:", after_);
        const std::size_t end = std::min(text_.find_first_of(" \t\r\n,]}", begin), text_.size());
        after_ = end;
        visitor_.on_scalar(path_, text_.substr(begin, end - begin), begin);
        return true;
    }

    std::string_view text_;
    JsonVisitor& visitor_;
    const char* const* read_;
    JsonPath path_;
    std::size_t after_ = 0;  // end of the previous token
    std::size_t error_at_ = 0;
};

unsigned hex4(std::string_view digits) {
    unsigned value = 0;
    for (const char c : digits.substr(0, 4))
        value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    return value;
}

std::string utf8(unsigned code) {
    const auto byte = [](unsigned value) { return static_cast<char>(value); };
    if (code < 0x80) return {byte(code)};
    if (code < 0x800) return {byte(0xC0 | code >> 6), byte(0x80 | (code & 63))};
    if (code < 0x10000)
        return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63))};
    return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)),
            byte(0x80 | (code & 63))};
}

}  // namespace

void JsonVisitor::on_string(const JsonPath&, std::string_view, std::size_t, std::size_t) {}
void JsonVisitor::on_scalar(const JsonPath&, std::string_view, std::size_t) {}
void JsonVisitor::on_object_end(const JsonPath&) {}

std::optional<std::size_t> read_json(std::string_view text, JsonVisitor& visitor) {
    const char* at = text.data();
    Handler handler(text, visitor, &at);
    const char* end = text.data() + text.size();
    const bool read =
        nlohmann::json::sax_parse(CountingIterator(text.data(), &at), CountingIterator(end, &at), &handler);
    if (read) return std::nullopt;
    return handler.error_at();
}

JsonCharacter decode_character(std::string_view raw) {
    if (raw[0] != '\\') return {1, std::string(1, raw[0])};
    switch (raw[1]) {
        case 'n':
            return {2, "\n"};
        case 't':
            return {2, "\t"};
        case 'r':
            return {2, "\r"};
        case 'b':
            return {2, "\b"};
        case 'f':
            return {2, "\f"};
        case 'u':
            break;
        default:
            return {2, std::string(1, raw[1])};
    }
    const unsigned high = hex4(raw.substr(2));
    if (high < 0xD800 || high > 0xDBFF || raw.size() < 12) return {6, utf8(high)};
    return {12, utf8(0x10000 + ((high - 0xD800) << 10) + (hex4(raw.substr(8)) - 0xDC00))};
}

std::vector<std::size_t> line_starts(std::string_view text) {
    std::vector<std::size_t> starts{0};
    for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
        starts.push_back(at + 1);
    return starts;
}

Place place_of(const std::vector<std::size_t>& starts, std::size_t offset) {
    const auto after = std::ranges::upper_bound(starts, offset);
    const auto line = static_cast<std::size_t>(after - starts.begin());
    return {.line = static_cast<std::uint32_t>(line),
            .column = static_cast<std::uint32_t>(offset - starts[line - 1] + 1)};
}

}  // namespace mp::lint::python
