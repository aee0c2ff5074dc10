#pragma once

// How Python code loads a YAML or JSON file, and how it reads what the file holds.

#include <optional>
#include <string>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint::python {

// yaml.safe_load(f), json.load(f), OmegaConf.load(path): args[0] leads to the file.
bool loads_data(const Call&);

// HfArgumentParser((Model, Training)), whose calls of fills_classes() give one object for each class.
bool is_parser_of_classes(std::string_view name);
bool fills_classes(const Call&);
// Gives an object of the class that is the first argument: tyro.cli(Config).
bool fills_class(std::string_view name);

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

// One item of the list `defaults` of a file that Hydra composes: "_self_", "base", "model=net", "/db@backup=mysql".
struct HydraDefault {
    bool is_self = false;
    std::string file{};  // "model/net.yaml", from the folder of the file or, with a group's "/", from above
    std::string package{};  // what its keys are put below: "model"; "_global_": nothing
};
// Nothing for an item that a run decides: "model=${name}".
std::optional<HydraDefault> hydra_default(std::string_view item);
// Whether this is the name of such an item: "/a/c.yaml.defaults.0".
bool names_hydra_default(std::string_view name);

// Hydra makes what a configuration names under `_target_`: hydra.utils.instantiate(cfg.model).
bool instantiates(const Call&);

}  // namespace mp::lint::python
