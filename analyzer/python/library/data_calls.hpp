#pragma once

// How Python code loads a YAML or JSON file, and how it reads what the file holds.

#include <string>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint::python {

// yaml.safe_load(f), json.load(f), OmegaConf.load(path): args[0] leads to the file.
bool loads_data(const Call&);

// Calls that return what they are given in another container: OmegaConf.create(x), EasyDict(x), Namespace(**x).
bool wraps_data(const Call&);

// Calls that return the path or the content of the file that args[0] leads to: open(path), Path(path), str(path).
bool passes_path_on(const Call&);

// Calls that join parts of a path: os.path.join(a, b), a / b.
bool joins_path(const Call&);

// Whether the place of the code decides the operand: os.path.dirname(__file__).
bool names_own_file(const Operand&);

// The file that `@hydra.main(config_path="conf", config_name="train")` loads for the first parameter:
// "conf/train.yaml". Empty without such a decorator.
std::string hydra_file(const Function&);

}  // namespace mp::lint::python
