#include "analyzer/suppress/python_lines.hpp"

#include <algorithm>
#include <array>

namespace mp::lint {
namespace {

class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {}

    std::vector<PythonLine> run() {
        lines_.push_back({.first = 1});
        while (at_ < text_.size()) step();
        end_statement();
        return std::move(lines_);
    }

private:
    bool is(std::string_view word) const { return text_.substr(at_).starts_with(word); }

    void step() {
        const char c = text_[at_];
        if (c == '\n') {
            // A string in single quotes ends at the line end, even when it is not closed.
            if (quote_.size() == 1) quote_ = {};
            end_line(quote_.empty() && depth_ == 0);
        } else if (c == '\\') {
            escape();
        } else if (!quote_.empty()) {
            in_string();
        } else {
            in_code(c);
        }
    }

    // A backslash also consumes the next character, including a line end.
    void escape() {
        ++at_;
        if (is("\r\n")) ++at_;
        if (at_ >= text_.size()) return;
        if (text_[at_] == '\n') {
            end_line(false);
        } else {
            ++at_;
        }
    }

    void in_string() {
        if (!is(quote_)) {
            ++at_;
            return;
        }
        at_ += quote_.size();
        quote_ = {};
    }

    void in_code(char c) {
        if (c == '#') {
            lines_.back().comment = at_ - line_start_;
            at_ = std::min(text_.find('\n', at_), text_.size());
            return;
        }
        if (c == '"' || c == '\'') {
            const std::string_view three = c == '"' ? R"(""")" : "'''";
            quote_ = is(three) ? three : three.substr(0, 1);
            at_ += quote_.size();
            return;
        }
        if (c == '(' || c == '[' || c == '{') ++depth_;
        if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
        ++at_;
    }

    void end_line(bool ends_statement) {
        ++at_;
        line_start_ = at_;
        if (ends_statement || starts_definition()) {
            end_statement();
            depth_ = 0;
            statement_ = lines_.size();
        }
        lines_.push_back({.first = statement_ + 1});
    }

    // Whether an unclosed bracket ends here: code inside brackets never begins like this in column 1.
    bool starts_definition() const {
        static constexpr std::array<std::string_view, 6> kWords{"def ",    "class ", "async def ",
                                                                "import ", "from ",  "@"};
        return quote_.empty() && depth_ > 0 &&
               std::ranges::any_of(kWords, [this](std::string_view word) { return is(word); });
    }

    void end_statement() {
        for (std::size_t i = statement_; i < lines_.size(); ++i) lines_[i].last = lines_.size();
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t line_start_ = 0;
    std::size_t statement_ = 0;  // index of its first line
    std::size_t depth_ = 0;
    std::string_view quote_;  // the quotes that end the current string
    std::vector<PythonLine> lines_;
};

}  // namespace

std::vector<PythonLine> python_lines(std::string_view text) { return Scanner(text).run(); }

}  // namespace mp::lint
