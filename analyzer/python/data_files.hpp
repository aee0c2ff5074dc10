#pragma once

// Values of YAML and JSON files that a program loads (docs/facts_format.md, "Data files").

#include "analyzer/python/extract.hpp"

namespace mp::lint::python {

// Adds a definition for the root and for each mapping, number, text and flag that keys lead to: "/a/b.yaml.model.dtype"
// is cfg["model"]["dtype"]. Nothing is added when the text does not parse, is not a mapping, or is larger than any
// configuration.
void add_data_values(const Source& source, Function& file);

}  // namespace mp::lint::python
