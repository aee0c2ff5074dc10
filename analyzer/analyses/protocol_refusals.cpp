// Scalers that torch does not let unscale.

#include <algorithm>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/optimizers.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/python_regions.hpp"

namespace mp::lint {
namespace {

// `AdamW(model.parameters())`, `SGD(params=model.parameters())`.
DType parameters_dtype(const Program& program, const Function& f, const Call& made) {
    const Operand* params = argument(made, 0, "params");
    if (!params || are_of_adapters(f, *params)) return DType::unknown;
    if (const DType known = program.dtype_of(f, *params).dtype; known != DType::unknown)
        return params->shape == Shape::tensor ? DType::unknown : known;
    const Call* from = call_of(f, *params);
    if (!from || from->args.empty() || last_part(from->name.str()) != "parameters") return DType::unknown;
    return program.dtype_of(f, from->args[0]).dtype;
}

bool may_see(const Function& user, const Function& maker, Symbol name) {
    if (&user == &maker) return true;
    if (user.span.file != maker.span.file) return false;
    const bool attribute = name.str().starts_with("self.");
    return attribute ? user.parent_class == maker.parent_class && !user.parent_class.empty()
                     : maker.name.str().ends_with(".<module>");
}

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

Protocol::Made Protocol::makers_of(const Function& user, Symbol optimizer) const {
    Made out;
    const auto made = optimizers_.find(optimizer);
    if (optimizer.empty() || made == optimizers_.end()) return out;
    for (const auto& [f, call] : made->second)
        if (may_see(user, *f, optimizer)) out.emplace_back(f, call);
    return out;
}

// Whether the scalers near the function scale, on CUDA.
Switch Protocol::scales_on_cuda(const Function& f) const {
    const std::vector<Symbol>& files = files_near(f);
    Switch all = Switch::off;
    for (const MadeScaler& s : scalers_) {
        if (std::ranges::find(files, s.function->span.file) == files.end()) continue;
        const Switch here = s.enabled.always == Switch::on ? runs_on_cuda(*s.call) : Switch::off;
        if (here == Switch::off) return Switch::off;
        all = all == Switch::unknown ? all : here;
    }
    return all;
}

DType Protocol::parameters_of(const Function& user, Symbol optimizer) const {
    DType found = DType::unknown;
    for (const auto& [f, call] : makers_of(user, optimizer)) {
        const DType dtype = parameters_dtype(program_, *f, *call);
        if (found != DType::unknown && dtype != found) return DType::unknown;
        found = dtype;
    }
    return found;
}

std::optional<Refusal> Protocol::refusal_of(const Function& f, const Call& step, Symbol optimizer) const {
    Refusal found{
        .function = &f, .call = &step, .optimizer = optimizer, .parameters = parameters_of(f, optimizer)};
    if (found.parameters == DType::bf16) {  // unscaling bf16 and looking for its infinities are one kernel
        const bool steps_plainly = std::ranges::any_of(f.calls, [&](const Call& c) {
            const Event e = roles_.event(f, c);
            return e.kind == EventKind::optimizer_step &&
                   (e.optimizer == optimizer || e.subject == optimizer);
        });
        if (steps_plainly) return std::nullopt;  // a flag decides, and perhaps the dtype too
        const Switch on_cuda = scales_on_cuda(f);
        found.is_certain = on_cuda == Switch::on;
        return on_cuda == Switch::off ? std::nullopt : std::optional(found);
    }
    const bool steps = roles_.event(f, step).kind == EventKind::scaler_step;
    const bool fused = std::ranges::any_of(makers_of(f, optimizer),
                                           [](const auto& made) { return unscales_itself(*made.second); });
    return found.parameters != DType::fp16 || (steps && fused) ? std::nullopt : std::optional(found);
}

void Protocol::find_refusals(const Function& f) {
    const bool sharded = std::ranges::any_of(scalers_, [&](const MadeScaler& s) {
        return is_sharded(*s.call) && s.function->span.file == f.span.file;
    });
    if (sharded) return;
    std::unordered_set<Symbol> told;
    for (const Call& c : f.calls) {
        const Event e = roles_.event(f, c);
        if (e.kind != EventKind::scaler_step && e.kind != EventKind::unscale) continue;
        if (is_sharded(c) || told.contains(e.optimizer)) continue;
        const std::optional<Refusal> found = refusal_of(f, c, e.optimizer);
        if (!found) continue;
        told.insert(e.optimizer);
        refusals_.push_back(*found);
        for (const auto& [maker, call] : makers_of(f, e.optimizer)) refused_.insert(call);
    }
}

}  // namespace mp::lint
