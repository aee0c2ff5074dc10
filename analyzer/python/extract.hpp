#pragma once

// The Python front end: one source file to facts (docs/facts_format.md, "Python"). The code is parsed,
// never run.

#include <string>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint::python {

struct Source {
    std::string path;    // absolute; the name in spans
    std::string module;  // dotted name: "pkg.train" (module_name)
    std::string_view text;
};

// Facts of one file. Never fails: parse errors are counted in Coverage.errors, and the rest is analysed
// (UnitState::partial). The caller fills in the dependencies.
Unit extract(const Source& source);

// Facts of one file by its type: `extract` for Python, the cells of an .ipynb (notebook.hpp), the settings and values
// of a .json, .yaml or .txt configuration (config_files.hpp; no functions when it has none).
Unit extract_file(const Source& source);

// Whether the facts of a text can matter to other files. A cheap search for a few words, which may return true
// too often. The driver extracts every file with a trigger word of a rule as well. The path identifies an
// __init__.py. For Python and notebooks; configurations are small and always read.
bool is_relevant(std::string_view path, std::string_view text);

// "pkg.train" for "<root>/pkg/train.py": the path below the outermost directory that holds an
// __init__.py, or else below `root`; "pkg" for "pkg/__init__.py".
std::string module_name(const std::string& path, const std::string& root);

}  // namespace mp::lint::python
