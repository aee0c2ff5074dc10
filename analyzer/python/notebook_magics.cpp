#include "analyzer/python/notebook_magics.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace mp::lint::python {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string_view without_blanks(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(" \t\r\n") + 1 - first);
}

// "%time", "!ls"; not "% b" and "!= b", which continue the line above.
bool starts_magic(std::string_view code) {
    if (code.size() < 2) return false;
    if (code[0] == '%') return is_letter(code[1]) || code[1] == '%';
    if (code[0] == '!') return code[1] != '=';
    return code[0] == '?';
}

// "torch.nn?"
bool asks_for_help(std::string_view code) {
    if (!code.ends_with('?')) return false;
    code = code.substr(0, code.find_last_not_of('?') + 1);
    return !code.empty() && std::ranges::all_of(code, [](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '*';
    });
}

// The start of the command in "files = !ls" and "t = %timeit f()"; npos when there is none.
std::size_t assigned_command(std::string_view line) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::string_view::npos;
    const std::size_t first = line.find_first_not_of(" \t", equals + 1);
    if (first == std::string_view::npos) return std::string_view::npos;
    const std::string_view target = without_blanks(line.substr(0, equals));
    const bool names_only = std::ranges::all_of(
        target, [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == ',' || c == ' '; });
    return names_only && starts_magic(line.substr(first)) ? first : std::string_view::npos;
}

// Replaces the text by an expression without effect, then blanks.
void blank(std::string& text, std::size_t begin, std::size_t end) {
    while (end > begin && (text[end - 1] == '\n' || text[end - 1] == '\r')) --end;
    const bool fits = end - begin >= 3;
    for (std::size_t i = begin; i < end; ++i) text[i] = fits && i < begin + 3 ? '.' : ' ';
    if (!fits && end > begin) text[begin] = '0';
}

// The rest of the cell is Python only after these.
bool is_python_cell_magic(std::string_view code) {
    constexpr std::array<std::string_view, 9> kPython{"%%capture", "%%debug",   "%%prun",
                                                      "%%python",  "%%python3", "%%time",
                                                      "%%timeit",  "%%memit",   "%%mprun"};
    const std::string_view name = code.substr(0, code.find_first_of(" \t\r\n"));
    return std::ranges::find(kPython, name) != kPython.end();
}

void blank_all(std::string& text, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        if (text[i] != '\n' && text[i] != '\r') text[i] = ' ';
}

}  // namespace

void blank_magics(std::string& text, std::size_t begin, std::size_t end) {
    const std::string_view cell = std::string_view(text).substr(begin, end - begin);
    if (const std::size_t first = cell.find_first_not_of(" \t\r\n"); first != std::string_view::npos)
        if (const std::string_view code = cell.substr(first);
            code.starts_with("%%") && !is_python_cell_magic(code))
            return blank_all(text, begin, end);
    bool continued = false;  // the line above was a command that ends in a backslash
    for (std::size_t at = begin; at < end;) {
        const std::size_t newline = text.find('\n', at);
        const std::size_t next = newline == std::string::npos || newline >= end ? end : newline + 1;
        const std::string_view line = std::string_view(text).substr(at, next - at);
        const std::string_view code = without_blanks(line);
        const std::size_t assigned = assigned_command(line);
        const bool is_magic = starts_magic(code) || asks_for_help(code);
        const bool goes_on = code.ends_with('\\');
        if (continued)
            blank_all(text, at, next);
        else if (is_magic)
            blank(text, at + line.find_first_not_of(" \t"), next);
        else if (assigned != std::string_view::npos)
            blank(text, at + assigned, next);
        continued = goes_on && (continued || is_magic || assigned != std::string_view::npos);
        at = next;
    }
}

}  // namespace mp::lint::python
