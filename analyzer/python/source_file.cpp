// Chooses the reader for a file.

#include "analyzer/python/config_files.hpp"
#include "analyzer/python/extract.hpp"
#include "analyzer/python/notebook.hpp"
#include "analyzer/python/spans.hpp"

namespace mp::lint::python {
namespace {

Unit failed_unit(const Source& source, const std::string& message) {
    Unit unit;
    unit.path = Symbol(source.path);
    unit.language = Language::python;
    unit.state = UnitState::failed;
    unit.coverage.errors = 1;
    unit.coverage.messages.push_back(Symbol(message));
    return unit;
}

}  // namespace

Unit extract_notebook(const Source& source) {
    const Result<Notebook> book = Notebook::read(source.text, source.path);
    if (!book) return failed_unit(source, book.error().message);
    Unit unit = extract({.path = source.path, .module = source.module, .text = book->text()});
    for_each_span(unit, [&](SourceSpan& span) {
        if (!span.known()) return;
        const Place begin = book->in_file({span.line, span.column});
        const Place end = book->in_file({span.end_line, span.end_column});
        span = {span.file, begin.line, begin.column, end.line, end.column};
    });
    return unit;
}

Unit extract_file(const Source& source) {
    const std::string_view path = source.path;
    if (path.ends_with(".ipynb")) return extract_notebook(source);
    if (is_configuration_name(path)) return extract_config(source);
    return extract(source);
}

}  // namespace mp::lint::python
