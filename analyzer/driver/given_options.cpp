#include "analyzer/driver/given_options.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "analyzer/analyses/program_options.hpp"
#include "analyzer/analyses/support.hpp"
#include "kernels/base/files.hpp"
#include "kernels/base/sorted.hpp"

namespace mp::lint {
namespace {

bool is_quote(char c) { return c == '"' || c == '\''; }

std::string_view word_from(std::string_view text, std::size_t at, std::string_view also = "") {
    std::size_t end = at;
    while (end < text.size() && (is_part_of_name(text[end]) || also.find(text[end]) != also.npos)) ++end;
    return text.substr(at, end - at);
}

// The word before `end`, behind blanks and a closing quote: "fp16" of `"fp16" :`.
std::string_view word_before(std::string_view text, std::size_t end) {
    while (end > 0 && (text[end - 1] == ' ' || is_quote(text[end - 1]) || text[end - 1] == '\\')) --end;
    std::size_t begin = end;
    while (begin > 0 && is_part_of_name(text[begin - 1])) --begin;
    return text.substr(begin, end - begin);
}

bool is_off(std::string_view value) {
    constexpr std::array<std::string_view, 11> kOff{"",     "false", "False", "FALSE", "0",  "null",
                                                    "None", "none",  "no",    "off",   "Off"};
    return std::ranges::find(kOff, value) != kOff.end();
}

// Code turns an option on where it writes True; other values may be those of another name.
bool turns_on(std::string_view value, TextKind kind) {
    return kind == TextKind::code ? value == "True" || value == "true" : !is_off(value);
}

// The quoted option at `quote` is an argument of a call that defines one, after others: add_argument("-f", "--fp16".
bool is_defined(std::string_view text, std::size_t quote) {
    constexpr std::array<std::string_view, 3> kDefines{"argument", "option", "flag"};
    std::size_t at = quote;
    while (
        at > 0 && text[at - 1] != '(' &&
        (std::string_view(" \n\t\r\"'-,\\").find(text[at - 1]) != text.npos || is_part_of_name(text[at - 1])))
        --at;
    if (at == 0 || text[at - 1] != '(') return false;
    const std::string_view callee = word_before(text, at - 1);
    return std::ranges::any_of(kDefines, [&](std::string_view word) { return callee.ends_with(word); });
}

// The name that begins at `name` is an argument of a call that reads it as an option of its own library.
bool is_argument_of_library(std::string_view text, std::size_t name) {
    constexpr std::size_t kLongestCall = 2000;
    int depth = 0;
    for (std::size_t at = name; at > 0 && name - at < kLongestCall; --at) {
        if (text[at - 1] == ')') ++depth;
        if (text[at - 1] == '(' && depth-- == 0) return has_options_of_its_own(word_before(text, at - 1));
    }
    return false;
}

class Reader {
public:
    Reader(std::string_view text, TextKind kind) : text_(text), kind_(kind) {
        // All Python files of a tree are read here, and find_first_of() takes twice as long.
        for (std::size_t at = 0; at < text.size(); ++at) {
            if (text[at] == '-') command_option(at);
            if (text[at] == ':' || text[at] == '=') assigned(at);
        }
    }

    std::vector<std::uint64_t> take() {
        sort_unique(found_);
        return std::move(found_);
    }

private:
    // --fp16, --fp-16, --fp16=true
    void command_option(std::size_t at) {
        const bool begins = at == 0 || (!is_part_of_name(text_[at - 1]) && text_[at - 1] != '-');
        if (!begins || text_.substr(at, 2) != "--") return;
        const std::string_view name = word_from(text_, at + 2, "-.");
        if (name.empty() || (at > 0 && is_quote(text_[at - 1]) && is_defined(text_, at - 1))) return;
        const std::size_t after = at + 2 + name.size();
        if (after < text_.size() && (text_[after] == '=' || text_[after] == ' ') &&
            is_off_value(word_from(text_, after + 1)))
            return;
        std::string normal(name.substr(name.rfind('.') + 1));
        std::ranges::replace(normal, '-', '_');
        found_.push_back(hash_bytes(normal));
        note_value(normal, after + 1);
    }

    // "mixed_precision=fp16" for the option and its value.
    void note_value(std::string_view name, std::size_t at) {
        while (at < text_.size() && (text_[at] == ' ' || is_quote(text_[at]) || text_[at] == '\\')) ++at;
        const std::string_view value = word_from(text_, std::min(at, text_.size()), "-");
        if (names_low_precision(value))
            found_.push_back(hash_bytes(std::string(name) + "=" + std::string(value)));
    }

    // Of an option in a command a missing value is none that is off.
    static bool is_off_value(std::string_view value) { return !value.empty() && is_off(value); }

    // fp16 = True, fp16: true, "fp16": true, trainer.fp16=true
    void assigned(std::size_t at) {
        if (at + 1 < text_.size() && text_[at + 1] == '=') return;
        std::size_t from = at + 1;
        while (from < text_.size() && (text_[from] == ' ' || is_quote(text_[from]))) ++from;
        const std::string_view value = word_from(text_, from);
        if (names_low_precision(value)) note_value(word_before(text_, at), from);
        const bool is_nested =
            value.empty() && from < text_.size() && text_[from] != '\n' && text_[from] != '\r';
        if (!turns_on(value, kind_) && !(is_nested && kind_ == TextKind::data)) return;
        const std::string_view name = word_before(text_, at);
        if (name.empty()) return;
        const auto begin = static_cast<std::size_t>(name.data() - text_.data());
        if (kind_ == TextKind::data || !is_argument_of_library(text_, begin))
            found_.push_back(hash_bytes(name));
    }

    std::string_view text_;
    TextKind kind_;
    std::vector<std::uint64_t> found_;
};

}  // namespace

bool is_project_text(std::string_view path) {
    constexpr std::array<std::string_view, 16> kEndings{".sh",  ".bash", ".slurm", ".sbatch", ".pbs",  ".bat",
                                                        ".ps1", ".yaml", ".yml",   ".json",   ".toml", ".cfg",
                                                        ".ini", ".md",   ".rst",   ".gin"};
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name == "Makefile" || name == "Dockerfile" ||
           std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); });
}

std::vector<std::uint64_t> given_options(std::string_view text, TextKind kind) {
    return Reader(text, kind).take();
}

}  // namespace mp::lint
