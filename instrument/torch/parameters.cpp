#include "instrument/torch/parameters.hpp"

#include <ATen/CPUGeneratorImpl.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "instrument/torch/tensor_figures.hpp"
#include "instrument/torch/tensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

std::string kind_prefix(trace::TensorKind kind) {
    switch (kind) {
        case trace::TensorKind::gradient:
            return "grad/";
        case trace::TensorKind::optimizer_state:
            return "optim/";
        case trace::TensorKind::buffer:
            return "buffer/";
        case trace::TensorKind::parameter:
            break;
    }
    return "";
}

// The gradient of a parameter without touching its graph; undefined when there is none.
at::Tensor gradient_of(const at::Tensor& t) {
    const c10::TensorImpl* const impl = t.unsafeGetTensorImpl();
    return impl->autograd_meta() ? impl->grad() : at::Tensor();
}

// The module of "blocks.0.attn.weight": "blocks.0.attn".
std::string owner_of(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? std::string() : name.substr(0, dot);
}

trace::TensorRole role_of(trace::TensorKind kind) {
    switch (kind) {
        case trace::TensorKind::gradient:
            return trace::TensorRole::gradient;
        case trace::TensorKind::optimizer_state:
            return trace::TensorRole::optimizer_state;
        case trace::TensorKind::buffer:
            return trace::TensorRole::buffer;
        case trace::TensorKind::parameter:
            break;
    }
    return trace::TensorRole::parameter;
}

// Values before and after, wanted values before and after. The twin's update is the wanted one. Without a twin the
// gradient, `twin_before`, shows which elements should move.
template <typename Measure>
void with_update(const at::Tensor& before, const at::Tensor& twin_before, const at::Tensor& after,
                 const at::Tensor& twin, const Measure& measure) {
    if (twin.defined()) return measure(before, after, twin_before, twin);
    const at::Tensor zero = at::zeros({}, twin_before.options()).expand(twin_before.sizes());
    measure(before, after, zero, twin_before);
}

// Every k-th value, so that they are at most kSome, in fp32 and in memory of their own.
at::Tensor some_of(const at::Tensor& t) {
    constexpr std::int64_t kSome = 4096;
    const std::int64_t every = (t.numel() + kSome - 1) / kSome;
    return t.detach().reshape({-1}).slice(0, 0, t.numel(), every).to(at::kFloat, false, true);
}

}  // namespace

void Parameters::add(trace::TensorKind kind, std::string_view name, const at::Tensor& t) {
    const std::lock_guard lock(mutex_);
    add_locked(kind, name, t);
}

void Parameters::add_locked(trace::TensorKind kind, std::string_view name, const at::Tensor& t) {
    if (!t.defined()) return;
    Named named{kind, std::string(name), c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr()),
                keep_ ? t : at::Tensor()};
    const std::string key = kind_prefix(kind) + named.name;
    if (kind == trace::TensorKind::parameter)
        owners_[t.unsafeGetTensorImpl()] = layers_.intern(owner_of(named.name));
    const auto [it, fresh] = by_name_.emplace(key, named_.size());
    if (fresh)
        named_.push_back(std::move(named));
    else
        named_[it->second] = std::move(named);
}

void Parameters::add_leaf(const at::Tensor& t) {
    if (!t.has_storage()) return;
    const std::lock_guard lock(mutex_);
    const c10::Storage& storage = t.storage();
    if (!leaves_.try_emplace(storage.unsafeGetStorageImpl(), storage.getWeakStorageImpl()).second) return;
    add_locked(trace::TensorKind::parameter, "parameter" + std::to_string(leaves_.size() - 1), t);
}

bool Parameters::is_leaf_storage(const c10::StorageImpl* storage) const {
    const std::lock_guard lock(mutex_);
    return leaves_.count(storage) != 0;
}

bool Parameters::is_gradient_storage(const c10::StorageImpl* storage) const {
    for (const Live& l : live()) {
        if (l.kind != trace::TensorKind::parameter) continue;
        const at::Tensor gradient = gradient_of(l.tensor);
        if (gradient.defined() && gradient.has_storage() &&
            gradient.storage().unsafeGetStorageImpl() == storage)
            return true;
    }
    return false;
}

std::optional<std::uint64_t> Parameters::leaves_fingerprint() const {
    std::uint64_t hash = 0;
    for (const Live& l : live()) {
        if (l.kind != trace::TensorKind::parameter || !has_plain_memory(l.tensor)) continue;
        if (!l.tensor.device().is_cpu()) return std::nullopt;
        hash = hash * 31 + fingerprint_of(l.tensor);
    }
    return hash;
}

std::vector<Parameters::Live> Parameters::live() const {
    std::vector<Live> alive;
    const std::lock_guard lock(mutex_);
    for (const Named& named : named_)
        if (auto tensor = named.tensor.lock())
            alive.push_back({named.kind, named.name, at::Tensor(std::move(tensor))});
    return alive;
}

std::uint64_t Parameters::elements() const {
    std::uint64_t total = 0;
    for (const Live& l : live())
        if (l.kind == trace::TensorKind::parameter) total += static_cast<std::uint64_t>(l.tensor.numel());
    return total;
}

LayerId Parameters::layer_of(const at::Tensor& t) const {
    const std::lock_guard lock(mutex_);
    const auto it = owners_.find(t.unsafeGetTensorImpl());
    return it == owners_.end() ? 0 : it->second;
}

bool Parameters::is_parameter(const at::Tensor& t) const {
    const std::lock_guard lock(mutex_);
    return owners_.count(t.unsafeGetTensorImpl()) != 0;
}

std::vector<trace::TensorRecord> Parameters::measure(ShadowMap* shadows, trace::TensorKind wanted,
                                                     bool hashed) {
    const TwinScope scope;
    const std::lock_guard lock(measuring_);
    std::vector<trace::TensorRecord> records;
    std::vector<at::Tensor> measured_tensors;
    const std::vector<Live> all = live();
    const WideElsewhere wide = wanted == trace::TensorKind::parameter ? wide_elsewhere(all) : WideElsewhere{};
    const auto measure_one = [&](trace::TensorKind kind, const std::string& name, const at::Tensor& t) {
        if (!has_plain_memory(t) || !carries_floats(t) || t.is_complex()) return;
        at::Tensor twin;
        if (shadows) {
            twin = shadows->find(t).shadow;
            if (!twin.defined()) return;
        }
        trace::TensorRecord record;
        record.kind = kind;
        record.name = name;
        record.dtype = dtype_of(t.scalar_type());
        const bool measured =
            late_.serves(t) ? put_figures_late(record, t, twin, wide) : put_figures(record, t, twin);
        if (!measured) return;
        put_change(record, t, twin);
        if (hashed && t.device().is_cpu() && t.is_non_overlapping_and_dense() &&
            kind == trace::TensorKind::parameter)
            record.hash = XXH3_64bits(t.data_ptr(), static_cast<std::size_t>(t.numel()) * t.element_size());
        records.push_back(std::move(record));
        measured_tensors.push_back(t);
    };
    for (const Live& l : all) {
        if (l.kind == wanted) measure_one(l.kind, l.name, l.tensor);
        if (l.kind != trace::TensorKind::parameter || wanted != trace::TensorKind::gradient) continue;
        const at::Tensor gradient = gradient_of(l.tensor);
        if (gradient.defined()) measure_one(trace::TensorKind::gradient, l.name, gradient);
    }
    if (wanted == trace::TensorKind::parameter) follow_masters(records, measured_tensors, shadows);
    return records;
}

// Without a twin, every element with a gradient was meant to move.
void Parameters::keep_values(ShadowMap* shadows) {
    const TwinScope scope;
    const std::lock_guard lock(measuring_);
    const std::vector<Live> all = live();
    find_masters(all);
    keep_masters(all, shadows);
    for (const Live& l : all) {
        const bool trained = l.kind == trace::TensorKind::parameter && gradient_of(l.tensor).defined();
        if (!trained && l.kind != trace::TensorKind::optimizer_state) continue;
        if (!shadows) {
            if (trained) keep(l, gradient_of(l.tensor));
            continue;
        }
        const at::Tensor twin = shadows->find(l.tensor).shadow;
        keep(l, twin);
        if (trained) keep_some(l, twin);
    }
    rounded_.search();
}

void Parameters::forget_values() {
    const std::lock_guard lock(measuring_);
    some_.clear();
    for (auto it = kept_.begin(); it != kept_.end();) {
        Kept& kept = it->second;
        const bool stays = kept.waits && !kept.waited;
        kept.waited = stays;
        it = stays ? std::next(it) : kept_.erase(it);
    }
    for (auto& [name, masters] : mastered_)
        for (Master& master : masters) master.before.reset(), master.twin_before.reset();
}

bool Parameters::drop_values() {
    // Another thread that measures may wait until this one launches: then its values stay until its step is over.
    const std::unique_lock lock(measuring_, std::try_to_lock);
    if (!lock) return false;
    const bool any = !kept_.empty() || !some_.empty();
    kept_.clear();
    some_.clear();
    for (auto& [name, masters] : mastered_)
        for (Master& master : masters) master.before.reset(), master.twin_before.reset();
    return any;
}

void Parameters::stop_keeping() {
    std::vector<at::Tensor> freed;  // after the lock
    const std::lock_guard lock(mutex_);
    keep_ = false;
    for (Named& named : named_) freed.push_back(std::exchange(named.kept, {}));
}

// Averages of weights change between steps, but not in an optimizer.
void Parameters::keep_untrained(ShadowMap& shadows) {
    const TwinScope scope;
    const std::lock_guard lock(measuring_);
    for (const Live& l : live()) {
        const bool trained = l.kind == trace::TensorKind::parameter && gradient_of(l.tensor).defined();
        if (trained || (l.kind != trace::TensorKind::parameter && l.kind != trace::TensorKind::buffer))
            continue;
        keep(l, shadows.find(l.tensor).shadow);
    }
}

void Parameters::keep(const Live& l, const at::Tensor& wanted) {
    if (!wanted.defined() || !has_plain_memory(l.tensor) || !is_low_precision(l.tensor.scalar_type())) return;
    kept_.try_emplace(kind_prefix(l.kind) + l.name,
                      Kept{l.tensor.detach().clone(), wanted.to(at::kFloat, false, true)});
}

// 16-bit values move by whole ulps, so how far they move says little.
void Parameters::keep_some(const Live& l, const at::Tensor& twin) {
    const bool wide = l.tensor.scalar_type() == at::kFloat || l.tensor.scalar_type() == at::kDouble;
    if (!wide || !twin.defined() || l.tensor.numel() == 0 || !has_plain_memory(l.tensor)) return;
    const Some& some = some_.insert_or_assign(l.name, Some{some_of(l.tensor), some_of(twin)}).first->second;
    rounded_.begin(l.name, l.tensor, some.real, some.twin);
}

void Parameters::put_change(trace::TensorRecord& record, const at::Tensor& real, const at::Tensor& twin) {
    const auto known = record.kind == trace::TensorKind::parameter ? some_.find(record.name) : some_.end();
    if (known == some_.end() || !twin.defined()) return;
    const Some& was = known->second;
    const at::Tensor now = some_of(real), wanted = some_of(twin);
    if (now.sizes() != was.real.sizes() || wanted.sizes() != was.twin.sizes()) return;
    const at::Tensor change = now.sub(was.real), twin_change = wanted.sub(was.twin);
    if (late_.serves(change)) {
        const Figure<Divergence> divergence = late_.divergence(change, twin_change);
        if (!divergence) return;
        late_.then([name = record.name, divergence](LateStep& step) {
            if (trace::TensorRecord* const r = step.tensor(trace::TensorKind::parameter, name))
                put(*r, *divergence);
        });
        return;
    }
    cpu::TensorView x, y;
    Divergence d;
    if (view_for_kernels(change, x) && view_for_kernels(twin_change, y) && cpu::divergence(x, y, d))
        put(record, d);
    rounded_.end(record, now, wanted);
}

Parameters::Kept* Parameters::kept(const trace::TensorRecord& record) {
    const auto found = kept_.find(kind_prefix(record.kind) + record.name);
    return found == kept_.end() ? nullptr : &found->second;
}

bool Parameters::put_figures(trace::TensorRecord& record, const at::Tensor& t, const at::Tensor& shadow) {
    // A device without kernels: its tensors are copied.
    const at::Tensor real = t.detach().cpu(), twin = shadow.defined() ? shadow.detach().cpu() : shadow;
    cpu::TensorView x, y;
    TensorStats stats;
    Divergence d;
    if (!view_for_kernels(real, x)) return false;
    if (twin.defined()) {
        if (!view_for_kernels(twin, y) || !cpu::statistics_and_divergence(x, y, stats, d)) return false;
    } else if (!cpu::statistics(x, stats)) {
        return false;
    }
    put(record, stats, d);
    Kept* const was = kept(record);
    if (!was) return true;
    with_update(was->before, was->twin_before, real, twin, [&](const auto&... tensors) {
        const std::optional<cpu::Stagnation> still = stagnation_of({tensors...});
        if (!still) return;
        // What is written after the optimizer's step, such as a master's working copy, moves until the next measure.
        was->waits = !was->waited &&
                     (twin.defined() ? still->meant_to_move == 0 : still->unmoved == still->meant_to_move);
        if (!was->waits) put(record, *still, twin.defined());
    });
    return true;
}

// The memory of a device cannot be searched without waiting for it. State of the optimizer that has a parameter's shape
// is compared with it there; any other fp32 memory that is large enough may be its master.
Parameters::WideElsewhere Parameters::wide_elsewhere(const std::vector<Live>& all) {
    WideElsewhere wide;
    std::unordered_set<const c10::StorageImpl*> states;
    for (const Live& l : all) {
        if (l.kind != trace::TensorKind::optimizer_state || l.tensor.scalar_type() != at::kFloat ||
            !has_plain_memory(l.tensor) || !late_.serves(l.tensor))
            continue;
        states.insert(l.tensor.storage().unsafeGetStorageImpl());
        wide.states.emplace(owner_of(l.name), l.tensor);
    }
    wide.largest = masters_.largest_elsewhere(states);
    return wide;
}

bool Parameters::put_figures_late(const trace::TensorRecord& record, const at::Tensor& real,
                                  const at::Tensor& twin, const WideElsewhere& wide) {
    const Figure<TensorStats> stats = late_.statistics(real);
    const Figure<Divergence> divergence = twin.defined() ? late_.divergence(real, twin) : nullptr;
    if (!stats || (twin.defined() && !divergence)) return false;
    Figure<cpu::Stagnation> still;
    if (const Kept* const was = kept(record))
        with_update(was->before, was->twin_before, real, twin,
                    [&](const auto&... tensors) { still = late_.stagnation(tensors...); });
    std::vector<Late::Value> differing;  // elements of what may be its master
    const bool has_master = record.kind == trace::TensorKind::parameter && still &&
                            wide.largest >= static_cast<std::size_t>(real.numel()) * sizeof(float);
    const auto [first, last] =
        still ? wide.states.equal_range(record.name) : std::pair(wide.states.end(), wide.states.end());
    for (auto state = first; state != last; ++state)
        if (state->second.sizes() == real.sizes())
            differing.push_back(late_.value(state->second.to(real.scalar_type()).ne(real).sum()));
    late_.then([kind = record.kind, name = record.name, elements = static_cast<std::uint64_t>(real.numel()),
                stats, divergence, still, has_master, differing](LateStep& step) {
        trace::TensorRecord* const known = step.tensor(kind, name);
        if (!known) return;
        put(*known, *stats, divergence ? *divergence : Divergence{});
        if (!still) return;
        put(*known, *still, divergence != nullptr);
        if (known->unmoved <= known->meant_to_move / 4) return;
        const bool equal = std::any_of(differing.begin(), differing.end(),
                                       [](const Late::Value& v) { return v.known() && v.get() == 0; });
        if (equal || has_master) put(*known, {}, false);
        if (equal) known->mastered = elements;
    });
    return true;
}

void Parameters::disturb(ShadowMap& shadows) {
    const TwinScope scope;
    const std::lock_guard lock(measuring_);
    constexpr double kRoundoff = 0.00390625;  // of bf16
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(1);
    const auto change = [&](const at::Tensor& real) {
        const at::Tensor twin = shadows.find(real).shadow;
        if (!twin.defined()) return;
        const at::Tensor factors =
            at::empty(twin.sizes(), at::kFloat).uniform_(1 - kRoundoff, 1 + kRoundoff, generator);
        twin.mul_(factors.to(twin.options()));
    };
    for (const Live& l : live())
        if (l.kind == trace::TensorKind::parameter) change(l.tensor);
    for (const auto& [name, masters] : mastered_)
        if (const at::Tensor wide = masters.front().slice.wide(); wide.defined()) change(wide);
}

std::vector<trace::DTypePlace> Parameters::places() const {
    std::vector<trace::DTypePlace> places;
    std::map<std::tuple<trace::TensorRole, std::string, DType>, std::size_t> index;
    const auto put = [&](trace::TensorRole role, const std::string& layer, const at::Tensor& t) {
        const DType dtype = dtype_of(t.scalar_type());
        const auto [at, fresh] = index.try_emplace({role, layer, dtype}, places.size());
        if (fresh) places.push_back({role, layer, Phase::unknown, dtype, 0, 0});
        places[at->second].tensors += 1;
        places[at->second].elements += static_cast<std::uint64_t>(t.numel());
    };
    for (const Live& l : live()) {
        const std::string layer =
            owner_of(l.kind == trace::TensorKind::optimizer_state ? owner_of(l.name) : l.name);
        put(role_of(l.kind), layer, l.tensor);
        const at::Tensor gradient =
            l.kind == trace::TensorKind::parameter ? gradient_of(l.tensor) : at::Tensor();
        if (gradient.defined()) put(trace::TensorRole::gradient, layer, gradient);
    }
    return places;
}

std::vector<NamedTensor> Parameters::values(ShadowMap* shadows) const {
    const TwinScope scope;
    std::vector<NamedTensor> tensors;
    const auto followed = [&](const at::Tensor& t) {
        const at::Tensor shadow = shadows ? shadows->find(t).shadow : at::Tensor();
        return (shadow.defined() ? shadow : t).detach().to(at::kFloat);
    };
    const auto add_one = [&](const std::string& name, const at::Tensor& t) {
        if (t.is_complex()) return;
        if (has_sparse_floats(t)) {
            const at::Tensor parts = followed(t._values());
            const at::Tensor whole = at::_sparse_coo_tensor_unsafe(t._indices(), parts, t.sizes()).to_dense();
            tensors.push_back({name, whole.cpu().contiguous()});
        }
        if (has_plain_memory(t) && carries_floats(t))
            tensors.push_back({name, followed(t).cpu().contiguous()});
    };
    const std::vector<Live> all = live();
    std::unordered_set<std::string> names;
    for (const Live& l : all) names.insert(kind_prefix(l.kind) + l.name);
    for (const Live& l : all) {
        add_one(kind_prefix(l.kind) + l.name, l.tensor);
        if (l.kind != trace::TensorKind::parameter) continue;
        const at::Tensor gradient = gradient_of(l.tensor);
        const bool own = names.count("grad/" + l.name) == 0;
        if (gradient.defined() && own) add_one("grad/" + l.name, gradient);
    }
    return tensors;
}

}  // namespace mp::twin
