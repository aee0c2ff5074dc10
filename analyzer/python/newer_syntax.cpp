#include "analyzer/python/newer_syntax.hpp"

#include <algorithm>
#include <cctype>

namespace mp::lint::python {
namespace {

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

class Rewriter {
public:
    explicit Rewriter(std::string_view text) : text_(text) {}

    std::string run() {
        while (at_ < text_.size()) {
            if (text_[at_] == '#')
                at_ = std::min(text_.find('\n', at_), text_.size());
            else if (text_[at_] == '"' || text_[at_] == '\'')
                skip_string();
            else if (is_word(text_[at_]))
                take_word();
            else
                take_mark();
        }
        return changed_ ? std::move(text_) : std::string{};
    }

private:
    // A name, a keyword, or the prefix of a string.
    void take_word() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_word(text_[at_])) ++at_;
        const std::string word = text_.substr(begin, at_ - begin);
        begins_value_ = word == "return" || word == "yield" || word == "in";
        if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
            const std::size_t t = word.find_first_of("tT");
            constexpr std::size_t kLongestPrefix = 2;
            if (word.size() > kLongestPrefix || t == std::string::npos) return;
            text_[begin + t] = 'f';
            changed_ = true;
            return;
        }
        if (word != "def" && word != "class" && word != "type") return;
        while (at_ < text_.size() && (text_[at_] == ' ' || is_word(text_[at_]))) ++at_;
        if (at_ < text_.size() && text_[at_] == '[') blank_defaults();
    }

    void take_mark() {
        const char c = text_[at_];
        if (c == ' ' && depth_ == 0 && begins_value_) name_splat();
        depth_ += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        if (c != ' ') begins_value_ = c == ',' || c == '=';
        ++at_;
    }

    // In a tuple without parentheses the grammar wants a name after the star, not a bracket. With a name in the place
    // of the blank the star is before an unknown call or table.
    void name_splat() {
        const std::string_view next = std::string_view(text_).substr(at_ + 1, 2);
        if (next != "*(" && next != "*[") return;
        text_[at_] = '*';
        text_[at_ + 1] = '_';
        changed_ = true;
    }

    // Blanks the defaults of the type parameters that begin here.
    void blank_defaults() {
        int depth = 1;
        ++at_;
        for (bool blank = false; depth > 0 && at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            depth += (c == '[' || c == '(') - (c == ']' || c == ')');
            if (depth == 1 && (c == '=' || c == ',')) blank = c == '=';
            if (blank && depth > 0 && c != '\n') text_[at_] = ' ', changed_ = true;
        }
    }

    void skip_string() {
        const char quote = text_[at_];
        const bool is_long = text_.compare(at_, 3, std::string(3, quote)) == 0;
        const std::size_t width = is_long ? 3 : 1;
        for (at_ += width; at_ < text_.size(); ++at_) {
            if (text_[at_] == '\\') {
                ++at_;
            } else if (!is_long && text_[at_] == '\n') {
                return;
            } else if (text_.compare(at_, width, std::string(width, quote)) == 0) {
                at_ += width;
                return;
            }
        }
    }

    std::string text_;
    std::size_t at_ = 0;
    int depth_ = 0;              // of open brackets
    bool begins_value_ = false;  // what came before
    bool changed_ = false;
};

}  // namespace

std::string in_older_syntax(std::string_view text) { return Rewriter(text).run(); }

}  // namespace mp::lint::python
