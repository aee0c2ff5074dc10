#include "analyzer/clang/command_line.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "kernels/base/files.hpp"

namespace fs = std::filesystem;

namespace mp::lint {
namespace {

// Limits: a response file that names itself twice doubles at each level. Real ones nest once.
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxWords = 100'000;
constexpr std::uintmax_t kMaxBytes = 16u << 20;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

class Splitter {
public:
    explicit Splitter(std::string_view text) : text_(text) {}

    std::vector<std::string> words() {
        while (at_ < text_.size()) step();
        finish();
        return std::move(words_);
    }

private:
    void step() {
        const char c = text_[at_++];
        if (is_blank(c)) {
            finish();
        } else if (c == '\'' || c == '"') {
            open_ = true;
            quoted(c);
        } else if (c == '\\' && at_ < text_.size()) {
            open_ = true;
            if (text_[at_] != '\n') word_ += text_[at_];  // a backslash before a line end joins the lines
            ++at_;
        } else {
            open_ = true;
            word_ += c;
        }
    }

    // In double quotes a backslash escapes only the characters of the shell; "\d" keeps its backslash.
    void quoted(char quote) {
        constexpr std::string_view special = "\"\\$`";
        while (at_ < text_.size() && text_[at_] != quote) {
            if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size() &&
                special.find(text_[at_ + 1]) != special.npos) {
                ++at_;
            }
            word_ += text_[at_++];
        }
        ++at_;
    }

    void finish() {
        if (open_) words_.push_back(std::move(word_));
        word_.clear();
        open_ = false;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    bool open_ = false;  // a word has begun; it may be empty: ""
    std::string word_;
    std::vector<std::string> words_;
};

std::optional<std::string> read_response_file(const fs::path& path, CommandNotes& notes) {
    std::string text;
    if (read_file(path.string(), text, kMaxBytes)) return text;
    notes.warn("@" + path.string() + ": cannot be read as a response file; its options are missing");
    return std::nullopt;
}

class Expander {
public:
    Expander(const std::string& directory, bool is_nvcc, CommandNotes& notes)
        : directory_(directory), is_nvcc_(is_nvcc), notes_(notes) {}

    void expand(const std::vector<std::string>& arguments, int depth) {
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            if (out.size() >= kMaxWords) return notes_.warn("the command is too long; the rest is ignored");
            if (const auto files = files_named(arguments, i)) {
                for (const auto& file : *files) expand_file(file, depth);
            } else {
                out.push_back(arguments[i]);
            }
        }
    }

    std::vector<std::string> out;

private:
    // The contents of the response file that argument i names. Advances i when the name is the next
    // argument.
    std::optional<std::vector<std::string>> files_named(const std::vector<std::string>& arguments,
                                                        std::size_t& i) const {
        const std::string& word = arguments[i];
        if (word.size() > 1 && word[0] == '@') return std::vector{word.substr(1)};
        if (!is_nvcc_) return std::nullopt;
        const std::string name = word.substr(0, word.find('='));
        if (name != "--options-file" && name != "-options-file" && name != "-optf" && name != "--optf") {
            return std::nullopt;
        }
        std::string value;
        if (name.size() < word.size()) {
            value = word.substr(name.size() + 1);
        } else if (i + 1 < arguments.size()) {
            value = arguments[++i];
        }
        std::vector<std::string> files;
        for (std::size_t at = 0; at <= value.size();) {
            const auto comma = std::min(value.find(',', at), value.size());
            files.push_back(value.substr(at, comma - at));
            at = comma + 1;
        }
        return files;
    }

    void expand_file(const std::string& name, int depth) {
        const fs::path path = fs::path(directory_) / name;
        if (depth >= kMaxDepth) return notes_.warn("@" + path.string() + ": response files nest too deeply");
        if (const auto text = read_response_file(path, notes_)) expand(split_command(*text), depth + 1);
    }

    const std::string& directory_;
    bool is_nvcc_;
    CommandNotes& notes_;
};

}  // namespace

void CommandNotes::warn(std::string text) {
    if (std::find(warnings.begin(), warnings.end(), text) == warnings.end())
        warnings.push_back(std::move(text));
}

std::vector<std::string> split_command(std::string_view command) { return Splitter(command).words(); }

std::vector<std::string> expand_response_files(const std::vector<std::string>& arguments,
                                               const std::string& directory, bool is_nvcc,
                                               CommandNotes& notes) {
    Expander expander(directory, is_nvcc, notes);
    expander.expand(arguments, 0);
    return std::move(expander.out);
}

}  // namespace mp::lint
