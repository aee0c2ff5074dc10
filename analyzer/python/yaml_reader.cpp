#include "analyzer/python/yaml_reader.hpp"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <string>

#include "analyzer/python/constants.hpp"
#include "analyzer/python/library/dotted.hpp"

namespace mp::lint::python {
namespace {

constexpr std::size_t kDeepest = 32;
constexpr std::string_view kNoName = ".";

// What a plain scalar is, as PyYAML decides it (YAML 1.1).
constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 9> kTrue{"true", "True", "TRUE", "yes", "Yes",
                                                "YES",  "on",   "On",   "ON"};
constexpr std::array<std::string_view, 9> kFalse{"false", "False", "FALSE", "no", "No",
                                                 "NO",    "off",   "Off",   "OFF"};

bool is_number(std::string_view text) {
    const std::size_t digit = text.find_first_of("0123456789");
    constexpr std::size_t kLongestSign = 2;  // "-.5"
    return digit <= kLongestSign && number_of(text).has_value();
}

class Event {
public:
    Event() = default;
    ~Event() { yaml_event_delete(&event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    yaml_event_t* get() { return &event_; }
    yaml_event_type_t type() const { return event_.type; }
    const yaml_mark_t& begin() const { return event_.start_mark; }
    const yaml_mark_t& end() const { return event_.end_mark; }

    std::string_view text() const {
        return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
    }
    bool is_quoted() const { return event_.data.scalar.style != YAML_PLAIN_SCALAR_STYLE; }
    // Marked as a type: !!python/object, !path.
    bool has_tag() const {
        if (event_.type == YAML_MAPPING_START_EVENT) return event_.data.mapping_start.tag != nullptr;
        if (event_.type == YAML_SEQUENCE_START_EVENT) return event_.data.sequence_start.tag != nullptr;
        return event_.data.scalar.tag != nullptr;
    }

private:
    yaml_event_t event_{};
};

class Reader {
public:
    Reader(std::string_view text, JsonVisitor& visitor)
        : text_(text), lines_(line_starts(text)), visitor_(visitor) {
        ready_ = yaml_parser_initialize(&parser_) != 0;
        if (!ready_) return;
        yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                     text.size());
    }
    ~Reader() {
        if (ready_) yaml_parser_delete(&parser_);
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    std::optional<std::size_t> run() {
        if (!ready_) return 0;
        for (;;) {
            Event event;
            if (yaml_parser_parse(&parser_, event.get()) == 0) return offset(parser_.problem_mark);
            if (event.type() == YAML_DOCUMENT_END_EVENT || event.type() == YAML_STREAM_END_EVENT)
                return std::nullopt;
            if (!take(event)) return offset(event.begin());
        }
    }

private:
    struct Level {
        bool is_mapping = false;
        bool at_key = false;
    };

    bool at_key() const { return !levels_.empty() && levels_.back().at_key; }
    // After a value the next scalar of a mapping is a key.
    void end_value() {
        if (!levels_.empty()) levels_.back().at_key = levels_.back().is_mapping;
    }

    bool take(const Event& event) {
        switch (event.type()) {
            case YAML_SCALAR_EVENT:
                at_key() ? take_key(event) : take_value(event);
                return true;
            case YAML_ALIAS_EVENT:
                if (at_key()) return false;
                end_value();
                return true;
            case YAML_MAPPING_START_EVENT:
            case YAML_SEQUENCE_START_EVENT:
                if (at_key() || levels_.size() >= kDeepest) return false;
                if (event.has_tag()) {
                    if (path_.empty()) return false;
                    path_.back() = kNoName;
                }
                path_.emplace_back();
                levels_.push_back({.is_mapping = event.type() == YAML_MAPPING_START_EVENT,
                                   .at_key = event.type() == YAML_MAPPING_START_EVENT});
                return true;
            case YAML_MAPPING_END_EVENT:
                path_.back().clear();
                visitor_.on_object_end(path_);
                [[fallthrough]];
            case YAML_SEQUENCE_END_EVENT:
                path_.pop_back();
                levels_.pop_back();
                end_value();
                return true;
            default:
                return true;
        }
    }

    void take_key(const Event& event) {
        path_.back() = event.text();
        levels_.back().at_key = false;
    }

    void take_value(const Event& event) {
        const std::string_view value = event.text();
        const std::size_t begin = offset(event.begin());
        if (event.has_tag()) {
            // What it makes is not known.
        } else if (event.is_quoted()) {
            visitor_.on_string(path_, value, begin + 1, offset(event.end()) - 1);
        } else if (is_one_of(value, kNull)) {
            visitor_.on_scalar(path_, "null", begin);
        } else if (is_one_of(value, kTrue) || is_one_of(value, kFalse)) {
            visitor_.on_scalar(path_, is_one_of(value, kTrue) ? "true" : "false", begin);
        } else if (is_number(value)) {
            visitor_.on_scalar(path_, value, begin);
        } else {
            visitor_.on_string(path_, value, begin, offset(event.end()));
        }
        end_value();
    }

    // libyaml counts characters, we count bytes. Continues from the last place: all values can be on one line.
    std::size_t offset(const yaml_mark_t& mark) {
        if (mark.line != line_ || mark.column < column_) {
            line_ = mark.line, column_ = 0;
            at_ = lines_[std::min(mark.line, lines_.size() - 1)];
        }
        for (; column_ < mark.column && at_ < text_.size(); ++column_) {
            ++at_;
            while (at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xC0) == 0x80) ++at_;
        }
        return at_;
    }

    std::string_view text_;
    std::vector<std::size_t> lines_;
    JsonVisitor& visitor_;
    yaml_parser_t parser_{};
    bool ready_ = false;
    std::size_t line_ = 0, column_ = 0, at_ = 0;  // the last place, and its offset
    std::vector<Level> levels_;
    JsonPath path_;
};

}  // namespace

std::optional<std::size_t> read_yaml(std::string_view text, JsonVisitor& visitor) {
    return Reader(text, visitor).run();
}

}  // namespace mp::lint::python
