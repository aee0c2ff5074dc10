#pragma once

// Jupyter notebooks: the code cells as one Python text, with a map from each place in the text to the place
// in the .ipynb file. IPython syntax that is not Python (%magics, !commands, help?) is replaced by text of
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

struct CodeLine {
    std::string_view text;  // without its line end
    Place in_file;
    std::uint32_t cell = 0;  // code and text cells together, from 1, as Jupyter shows them
    std::uint32_t line = 0;  // in the cell, from 1
};

class Notebook {
public:
    // The Error contains the place of the JSON error ("nb.ipynb:3:7: ..."). A notebook of another language
    // has no text. `json` must outlive the notebook.
    static Result<Notebook> read(std::string_view json, std::string_view file);

    const std::string& text() const { return text_; }

    // The place in the .ipynb file for a place in text().
    Place in_file(Place in_text) const;

    // The lines of text(), which must outlive them.
    std::vector<CodeLine> lines() const;

private:
    // From this place to the next run, the text is contiguous in the file: one JSON string, or one line of
    // it, except for escapes.
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

// Facts of a notebook. All spans are places in the .ipynb file. A file that is not JSON is a failed unit.
Unit extract_notebook(const Source& source);

}  // namespace mp::lint::python
