#include "analyzer/analyses/angles.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

bool takes_angles(const Call& call) {
    constexpr std::array<std::string_view, 3> kOps{"cos", "sin", "polar"};
    return any_of(call.op.name(), kOps);
}

// What it gives are the same angles, in another order, shape or scale.
bool keeps_angles(const Call& call) {
    constexpr std::array<std::string_view, 5> kOps{"cat", "stack", "mul", "div", "add"};
    constexpr std::array<std::string_view, 2> kDisplays{"list", "tuple"};
    return only_moves(call) || any_of(call.op.name(), kOps) || any_of(call.name.str(), kDisplays);
}

}  // namespace

const Call* angle_taken(const Function& f, const Call& product) {
    std::vector<std::int32_t> angles{index_of(f, product)};
    for (const Call& call : f.calls) {
        if (&call <= &product) continue;
        const bool takes = std::ranges::any_of(call.args, [&](const Operand& o) {
            return o.call != kNone && std::ranges::find(angles, o.call) != angles.end();
        });
        if (!takes) continue;
        if (takes_angles(call)) return &call;
        if (keeps_angles(call)) angles.push_back(index_of(f, call));
    }
    return nullptr;
}

}  // namespace mp::lint
