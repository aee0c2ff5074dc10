// MPT015: positions or time steps in 16 bits whose angles go into sines and cosines. bf16 has no odd integer above 256,
// fp16 none above 2,048: neighbours become equal, and an angle is off by up to a whole step. Each op rounds correctly,
// so without a twin nothing else shows it. Integers that make no angles, as distances that are multiplied by a slope,
// are off by one rounding and are not judged.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

bool makes_waves(const OpRecord& op) {
    static constexpr std::array kNames = {"sin", "cos", "polar"};
    return std::ranges::find(kNames, base_name(op.op)) != kNames.end();
}

// Ops without gradients have no layer in the mode watch: those of one function are a few lines apart.
bool is_near(const std::string& one, const std::string& other) {
    constexpr long kLines = 20;
    const auto line = [](const std::string& source) {
        return std::strtol(source.c_str() + source.rfind(':') + 1, nullptr, 10);
    };
    const std::size_t colon = one.rfind(':');
    if (colon == std::string::npos || other.compare(0, colon + 1, one, 0, colon + 1) != 0) return false;
    return std::labs(line(one) - line(other)) <= kLines;
}

// The sine or cosine behind the integers, in their layer, whose results are farthest from the twin's; null: none.
const OpSum* wave_behind(const RunModel& m, const OpSum& integers) {
    const OpSum* worst = nullptr;
    for (const OpSum& s : m.ops) {
        const OpRecord& op = s.total;
        if (!makes_waves(op) || op.layer != integers.total.layer || op.phase != integers.total.phase)
            continue;
        if (!op.layer.empty() && op.layer[0] == '(' && !is_near(integers.total.source, op.source)) continue;
        if (s.first_step < integers.first_step || op.first < integers.total.first) continue;
        if (!worst || inherited_error(op) > inherited_error(worst->total)) worst = &s;
    }
    return worst;
}

Finding lost_integers(const Case& c, const OpSum& sum, const OpRecord& wave) {
    const OpRecord& op = sum.total;
    const double error = inherited_error(wave);
    const bool fails = error >= c.limits.amplified_warn;
    Finding f = finding_at("MPT015", fails ? Severity::error : Severity::warning, op);
    f.step = sum.first_step;
    f.value = static_cast<double>(op.inexact);
    f.unit = "elements";
    f.importance = importance::kLostIntegers();
    const std::string dtype(name_of(op.dtype)), name = shown(base_name(wave.op));
    f.message = counted(op.inexact, "integer") + " that become angles are not in " + dtype +
                ": neighbours above " + (op.dtype == DType::bf16 ? "256" : "2,048") +
                " are equal, and so are their " + name;
    if (error > 0) f.message += "; " + name + " is off by " + percent(error) + " of its fp32 twin";
    f.advice = "make positions and angles in fp32, and cast only the sines and cosines";
    return f;
}

}  // namespace

std::set<std::string> judge_integers(Case& c) {
    std::set<std::string> explained;
    for (const OpSum& sum : c.model.ops) {
        if (sum.total.inexact == 0 || explained.contains(sum.total.layer)) continue;
        const OpSum* const wave = wave_behind(c.model, sum);
        if (!wave) continue;
        c.out.findings.push_back(lost_integers(c, sum, wave->total));
        explained.insert(sum.total.layer);
    }
    return explained;
}

}  // namespace mp::trace
