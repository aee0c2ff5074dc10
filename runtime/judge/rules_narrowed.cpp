// MPT014: a value that the program rounds to fp8 and reads in a wider format. Each op rounds once and correctly, but
// the op that reads the value starts from 3 or 4 bits, and its own format does not show it. A product that takes fp8
// itself has no cast back in front of it.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/dtype.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/gradient_shares.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 64;  // compared elements
constexpr double kOwnError = 1.5;      // floors: above them the cast's input was off before
constexpr double kArrives = 0.5;       // of the cast's error, in the results of the op that reads it

bool casts(const OpRecord& op) {
    const std::string name = base_name(op.op);
    return name == "copy" || name == "to_copy";
}

bool narrows(const OpRecord& op) {
    return is_fp8(op.dtype) && casts(op) && op.compared >= kFewest && total_phi(op) <= kOwnError &&
           (op.phase == Phase::forward || op.phase == Phase::backward);
}

struct Narrowed {
    const OpSum* cast = nullptr;
    const OpRecord* reader = nullptr;  // the first op after the cast back
    double error = 0;                  // relative, of the cast
    double share = 0;                  // of the gradients' error
};

// Ops of a phase in the order of their first calls.
using Order = std::vector<const OpSum*>;

const OpRecord* reader_of(const OpSum& cast, const Order& order) {
    bool widened = false;
    for (const OpSum* s : order) {
        const OpRecord& op = s->total;
        if (op.phase != cast.total.phase || op.first <= cast.total.first) continue;
        if (!casts(op)) return widened && !is_fp8(op.dtype) ? &op : nullptr;
        widened = widened || (op.layer == cast.total.layer && is_float(op.dtype) && !is_fp8(op.dtype));
    }
    return nullptr;
}

std::vector<Narrowed> narrowed_in(const RunModel& model) {
    if (std::ranges::none_of(model.ops, narrows, &OpSum::total)) return {};
    Order order;
    for (const OpSum& s : model.ops) order.push_back(&s);
    std::ranges::sort(order, {}, [](const OpSum* s) { return s->total.first; });
    const GradientShares shares(model);
    std::vector<Narrowed> out;
    for (const OpSum* s : order) {
        const OpRecord& cast = s->total;
        if (!narrows(cast)) continue;
        const OpRecord* const reader = reader_of(*s, order);
        const double error = relative(cast.error_squares, cast.twin_squares);
        if (!reader || reader->loc_compared < kFewest || inherited_error(*reader) < kArrives * error)
            continue;
        const bool forward = cast.phase == Phase::forward;
        out.push_back(
            {s, reader, error, (forward ? shares.of(cast, error) : shares.after(cast, error)).sampled});
    }
    return out;
}

// The layer that does most harm is named by its cast in forward, because autograd makes the one in backward of it.
const Narrowed& named_of(const std::vector<Narrowed>& all) {
    const Narrowed& worst = *std::ranges::max_element(all, {}, &Narrowed::share);
    const auto forward = std::ranges::find_if(all, [&](const Narrowed& n) {
        return n.cast->total.layer == worst.cast->total.layer && n.cast->total.phase == Phase::forward;
    });
    return forward == all.end() ? worst : *forward;
}

Finding narrowed_finding(const Case& c, const std::vector<Narrowed>& all) {
    const Narrowed& named = named_of(all);
    double share = 0;
    for (const Narrowed& n : all) share += n.share;
    share = std::min(share, 1.0);
    const OpRecord& cast = named.cast->total;
    const std::string wide(name_of(named.reader->dtype));
    Finding f =
        finding_at("MPT014", share >= c.limits.update_share ? Severity::warning : Severity::note, cast);
    f.step = named.cast->first_step;
    f.value = share;
    f.limit = c.limits.update_share;
    f.unit = "share";
    f.importance = importance::kIntroducedError(share);
    std::set<std::string> layers;
    for (const Narrowed& n : all) layers.insert(n.cast->total.layer);
    layers.erase(cast.layer);
    f.more_layers.assign(layers.begin(), layers.end());
    f.message = place_text(cast) + " rounds a value that " + shown(base_name(named.reader->op)) +
                " reads in " + wide + ": it is off by " + percent(named.error) + ", one rounding to " + wide +
                " costs " + percent(one_rounding_floor(named.reader->dtype)) + others_text(f.more_layers) +
                "; such casts explain " + percent(share) + " of the gradients' error";
    f.advice =
        "cast the value once, to the format in which it is read; if fp8 is meant, scale it and give the "
        "product fp8 inputs";
    return f;
}

}  // namespace

void judge_narrowed(Case& c) {
    std::map<DType, std::vector<Narrowed>> formats;
    for (const Narrowed& n : narrowed_in(c.model)) formats[n.cast->total.dtype].push_back(n);
    for (const auto& [format, all] : formats) c.out.findings.push_back(narrowed_finding(c, all));
}

}  // namespace mp::trace
