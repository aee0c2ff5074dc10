#include "analyzer/python/yaml_reader.hpp"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "analyzer/python/constants.hpp"
#include "analyzer/python/library/dotted.hpp"
#include "analyzer/python/yaml_anchors.hpp"

namespace mp::lint::python {
namespace {

constexpr std::size_t kDeepest = 32;
constexpr std::string_view kNoName = ".";
constexpr std::string_view kMergeKey = "<<";

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
    // The name behind & or *; empty without one.
    std::string_view anchor() const {
        const yaml_char_t* name = nullptr;
        if (event_.type == YAML_ALIAS_EVENT) name = event_.data.alias.anchor;
        if (event_.type == YAML_SCALAR_EVENT) name = event_.data.scalar.anchor;
        if (event_.type == YAML_MAPPING_START_EVENT) name = event_.data.mapping_start.anchor;
        if (event_.type == YAML_SEQUENCE_START_EVENT) name = event_.data.sequence_start.anchor;
        return name != nullptr ? reinterpret_cast<const char*>(name) : "";
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
        std::string anchor{};               // of this node
        std::set<std::string> keys{};       // of a mapping, so far
        std::vector<std::string> merged{};  // anchors of the mappings that it takes its other keys from
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
                take_alias(event.anchor());
                end_value();
                return true;
            case YAML_MAPPING_START_EVENT:
            case YAML_SEQUENCE_START_EVENT:
                if (at_key() || levels_.size() >= kDeepest) return false;
                if (event.has_tag()) {
                    if (path_.empty()) return false;
                    path_.back() = kNoName;
                }
                open_level(event);
                return true;
            case YAML_MAPPING_END_EVENT:
                end_mapping();
                [[fallthrough]];
            case YAML_SEQUENCE_END_EVENT:
                if (!levels_.back().anchor.empty()) visitor_.close(levels_.back().anchor);
                path_.pop_back();
                levels_.pop_back();
                end_value();
                return true;
            default:
                return true;
        }
    }

    void open_level(const Event& event) {
        const bool is_mapping = event.type() == YAML_MAPPING_START_EVENT;
        // What a tag makes of the node is not known behind an alias either.
        const std::string anchor(event.has_tag() ? "" : event.anchor());
        if (!anchor.empty()) visitor_.open(anchor, path_.size());
        path_.emplace_back();
        levels_.push_back({.is_mapping = is_mapping, .at_key = is_mapping, .anchor = anchor});
    }

    // The keys that are written here win over those of merged mappings, wherever the merge key stands.
    void end_mapping() {
        path_.back().clear();
        const JsonPath mapping(path_.begin(), path_.end() - 1);
        Level& level = levels_.back();
        for (const std::string& anchor : level.merged) visitor_.merge(anchor, mapping, level.keys);
        visitor_.on_object_end(path_);
    }

    void take_alias(std::string_view anchor) {
        const bool in_list = !levels_.empty() && !levels_.back().is_mapping;
        const std::size_t mapping = levels_.size() - (in_list ? 2 : 1);
        if (mapping < levels_.size() && levels_[mapping].is_mapping && path_[mapping] == kMergeKey)
            levels_[mapping].merged.emplace_back(anchor);
        else
            visitor_.repeat(anchor, path_);
    }

    void take_key(const Event& event) {
        path_.back() = event.text();
        levels_.back().keys.insert(path_.back());
        levels_.back().at_key = false;
    }

    void take_value(const Event& event) {
        const std::string_view value = event.text();
        const std::size_t begin = offset(event.begin());
        const std::string_view anchor = event.has_tag() ? "" : event.anchor();
        if (!anchor.empty()) visitor_.open(anchor, path_.size());
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
        if (!anchor.empty()) visitor_.close(anchor);
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
    YamlAnchors visitor_;
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
