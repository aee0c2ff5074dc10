#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/clang/extract.hpp"
#include "analyzer/config/selection.hpp"
#include "analyzer/python/extract.hpp"
#include "analyzer/report/sources.hpp"

namespace mp::lint {

// The front ends of a run as functions, so that tests can run the driver without a compiler.
struct FrontEnds {
    Invocation (*translate)(const CompileCommand&, const ExtractOptions&) = nullptr;
    Unit (*extract)(const Invocation&, const ExtractOptions&) = nullptr;
    std::string (*version)() = nullptr;  // of the extractor
    CompileCommand (*default_command)(const std::string& file,
                                      const std::vector<std::string>& flags) = nullptr;
    Result<CompileDatabase> (*load_database)(const std::string& path) = nullptr;
    std::string (*find_database)(const std::string& start) = nullptr;
    // Python. Null: Python files are not analysed.
    Unit (*extract_python)(const python::Source&) = nullptr;
    bool (*is_relevant)(std::string_view path, std::string_view text) = nullptr;
    // Names of configuration files in the code of a unit, as written there.
    std::vector<std::string> (*configuration_files)(const Unit&) = nullptr;
    std::string (*module_name)(const std::string& path, const std::string& root) = nullptr;
    // The lines of code of a notebook.
    std::vector<CellLine> (*cell_lines)(std::string_view json) = nullptr;
    Rules rules;
    std::string_view (*rule_page)(std::string_view id) = nullptr;
};

FrontEnds real_front_ends();

}  // namespace mp::lint
