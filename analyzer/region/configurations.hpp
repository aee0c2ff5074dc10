#pragma once

// What stands under a key of the YAML and JSON files that a program loads, and of what Hydra composes from several.

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/region/names.hpp"

namespace mp::lint {

// Whether the unit is such a file.
bool holds_configuration(const Unit&);

// A mapping is the name of its definition: "/a/run.yaml.model". That of a composed one begins with "//".
class Configurations {
public:
    explicit Configurations(NameFinder& finder) : finder_(finder) {}

    // The file of this name that is nearest to the code; empty if the program has none.
    Symbol file(std::string_view name, std::string_view code);
    // What Hydra makes of the file and the files of its list `defaults`; without such a list the file itself.
    Symbol composed(Symbol file);

    // The value under a key; for a mapping an operand that refers to it. `assumed`: the file was chosen by a default.
    struct Value {
        const Function* function = nullptr;
        const Operand* operand = nullptr;  // nullptr: the mapping has no such key
        bool assumed = false;
    };
    Value member(Symbol mapping, std::string_view key);
    // The keys of a mapping, each once.
    std::vector<Symbol> keys(Symbol mapping);

private:
    // A mapping of one file, and the keys that it is put below: "model.net".
    struct Layer {
        Symbol mapping;
        std::string below{};
        bool assumed = false;
    };
    using Layers = std::vector<Layer>;  // later ones win

    void compose(Symbol file, const std::string& below, bool assumed, Layers& out, int depth);
    Layers layers_of(Symbol mapping) const;
    Value find(Symbol mapping, std::string_view key);
    Value resolved(Symbol mapping, Value);

    NameFinder& finder_;
    std::unordered_map<Symbol, Layers> layers_;  // of composed mappings
    std::unordered_map<Symbol, Value> members_;  // by the name of mapping and key
    std::deque<Operand> made_;
};

}  // namespace mp::lint
