#include "instrument/torch/shortage.hpp"

#include <cstdio>

namespace mp::twin {
namespace {

constexpr char kTwin[] = "no memory was left on the device, and the twin was given up";
constexpr char kValues[] = "no memory was left on the device, and updates of 16-bit values are not measured";

// Dropout within attention; the rest of what may draw numbers is taken to draw some.
bool draws(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
    if (!op.hasTag(at::Tag::nondeterministic_seeded)) return false;
    const auto& schema = op.schema().arguments();
    for (std::size_t i = 0; i < schema.size() && i < arguments.size(); ++i)
        if (schema[i].name() == "dropout_p" && arguments[i].isDouble()) return arguments[i].toDouble() != 0;
    return true;
}

}  // namespace

bool Shortage::give_up() {
    const bool twin = control_.twin_active() && control_.follows();
    const bool values = parameters_.drop_values();
    if (!(twin || values) || !control_.give_up()) return values;
    shadows_.clear();
    if (control_.options().save_real.empty()) parameters_.stop_keeping();
    notes_.say(trace::NoteKind::given_up, twin ? kTwin : kValues);
    if (!control_.options().quiet)
        std::fprintf(stderr, "mp-trace: %s; the program runs on\n", twin ? kTwin : kValues);
    return true;
}

bool only_makes_results(const OpInfo& info, const c10::OperatorHandle& op,
                        const std::vector<c10::IValue>& arguments) {
    const bool elsewhere =
        info.rule == Rule::collective || info.rule == Rule::not_observed || info.rule == Rule::foreign;
    return !info.writes && !elsewhere && !draws(op, arguments);
}

void put_back(Stack& stack, std::size_t below, const std::vector<c10::IValue>& arguments) {
    stack.resize(below);
    stack.insert(stack.end(), arguments.begin(), arguments.end());
}

}  // namespace mp::twin
