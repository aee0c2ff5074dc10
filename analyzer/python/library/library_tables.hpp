#pragma once

// Access to library.txt, which is parsed once.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/numerics/dtype.hpp"

namespace mp::lint::python {

// The names of a section, each with the text before the colon of its line; empty when the line has no
// colon.
using Names = std::unordered_map<std::string_view, std::string_view>;

// A section whose lines are "name: item item": the items of a name, lines of one name joined.
using Lists = std::unordered_map<std::string_view, std::vector<std::string_view>>;

const Names& names_in(std::string_view section);
const Lists& lists_in(std::string_view section);  // "passes" and "items"

inline bool holds(const Names& names, std::string_view name) { return names.contains(name); }

// The key of a class or method in the tables: the root of the library (the spellings of Lightning share
// one), then the last name, or the last two when they are a class and its method.
// "pytorch_lightning.core.LightningModule.optimizers" -> "lightning.LightningModule.optimizers".
std::string short_name(std::string_view dotted);

}  // namespace mp::lint::python
