// MPT012 of single values that are added up in 16 bits from step to step, such as the losses between two lines of a
// log. The adapter adds the same addends up in fp64, so the error is known without a twin. It harms what reads the
// total, not the weights: a warning.

#include <string>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {

void judge_totals(Case& c, const std::set<OpPlace>& named) {
    const OpSum* worst = nullptr;
    for (const OpSum& s : c.model.ops) {
        if (s.total.total_of == 0 || named.contains(place_of(s.total))) continue;
        if (!worst || s.total.drift > worst->total.drift) worst = &s;
    }
    if (!worst) return;
    const OpRecord& op = worst->total;
    const double limit = kFarAbovePhi * one_rounding_floor(op.dtype);
    if (!(op.drift > limit)) return;
    const std::string dtype(name_of(op.dtype));
    Finding f = finding_at("MPT012", Severity::warning, op);
    f.step = worst->first_step;
    f.value = op.drift;
    f.limit = limit;
    f.unit = "share";
    f.importance = importance::kSwallowedAddends(0);
    f.message = "a running total in " + dtype + " of " + figure(op.total_of) + " addends is off by " +
                percent(op.drift) + " of what they add up to (limit " + percent(limit) + ")";
    f.advice = "keep the running total in fp32, or add up .item()";
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
