#include "analyzer/analyses/scaler_refusals.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/python_regions.hpp"

namespace mp::lint {
namespace {

bool is_sharded(const Call& call) { return mentions(call.name.str(), "sharded"); }

// AdamW(..., fused=True) takes the scale into its kernel, and the scaler only looks for infinities.
bool unscales_itself(const Call& optimizer) { return is_true(keyword_argument(optimizer, "fused")); }

// GradScaler("cuda"), GradScaler(device), torch.cuda.amp.GradScaler()
Switch runs_on_cuda(const Call& scaler) {
    const std::string_view name = scaler.name.str();
    if (name.starts_with("torch.cuda.")) return Switch::on;
    if (!name.starts_with("torch.") || name.starts_with("torch.cpu.")) return Switch::off;
    const Operand* device = argument(scaler, 0, "device");
    if (!device) return Switch::on;
    const std::string_view text = unquoted(device->constant.str());
    return text.empty() ? Switch::unknown : text.starts_with("cuda") ? Switch::on : Switch::off;
}

}  // namespace

Refusals::Refusals(const RuleContext& context) : protocol_(protocol_of(context)), parameters_(context) {
    const EventMask steps = mask_of(EventKind::scaler_step) | mask_of(EventKind::unscale);
    for (const Function* f : context.program.functions())
        if (protocol_.mask(*f) & steps) look_at(*f);
}

std::vector<const MadeScaler*> Refusals::scalers_near(const Function& f) const {
    const std::vector<Symbol>& files = protocol_.files_near(f);
    std::vector<const MadeScaler*> near;
    for (const MadeScaler& s : protocol_.scalers())
        if (std::ranges::find(files, s.function->span.file) != files.end()) near.push_back(&s);
    return near;
}

// Whether the scalers near the function scale, on CUDA.
Switch Refusals::scales_on_cuda(const Function& f) const {
    Switch all = Switch::off;
    for (const MadeScaler* s : scalers_near(f)) {
        const Switch here = s->enabled.always == Switch::on ? runs_on_cuda(*s->call) : Switch::off;
        if (here == Switch::off) return Switch::off;
        all = all == Switch::unknown ? all : here;
    }
    return all;
}

// GradScaler(enabled=False) steps as the optimizer alone does.
bool Refusals::are_off(const Function& f) const {
    const std::vector<const MadeScaler*> near = scalers_near(f);
    return !near.empty() &&
           std::ranges::all_of(near, [](const MadeScaler* s) { return s->enabled.always == Switch::off; });
}

std::optional<Refusal> Refusals::refusal_of(const Function& f, const Call& step, Symbol optimizer) {
    if (are_off(f)) return std::nullopt;
    TensorDType is = parameters_.of(f, optimizer);
    Refusal found{.function = &f,
                  .call = &step,
                  .optimizer = optimizer,
                  .parameters = is.dtype,
                  .is_certain = is.proven,
                  .chain = std::move(is.chain)};
    const Roles& roles = protocol_.roles();
    if (found.parameters == DType::bf16) {  // unscaling bf16 and looking for its infinities are one kernel
        const bool steps_plainly = std::ranges::any_of(f.calls, [&](const Call& c) {
            const Event e = roles.event(f, c);
            return e.kind == EventKind::optimizer_step &&
                   (e.optimizer == optimizer || e.subject == optimizer);
        });
        if (steps_plainly) return std::nullopt;  // a flag decides, and perhaps the dtype too
        const Switch on_cuda = scales_on_cuda(f);
        found.is_certain = found.is_certain && on_cuda == Switch::on;
        return on_cuda == Switch::off ? std::nullopt : std::optional(std::move(found));
    }
    if (found.parameters != DType::fp16) return std::nullopt;
    const bool is_fused = std::ranges::any_of(parameters_.makers_of(f, optimizer),
                                              [](const auto& made) { return unscales_itself(*made.call); });
    const bool steps = roles.event(f, step).kind == EventKind::scaler_step;
    return steps && is_fused ? std::nullopt : std::optional(std::move(found));
}

void Refusals::look_at(const Function& f) {
    const bool sharded = std::ranges::any_of(protocol_.scalers(), [&](const MadeScaler& s) {
        return is_sharded(*s.call) && s.function->span.file == f.span.file;
    });
    if (sharded) return;
    std::unordered_set<Symbol> told;
    for (const Call& c : f.calls) {
        const Event e = protocol_.roles().event(f, c);
        if (e.kind != EventKind::scaler_step && e.kind != EventKind::unscale) continue;
        if (is_sharded(c) || told.contains(e.optimizer)) continue;
        std::optional<Refusal> found = refusal_of(f, c, e.optimizer);
        if (!found) continue;
        told.insert(e.optimizer);
        refusals_.push_back(std::move(*found));
        for (const MadeOptimizer& made : parameters_.makers_of(f, e.optimizer)) refused_.insert(made.call);
    }
}

const Refusals& refusals_of(const RuleContext& context) {
    return context.refusals.get([&] { return std::make_shared<const Refusals>(context); });
}

}  // namespace mp::lint
