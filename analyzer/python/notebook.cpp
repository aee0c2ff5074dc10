#include "analyzer/python/notebook.hpp"

#include <algorithm>

#include "analyzer/python/notebook_magics.hpp"

namespace mp::lint::python {

// Collects the code. A cell is an object in an array called "cells" (at the top in nbformat 4, below
// "worksheets" in nbformat 3). Its keys come in any order, so its strings are kept until it ends.
class NotebookReader : public JsonVisitor {
public:
    explicit NotebookReader(Notebook& notebook) : book_(notebook) {}

    void on_string(const JsonPath& path, std::string_view value, std::size_t begin,
                   std::size_t end) override {
        const std::size_t depth = path.size();
        if (depth == 0) return;
        const bool in_array = depth > 1 && path.back().empty();
        const std::string& name = in_array ? path[depth - 2] : path.back();
        if ((name == "source" || name == "input") && is_cell(path, in_array ? depth - 1 : depth))
            strings_.push_back({begin, end});
        else if (name == "cell_type" && !in_array && is_cell(path, depth))
            is_code_ = value == "code";
        else if (name == "name" && depth == 3 && path[0] == "metadata" && path[1] == "language_info")
            is_python_ = value == "python" || value == "ipython";
    }

    void on_object_end(const JsonPath& path) override {
        if (!is_cell(path, path.size())) return;
        saw_cells_ = true;
        ++number_;
        if (is_code_) add_code();
        strings_.clear();
        is_code_ = false;
    }

    bool is_python() const { return is_python_; }
    bool saw_cells() const { return saw_cells_; }

private:
    struct Piece {
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    static bool is_cell(const JsonPath& path, std::size_t depth) {
        if (depth != 3 && depth != 5) return false;
        const bool is = path[depth - 3] == "cells" && path[depth - 2].empty();
        return is && (depth == 3 || path[0] == "worksheets");
    }

    void add_code() {
        const std::size_t begin = book_.text_.size();
        book_.cells_.push_back({begin, number_});
        for (const Piece& piece : strings_) add_string(piece);
        if (!book_.text_.empty() && book_.text_.back() != '\n') book_.text_ += '\n';
        blank_magics(book_.text_, begin, book_.text_.size());
    }

    void add_string(const Piece& piece) {
        bool fresh = true;
        for (std::size_t at = piece.begin; at < piece.end;) {
            if (fresh) book_.runs_.push_back({book_.text_.size(), at});
            const JsonCharacter next = decode_character(book_.json_.substr(at, piece.end - at));
            book_.text_ += next.decoded;
            fresh = next.decoded == "\n";
            at += next.raw;
        }
    }

    Notebook& book_;
    std::vector<Piece> strings_;
    std::uint32_t number_ = 0;
    bool is_code_ = false;
    bool is_python_ = true;
    bool saw_cells_ = false;
};

Result<Notebook> Notebook::read(std::string_view json, std::string_view file) {
    Notebook book;
    book.json_ = json;
    book.file_lines_ = line_starts(json);
    NotebookReader reader(book);
    const std::optional<std::size_t> broken = read_json(json, reader);
    if (broken || !reader.saw_cells()) {
        const Place where = place_of(book.file_lines_, broken.value_or(0));
        return Error{std::string(file) + ":" + std::to_string(where.line) + ":" +
                         std::to_string(where.column) +
                         (broken ? ": not JSON from here on" : ": no cells: not a notebook"),
                     "open it in Jupyter and save it again"};
    }
    if (!reader.is_python()) {
        book.text_.clear();
        book.runs_.clear();
        book.cells_.clear();
    }
    book.lines_ = line_starts(book.text_);
    return book;
}

std::size_t Notebook::offset_in_file(std::size_t in_text) const {
    const auto after = std::ranges::upper_bound(runs_, in_text, {}, &Run::text);
    if (after == runs_.begin()) return 0;
    const Run& run = *(after - 1);
    std::size_t at = run.file, text = run.text;
    while (text < in_text && at < json_.size() && json_[at] != '"') {
        const JsonCharacter next = decode_character(json_.substr(at));
        text += next.decoded.size();
        at += next.raw;
    }
    return at;
}

Place Notebook::in_file(Place in_text) const {
    if (in_text.line == 0 || lines_.empty()) return {};
    const std::size_t line = std::min<std::size_t>(in_text.line, lines_.size()) - 1;
    const std::size_t column = in_text.column == 0 ? 0 : in_text.column - 1;
    return place_of(file_lines_, offset_in_file(lines_[line] + column));
}

std::vector<CodeLine> Notebook::lines() const {
    std::vector<CodeLine> out;
    const std::string_view text = text_;
    std::uint32_t cell_begins = 0;
    std::size_t next_cell = 0;
    for (std::uint32_t n = 1; n <= lines_.size(); ++n) {
        const std::size_t begin = lines_[n - 1];
        const std::size_t end = n < lines_.size() ? lines_[n] - 1 : text.size();
        if (begin >= text.size()) break;
        while (next_cell < cells_.size() && cells_[next_cell].begin <= begin) {
            cell_begins = n;
            ++next_cell;
        }
        out.push_back({.text = text.substr(begin, end - begin),
                       .in_file = in_file({n, 1}),
                       .cell = cells_[next_cell - 1].number,
                       .line = n - cell_begins + 1});
    }
    return out;
}

}  // namespace mp::lint::python
