#pragma once

// The numbers by which kernels multiply and divide gradients, followed from `scaling` facts through
// parameters, overrides and functions handed on, to where they are written.

#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// One number that a factor can be.
struct ScaleValue {
    double value = 1;
    const Function* function = nullptr;  // where it is written, or handed over
    SourceSpan span;
};

struct ScaleValues {
    std::vector<ScaleValue> values;
    bool complete = true;  // false: some caller passes an unknown value

    // 1 on every way that is followed, but for calls with 0, which pass no gradient.
    bool is_one() const;
};

class LossScales {
public:
    explicit LossScales(const Program&);
    // The factor of the value in memory; for a division, the inverse of the divisor.
    ScaleValues of(const Function&, const Scaling&) const;

private:
    using Site = std::pair<const Function*, const Call*>;
    using Slot = std::pair<const Function*, std::int32_t>;  // a parameter

    void follow(const Function&, const Call&, const Operand&, std::vector<Slot>& pending,
                ScaleValues& out) const;
    void follow_callers(const Slot&, std::vector<Slot>& pending, ScaleValues& out) const;
    bool forwarded(const Site&, const Slot&, std::vector<Slot>& pending, ScaleValues& out) const;

    const Program& program_;
    std::unordered_map<Symbol, std::vector<Site>> callers_, passed_;  // by usr
};

// Programs without kernels have none, and need no LossScales.
bool has_scalings(const Program&);

enum class Code : std::uint8_t { any, device };

// Some code of the program asks whether a value is finite.
bool tests_finite(const Program&, Code);
bool tests_finite(const Function&);

}  // namespace mp::lint
