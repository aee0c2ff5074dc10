#pragma once

// Jupyter notebooks: the code cells as one Python text, and for every place of it the place in the
// .ipynb file. What is IPython's and not Python's (%magics, !commands, help?) is blanked out at
// equal length.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/python/extract.hpp"
#include "analyzer/python/json_reader.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint::python {

struct CellPlace {
    std::uint32_t cell = 0;  // code and text cells together, from 1, as Jupyter shows them
    std::uint32_t line = 0;  // in the cell, from 1
};

class Notebook {
public:
    // An Error says where the JSON breaks ("nb.ipynb:3:7: ..."). A notebook of another language has
    // no text. `json` must outlive the notebook.
    static Result<Notebook> read(std::string_view json, std::string_view file);

    const std::string& text() const { return text_; }

    // Where a place of text() stands in the .ipynb file.
    Place in_file(Place in_text) const;

    // The cell that holds a line of the .ipynb file; nothing between the cells.
    std::optional<CellPlace> cell_at(std::uint32_t line_in_file) const;

private:
    // From here to the next run, the text is in the file without a break in between: one string of
    // the JSON, or a line of it, escapes aside.
    struct Run {
        std::size_t text = 0;
        std::size_t file = 0;
    };
    struct Cell {
        std::size_t begin = 0;  // in text_
        std::uint32_t number = 0;
    };
    friend class NotebookReader;

    std::size_t offset_in_file(std::size_t in_text) const;

    std::string_view json_;
    std::string text_;
    std::vector<Run> runs_;
    std::vector<Cell> cells_;
    std::vector<std::size_t> lines_;       // where the lines of text_ begin
    std::vector<std::size_t> file_lines_;  // where those of json_ do
};

// Facts of a notebook. All spans are places in the .ipynb file. One that is not JSON is a failed
// unit.
Unit extract_notebook(const Source& source);

// "cell 3, line 2" for a line of an .ipynb file, for those who read the notebook in a browser.
std::optional<CellPlace> cell_at(std::string_view json, std::uint32_t line_in_file);

}  // namespace mp::lint::python
