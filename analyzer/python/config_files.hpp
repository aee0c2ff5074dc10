#pragma once

// Configurations of training systems: what they set, as settings with places (docs/facts_format.md,
// "Settings"). DeepSpeed and Gaudi JSON, and the op lists of HMP and of HPU autocast as text.

#include <string>
#include <vector>

#include "analyzer/python/extract.hpp"

namespace mp::lint::python {

// A unit with one function `<file>`: keys flattened ("fp16.enabled"), one setting `bf16_ops` or
// `fp32_ops` per op of an op list (`ops` when the file's name does not say which list it is). A
// file that is no such configuration gives a unit without functions.
Unit extract_config(const Source& source);

// Names of configuration files that a unit's calls and settings mention ("ds_config.json"), as
// written, each once. That they exist or are configurations is not known here.
std::vector<std::string> configuration_files(const Unit& unit);

}  // namespace mp::lint::python
