#include "analyzer/driver/front_ends.hpp"
#include "analyzer/python/config_files.hpp"
#include "analyzer/python/notebook.hpp"

namespace mp::lint {
namespace {

std::vector<CellLine> cell_lines(std::string_view json) {
    std::vector<CellLine> out;
    const Result<python::Notebook> book = python::Notebook::read(json, "");
    if (!book) return out;
    for (const python::CodeLine& line : book->lines())
        out.push_back({std::string(line.text), line.in_file.line, line.in_file.column, line.cell, line.line});
    return out;
}

}  // namespace

FrontEnds real_front_ends() {
    return {.translate = make_invocation,
            .extract = extract,
            .version = extractor_version,
            .default_command = default_command,
            .load_database = CompileDatabase::load,
            .find_database = CompileDatabase::find,
            .extract_python = python::extract_file,
            .is_relevant = python::is_relevant,
            .configuration_files = python::configuration_files,
            .module_name = python::module_name,
            .cell_lines = cell_lines,
            .rules = all_rules(),
            .rule_page = rule_page};
}

}  // namespace mp::lint
