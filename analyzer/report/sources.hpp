#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mp::lint {

// A line of code in a notebook, and where it begins in the .ipynb file.
struct CellLine {
    std::string text;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t cell = 0;          // as Jupyter counts them, from 1
    std::uint32_t line_in_cell = 0;  // from 1
};

// The text of the files that findings refer to, by path. The driver fills it, so reports open no files.
class Sources {
public:
    void add(std::string path, std::string text);
    // The code of a notebook that was added, in the order of the file.
    void add_cells(std::string_view path, std::vector<CellLine> lines);

    bool has(std::string_view path) const { return files_.contains(path); }
    // The whole text; empty when the file is not stored.
    std::string_view text(std::string_view path) const;
    // Lines count from 1, without line end; empty when the line does not exist.
    std::string_view line(std::string_view path, std::size_t number) const;
    // The offset in the text of a line and a column in bytes, both from 1; the column may be one past the
    // line. Nothing when the place does not exist.
    std::optional<std::size_t> offset(std::string_view path, std::size_t line, std::size_t column) const;
    std::size_t line_count(std::string_view path) const;

    // The code of a notebook; empty for other files.
    const std::vector<CellLine>& cells(std::string_view path) const;
    // The line of code of a notebook that contains a place of the file; nullptr when there is none.
    const CellLine* cell_line(std::string_view path, std::size_t line, std::size_t column) const;
    // The column of that place in the text of its line of code. In the file it is inside a JSON string.
    std::size_t column_in(const CellLine&, std::string_view path, std::size_t column) const;

private:
    struct File {
        std::string text;
        std::vector<std::size_t> starts;  // of each line
        std::vector<CellLine> cells;
    };
    std::map<std::string, File, std::less<>> files_;
};

}  // namespace mp::lint
