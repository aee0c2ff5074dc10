#pragma once

// Reads YAML as JSON is read (json_reader.hpp), from the events of libyaml. Tags are never followed and the copies that
// aliases and merge keys make are limited, so no text makes it run code or grow: other values behind them are left out.

#include <optional>
#include <string_view>

#include "analyzer/python/json_reader.hpp"

namespace mp::lint::python {

// Visits the first document of the text. Plain scalars are numbers, booleans and null as PyYAML reads them, so
// on_scalar() gets "true" for `yes` and "null" for `~`. Nothing when the document is valid, else the offset of the
// first error. A key that is not a scalar, and nesting beyond any configuration, are errors. What a tag makes of a
// mapping or a list is not known: in the path of its values "." stands for its key. A mapping with a merge key (`<<`)
// has the keys of the other mapping at its end.
std::optional<std::size_t> read_yaml(std::string_view text, JsonVisitor& visitor);

}  // namespace mp::lint::python
