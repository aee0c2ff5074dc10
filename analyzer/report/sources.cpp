#include "analyzer/report/sources.hpp"

#include <utility>

namespace mp::lint {

void Sources::add(std::string path, std::string text) {
    File file{.text = std::move(text), .starts = {0}};
    for (std::size_t i = 0; i < file.text.size(); ++i) {
        if (file.text[i] == '\n') file.starts.push_back(i + 1);
    }
    files_.insert_or_assign(std::move(path), std::move(file));
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
