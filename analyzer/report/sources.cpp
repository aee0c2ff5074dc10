#include "analyzer/report/sources.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

namespace mp::lint {
namespace {

// In bytes of UTF-8: each half of a surrogate pair stands for two of the four.
std::size_t utf8_length(unsigned unit) {
    if (unit < 0x80) return 1;
    return unit < 0x800 || (unit >= 0xD800 && unit < 0xE000) ? 2 : 3;
}

// The length of a piece of a JSON string without its escapes.
std::size_t decoded_length(std::string_view raw) {
    std::size_t length = 0;
    while (!raw.empty()) {
        std::size_t taken = 1, decoded = 1;
        if (raw.starts_with("\\u")) {
            const std::string_view digits = raw.substr(2, 4);
            unsigned unit = 0;
            std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
            taken = 6;
            decoded = utf8_length(unit);
        } else if (raw.starts_with('\\')) {
            taken = 2;
        }
        raw.remove_prefix(std::min(taken, raw.size()));
        length += decoded;
    }
    return length;
}

}  // namespace

void Sources::add(std::string path, std::string text) {
    File file{.text = std::move(text), .starts = {0}, .cells = {}};
    const std::string_view all = file.text;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i] == '\n' || (all[i] == '\r' && !all.substr(i + 1).starts_with('\n')))
            file.starts.push_back(i + 1);
    }
    files_.insert_or_assign(std::move(path), std::move(file));
}

void Sources::add_cells(std::string_view path, std::vector<CellLine> lines) {
    const auto it = files_.find(path);
    if (it != files_.end()) it->second.cells = std::move(lines);
}

const std::vector<CellLine>& Sources::cells(std::string_view path) const {
    static const std::vector<CellLine> none;
    const auto it = files_.find(path);
    return it == files_.end() ? none : it->second.cells;
}

const CellLine* Sources::cell_line(std::string_view path, std::size_t line, std::size_t column) const {
    const std::vector<CellLine>& all = cells(path);
    const auto after = std::ranges::upper_bound(
        all, std::tuple(line, std::max<std::size_t>(column, 1)), {},
        [](const CellLine& c) { return std::tuple<std::size_t, std::size_t>(c.line, c.column); });
    return after == all.begin() || (after - 1)->line != line ? nullptr : &*(after - 1);
}

std::size_t Sources::column_in(const CellLine& code, std::string_view path, std::size_t column) const {
    if (column < code.column) return column;
    const std::string_view in_file = line(path, code.line);
    const std::size_t begin = std::min<std::size_t>(code.column - 1, in_file.size());
    return decoded_length(in_file.substr(begin, column - code.column)) + 1;
}

std::string_view Sources::text(std::string_view path) const {
    const auto it = files_.find(path);
    return it == files_.end() ? std::string_view() : it->second.text;
}

std::string_view Sources::line(std::string_view path, std::size_t number) const {
    const auto it = files_.find(path);
    if (it == files_.end() || number == 0 || number > it->second.starts.size()) return {};
    const File& file = it->second;
    const std::size_t from = file.starts[number - 1];
    const std::size_t to = number < file.starts.size() ? file.starts[number] - 1 : file.text.size();
    std::string_view line = std::string_view(file.text).substr(from, to - from);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

std::optional<std::size_t> Sources::offset(std::string_view path, std::size_t number,
                                           std::size_t column) const {
    const auto it = files_.find(path);
    if (it == files_.end() || number == 0 || number > it->second.starts.size()) return std::nullopt;
    if (column == 0 || column - 1 > line(path, number).size()) return std::nullopt;
    return it->second.starts[number - 1] + column - 1;
}

std::size_t Sources::line_count(std::string_view path) const {
    const auto it = files_.find(path);
    return it == files_.end() ? 0 : it->second.starts.size();
}

}  // namespace mp::lint
