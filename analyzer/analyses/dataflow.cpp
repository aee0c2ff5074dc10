#include "analyzer/analyses/dataflow.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/support.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// Origins further away than this many calls are not looked for.
constexpr std::size_t kFarthest = 64;

}  // namespace

bool only_moves(const Call& call) {
    // Methods of Python that are no ops.
    constexpr std::array<std::string_view, 4> kMoves{"cuda", "cpu", "requires_grad_", "__getitem__"};
    if (call.op.known()) return traits_of(call.op).has(Trait::moves);
    const std::string_view name = leaf(call.name.str());
    return traits_of(name).has(Trait::moves) || any_of(name, kMoves);
}

std::int32_t index_of(const Function& f, const Call& call) {
    const auto at = &call - f.calls.data();
    return at >= 0 && static_cast<std::size_t>(at) < f.calls.size() ? static_cast<std::int32_t>(at) : kNone;
}

const Call* producer(const Function& f, const Operand& value) {
    const Call* call = call_of(f, value);
    for (std::size_t step = 0; call && step < kFarthest && only_moves(*call); ++step) {
        if (call->args.empty()) return nullptr;
        call = call_of(f, call->args.front());
    }
    return call;
}

const Operand& moved_from(const Function& f, const Operand& value) {
    const Operand* at = &value;
    for (std::size_t step = 0; step < kFarthest; ++step) {
        const Call* call = call_of(f, *at);
        if (!call || call->args.empty() || !only_moves(*call)) break;
        at = &call->args.front();
    }
    return *at;
}

bool derives_from(const Function& f, const Operand& value, const OperandTest& test) {
    std::vector<const Operand*> open{&value};
    std::vector<const Call*> seen;
    while (!open.empty() && seen.size() < kFarthest) {
        const Operand& one = *open.back();
        open.pop_back();
        if (test(one)) return true;
        const Call* call = call_of(f, one);
        if (!call || std::ranges::find(seen, call) != seen.end()) continue;
        seen.push_back(call);
        for (const Operand& argument : call->args) open.push_back(&argument);
    }
    return false;
}

const Call* origin(const Function& f, const Operand& value, const CallTest& test) {
    const Call* found = nullptr;
    derives_from(f, value, [&](const Operand& one) {
        const Call* call = call_of(f, one);
        if (call && test(*call)) found = call;
        return found != nullptr;
    });
    return found;
}

bool are_of_adapters(const Function& f, const Operand& parameters) {
    return origin(f, parameters, [](const Call& call) { return is_within(call.name.str(), "peft"); });
}

bool indexes(const Call& call) { return leaf(call.name.str()) == "__getitem__" && !call.args.empty(); }

bool reads_entry(const Call& call) { return indexes(call) && call.args.size() == 2; }

bool makes_random_numbers(const Call& call) {
    constexpr std::array<std::string_view, 4> kRandom{"torch.rand", "torch.randn", "torch.randint",
                                                      "torch.normal"};
    return any_of(call.name.str(), kRandom);
}

const Call* consumer(const Function& f, const Call& call, const CallTest& test) {
    const std::int32_t index = index_of(f, call);
    const auto found = std::ranges::find_if(f.calls, [&](const Call& other) {
        const auto takes = [&](const Operand& value) { return value.call == index; };
        return std::ranges::any_of(other.args, takes) && test(other);
    });
    return index == kNone || found == f.calls.end() ? nullptr : &*found;
}

std::string rewritten(const Operand& argument, std::string_view value) {
    if (argument.keyword.empty()) return std::string(value);
    return std::string(argument.keyword.str()) + "=" + std::string(value);
}

bool same_value(const Operand& a, const Operand& b) {
    if (!a.name.empty() || !b.name.empty()) return a.name == b.name;
    return a.param != kNone && a.param == b.param;
}

}  // namespace mp::lint
