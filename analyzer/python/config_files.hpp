#pragma once

// Reads configurations of training systems as settings with places (docs/facts_format.md, "Settings"): DeepSpeed and
// Gaudi JSON, and the op lists of HMP and of HPU autocast as text. What a program's own YAML or JSON file holds
// becomes definitions (data_files.hpp).

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/python/extract.hpp"

namespace mp::lint::python {

// A unit with one function `<file>`. Keys are flattened ("fp16.enabled"). Each op of an op list is one
// setting `bf16_ops` or `fp32_ops`, or `ops` when the file's name does not identify the list. A file that
// holds neither settings nor values gives a unit without functions.
Unit extract_config(const Source& source);

// Whether extract_config() reads such a file.
bool is_configuration_name(std::string_view path);

// Names of configuration files in a unit's calls and settings ("ds_config.json"), as written, each once. It
// is not checked that the files exist or are configurations.
std::vector<std::string> configuration_files(const Unit& unit);

}  // namespace mp::lint::python
