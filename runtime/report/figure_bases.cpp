#include "runtime/report/figure_bases.hpp"

#include <algorithm>

#include "runtime/judge/judge.hpp"

namespace mp::trace {

std::vector<FigureBasis> figures_of(const RunModel& model) {
    if (!is_raw(model)) return {};
    std::uint64_t calls = 0, elements = 0, compared = 0, reductions = 0, blocks = 0, weights = 0,
                  sketched = 0;
    for (const OpSum& op : model.ops) {
        calls += op.total.calls;
        elements += op.total.elements;
        compared += op.total.loc_compared;
    }
    for (const CollectiveTotal& c : model.collectives) {
        calls += c.total.calls;
        reductions += c.total.finite_inputs + c.total.lost_inputs;
        blocks += c.sketched;
    }
    for (const ProductSum& p : model.products) sketched += p.products;
    for (const TensorSum& t : model.tensors) weights += t.meant_to_move;
    // A program that tells its steps tells which were skipped.
    const bool told = std::ranges::any_of(model.steps, &StepSummary::has_loss_scale);
    const FigureBasis skips{told ? Basis::exact : Basis::inferred, "which steps were skipped",
                            static_cast<std::uint64_t>(model.step_count), "step"};
    std::vector<FigureBasis> out{
        {Basis::exact, "dtypes, shapes, compute types", calls, "call"},
        {Basis::exact, "largest magnitude, NaN and infinities of products", elements, "element"},
        {Basis::exact, "whether a reduction lost values", reductions, "call"},
        {Basis::exact, "weights that an update leaves as they are", weights, "element"},
        {Basis::sampled, "error of products", compared, "element"},
        {Basis::sampled, "error of all elements of products", sketched, "product"},
        {Basis::sampled, "error of reductions", blocks, "block"},
        {Basis::inferred, "what other kernels do, from their names alone", model.coverage.by_name, "call"},
    };
    out.insert(told ? out.begin() : out.end(), skips);
    std::erase_if(out, [](const FigureBasis& f) { return f.count == 0; });
    return out;
}

}  // namespace mp::trace
