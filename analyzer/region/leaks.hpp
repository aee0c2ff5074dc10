#pragma once

// Regions that stay open after the function that should close them.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/region/contexts.hpp"
#include "analyzer/region/effects.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

class Leaks {
public:
    Leaks(const Effects&, const Contexts&);
    std::vector<RegionLeak> take() { return std::move(found_); }

private:
    void inspect(std::uint32_t f, const Exploration&);
    void inspect_exits(std::uint32_t f, const Exploration&, Device);
    void inspect_constants(std::uint32_t f, const Exploration&);
    bool is_responsible(std::uint32_t f, const Exploration&, std::int32_t origin);
    bool is_opener(std::uint32_t f);
    bool decide_opener(std::uint32_t f) const;
    bool only_switches(std::uint32_t f) const;
    bool follows_unknown_branch(std::uint32_t f, const Exploration&, std::int32_t origin, Device) const;

    const Effects& effects_;
    const Graph& graph_;
    const Contexts& contexts_;
    std::unordered_map<std::uint32_t, bool> openers_;
    std::unordered_set<const Call*> reported_;
    std::vector<RegionLeak> found_;
};

}  // namespace mp::lint
