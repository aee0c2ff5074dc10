#include "analyzer/region/namesakes.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analyzer/region/by_symbol.hpp"

namespace mp::lint {
namespace {

struct Namesake {
    const Unit* unit = nullptr;
    Symbol usr;  // its identity from now on
};
using Namesakes = std::unordered_map<Symbol, std::vector<Namesake>>;

// The functions that several units define, with the units in their order. A function that one file
// defines twice is not included: the later definition replaces the earlier.
Namesakes namesakes_of(const std::vector<Unit>& units) {
    BySymbol<const Unit*> first;
    Namesakes found;
    for (const Unit& unit : units) {
        if (unit.language != Language::python) continue;
        for (const Function& f : unit.functions) {
            const Unit*& defined = first[f.usr];
            if (!defined) defined = &unit;
            if (defined == &unit) continue;
            std::vector<Namesake>& all = found[f.usr];
            if (all.empty()) all.push_back({defined, f.usr});
            if (all.back().unit == &unit) continue;
            all.push_back({&unit, Symbol(std::string(f.usr.str()) + "#" + std::to_string(all.size() + 1))});
        }
    }
    return found;
}

// How many leading folders two paths share.
std::size_t shared_folders(std::string_view a, std::string_view b) {
    std::size_t shared = 0;
    for (std::size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i)
        if (a[i] == '/') ++shared;
    return shared;
}

// The function that this unit refers to; among equally near ones, the one with the first path.
Symbol meant(const std::vector<Namesake>& all, const Unit& from) {
    const auto nearness = [&](const Namesake& one) {
        return one.unit == &from ? from.path.str().size() + 1
                                 : shared_folders(one.unit->path.str(), from.path.str());
    };
    return std::ranges::max_element(all,
                                    [&](const Namesake& a, const Namesake& b) {
                                        const std::size_t of_a = nearness(a), of_b = nearness(b);
                                        return of_a != of_b ? of_a < of_b
                                                            : a.unit->path.str() > b.unit->path.str();
                                    })
        ->usr;
}

}  // namespace

void separate_namesakes(std::vector<Unit>& units) {
    const Namesakes namesakes = namesakes_of(units);
    if (namesakes.empty()) return;
    for (Unit& unit : units) {
        if (unit.language != Language::python) continue;
        const auto redirect = [&](Symbol& usr) {
            const auto found = namesakes.find(usr);
            if (found != namesakes.end()) usr = meant(found->second, unit);
        };
        for (Function& f : unit.functions) {
            redirect(f.usr);
            std::ranges::for_each(f.overrides, redirect);
            for (Call& call : f.calls) {
                redirect(call.callee);
                std::ranges::for_each(call.lambdas, redirect);
            }
        }
    }
}

}  // namespace mp::lint
