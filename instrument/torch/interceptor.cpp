#include "instrument/torch/interceptor.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "instrument/torch/adapter.hpp"
#include "instrument/torch/collectives.hpp"
#include "instrument/torch/integers.hpp"
#include "instrument/torch/measure.hpp"
#include "instrument/torch/nodes.hpp"
#include "instrument/torch/op_site.hpp"
#include "instrument/torch/sources.hpp"
#include "instrument/torch/tensors.hpp"
#include "instrument/torch/test_hooks.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// Properties of an op's arguments, collected in one pass.
struct Arguments {
    bool meta = false;  // shape propagation (FakeTensor, DTensor): no values, no twin
    bool require_gradients = false;
    at::ScalarType first = at::ScalarType::Undefined;  // dtype of the first tensor
};

Arguments look_at(const Stack& stack, const OpInfo& info) {
    Arguments seen;
    const std::size_t count = info.arguments.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (!info.arguments[i].tensor) continue;
        for_each_tensor(stack[stack.size() - count + i], [&](const at::Tensor& t) {
            if (seen.first == at::ScalarType::Undefined) seen.first = t.scalar_type();
            seen.meta |= t.is_meta();
            seen.require_gradients |= t.requires_grad();
        });
    }
    return seen;
}

// The dtype an op computes in, for the census: of its first float result, else of its first argument.
at::ScalarType census_dtype(const Stack& stack, std::size_t results, at::ScalarType first_argument) {
    for (std::size_t i = 0; i < results; ++i) {
        const IValue& value = stack[stack.size() - results + i];
        if (value.isTensor() && value.toTensor().defined() && carries_floats(value.toTensor()))
            return value.toTensor().scalar_type();
    }
    return first_argument;
}

// The work around one op of the program, apart from the twin.
class Watch {
public:
    Watch(Adapter& adapter, const OpInfo& info, const c10::OperatorHandle& op, const Stack& stack,
          const Arguments& seen)
        : adapter_(adapter),
          info_(info),
          op_(op),
          forward_(at::GradMode::is_enabled() && seen.require_gradients),
          first_(seen.first) {
        const bool twin = adapter.control.twin_active();
        const bool sampled = adapter.ledger.sampled();
        ThreadState& state = thread_state();
        if (info.adds_two) {
            const std::size_t count = info.arguments.size();
            const c10::ArrayRef<IValue> arguments(stack.data() + stack.size() - count, count);
            addition_ = adapter.running_totals.begins(info, arguments);
        }
        // Only measurements need the site of an op.
        if (twin || sampled || addition_ || op_log()) site_ = state.site = site_of(adapter, info, forward_);
        if (!twin && sampled) {
            arguments_ = arguments_on(stack);
            target_was_finite_ = !info.writes || targets_are_finite(adapter, info, arguments_);
            counters_ = adapter.counters.counted_by(info, arguments_, adapter.now.number);
            if (info.updates_some && site_.phase == Phase::optimizer && site_.layer == adapter.layers.update)
                updates_ = adapter.standing_updates.begin(info, arguments_, adapter.now.number);
        }
        if (twin && sampled && info.may_hold_integers) integers_ = arguments_on(stack);
        if (info.rule == Rule::collective || info.name.rfind("c10d::", 0) == 0) {
            adapter.recording.open();
            trace::CollectiveRecord record = describe_collective(info, op, stack);
            if (!twin) look_at_inputs(adapter.late, record, info, stack);
            adapter.collectives.count(std::move(record));
        }
        if (state.autograd_depth == 0) look_at_casts(stack);
        if (!adapter.inferred_clock.runs() || state.autograd_depth > 0) return;
        if (forward_) adapter.inferred_clock.forward_op(stack, info.arguments.size());
        if (info.writes) report_writes(stack);
    }

    // Empty unless they are measured afterwards.
    const std::vector<IValue>& arguments() const { return arguments_; }

    void done(const Stack& stack) const {
        const std::size_t results = op_.schema().returns().size();
        adapter_.coverage.op(census_dtype(stack, results, first_));
        if (site_.phase != Phase::forward && site_.phase != Phase::backward && adapter_.ledger.sampled())
            for (std::size_t i = 0; i < results; ++i)
                for_each_tensor(stack[stack.size() - results + i],
                                [&](const at::Tensor& t) { adapter_.masters.saw(t); });
        if (!arguments_.empty() && info_.rule != Rule::collective)
            watch_results(adapter_, site_, info_, arguments_, target_was_finite_, stack, results);
        look_at_counters(stack, results);
        if (!updates_.empty()) look_at_updates();
        if (addition_ && results == 1 && stack.back().isTensor()) look_at_total(stack.back().toTensor());
        if (info_.may_hold_integers && results == 1 && stack.back().isTensor())
            look_at_integers(arguments_.empty() ? integers_ : arguments_, stack.back().toTensor());
        if (std::FILE* const log = op_log()) write_op_log(log);
        if (!forward_ || results == 0) return;
        const IValue& value = stack[stack.size() - results];
        if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 1 &&
            c10::isFloatingType(value.toTensor().scalar_type()))
            adapter_.losses.candidate(value.toTensor());
    }

private:
    std::vector<IValue> arguments_on(const Stack& stack) const {
        return {stack.end() - static_cast<std::ptrdiff_t>(info_.arguments.size()), stack.end()};
    }

    void look_at_total(const at::Tensor& sum) const {
        const auto drift = adapter_.running_totals.ends(*addition_, sum);
        if (!drift) return;
        const std::string source = source_of(site_);
        adapter_.ledger.add(site_, info_, sum.scalar_type(), [&](trace::OpRecord& r) {
            if (drift->share >= r.drift && r.origins == 0) r.source = source;
            r.drift = std::max(r.drift, drift->share);
            r.total_of = std::max(r.total_of, static_cast<double>(drift->length));
        });
    }

    void look_at_updates() const {
        const StandingUpdates::Count count = StandingUpdates::count(updates_);
        if (count.meant == 0) return;
        const std::string source = source_of(site_);
        adapter_.ledger.add(site_, info_, updates_[0].target.scalar_type(), [&](trace::OpRecord& r) {
            r.updated += count.meant;
            r.stood += count.stood;
            if (r.source.empty()) r.source = source;
        });
    }

    void look_at_counters(const Stack& stack, std::size_t results) const {
        if (!counters_.empty()) watch_counters(adapter_, site_, info_, counters_);
        if (arguments_.empty() || info_.writes || results != 1 || !stack.back().isTensor()) return;
        const auto sum = adapter_.counters.made_by(info_, arguments_, site_, stack.back().toTensor());
        if (sum) watch_counters(adapter_, site_, info_, {*sum});
    }

    void look_at_integers(const std::vector<IValue>& arguments, const at::Tensor& result) const {
        const TwinScope scope;
        if (arguments.empty() || !result.defined()) return;
        const std::uint64_t lost = integers_lost_by(info_, arguments, result);
        if (lost == 0) return;
        const std::string source = source_of(site_);
        adapter_.ledger.add(site_, info_, result.scalar_type(), [&](trace::OpRecord& r) {
            r.inexact += lost;
            if (r.source.empty()) r.source = source;
        });
    }

    // What autocast keeps, and what reads it.
    void look_at_casts(const Stack& stack) const {
        const std::size_t count = info_.arguments.size();
        if (info_.base == "copy") {
            const at::Tensor &copy = stack[stack.size() - count].toTensor(),
                             &source = stack[stack.size() - count + 1].toTensor();
            if (autocast_keeps(copy, source)) adapter_.kept_casts.made(copy, source);
        }
        if (!adapter_.kept_casts.any_old()) return;
        for (std::size_t i = 0; i < count; ++i)
            if (info_.arguments[i].tensor && !info_.arguments[i].overwrite)
                for_each_tensor(stack[stack.size() - count + i], [&](const at::Tensor& t) {
                    if (is_low_precision(t.scalar_type())) adapter_.kept_casts.read(t);
                });
    }

    void report_writes(const Stack& stack) const {
        const std::size_t count = info_.arguments.size();
        for (std::size_t i = 0; i < count; ++i)
            if (info_.arguments[i].write)
                for_each_tensor(stack[stack.size() - count + i], [&](const at::Tensor& t) {
                    adapter_.inferred_clock.wrote(t, info_.base == "zero" || info_.base == "_foreach_zero");
                });
    }

    void write_op_log(std::FILE* log) const {
        std::fprintf(log, "%llu\t%s\t%s\t%s\t%d\n", static_cast<unsigned long long>(site_.ordinal),
                     std::string(name_of(site_.phase)).c_str(), info_.name.c_str(),
                     adapter_.layers.name(site_.layer).c_str(), site_.guessed);
        std::fflush(log);
    }

    Adapter& adapter_;
    const OpInfo& info_;
    const c10::OperatorHandle& op_;
    bool forward_;
    at::ScalarType first_;
    Site site_;
    std::vector<IValue> arguments_;  // kept only if they are measured afterwards
    std::vector<IValue> integers_;   // beside a twin: the arguments of an op that may make integers
    bool target_was_finite_ = true;
    std::vector<Counters::Counter> counters_;
    std::vector<StandingUpdates::Update> updates_;
    std::optional<RunningTotals::Addition> addition_;
};

// Names of ops that were registered and are not intercepted yet. The dispatcher tells them while it holds its lock, so
// they wait here until the program runs an op.
class NewOps final : public c10::OpRegistrationListener {
public:
    static bool any() noexcept { return any_.load(std::memory_order_relaxed); }
    static std::vector<c10::OperatorName> take() {
        const std::lock_guard lock(mutex_);
        any_ = false;
        return std::exchange(names_, {});
    }

    void onOperatorRegistered(const c10::OperatorHandle& op) override {
        try {
            const std::lock_guard lock(mutex_);
            names_.push_back(op.operator_name());
            any_ = true;
        } catch (const std::exception&) {  // no memory: this op stays unobserved
        }
    }
    void onOperatorDeregistered(const c10::OperatorHandle&) override {}

private:
    static inline std::mutex mutex_;
    static inline std::vector<c10::OperatorName> names_;
    static inline std::atomic<bool> any_{false};
};

void intercept_new_ops(Adapter& adapter);

class Kernel final : public c10::OperatorKernel {
public:
    Kernel(Adapter& adapter, OpInfo info)
        : adapter_(adapter), info_(std::move(info)), fills_(info_.name == "aten::fill_") {}

    void operator()(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) const {
        const DispatchKeySet below =
            keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::BackendSelect);
        if (NewOps::any()) intercept_new_ops(adapter_);
        ThreadState& state = thread_state();
        const bool attends = adapter_.control.attends_only() && info_.rule == Rule::collective;
        const bool redefined = op.schema().arguments().size() != info_.arguments.size();
        if (state.depth > 0 || redefined || !(adapter_.control.armed() || attends) ||
            !thread_is_the_programs(state)) {
            op.redispatchBoxed(below, stack);
            return;
        }
        if (adapter_.late.is_of_device(below) && adapter_.late.captures())
            adapter_.twin.leave(info_, op, below, stack);
        else if (attends && !adapter_.control.armed())
            adapter_.twin.run(info_, op, below, stack);
        else
            observe(op, below, stack, attends);
    }

private:
    // `attends`: the twin takes part, though there is none.
    void observe(const c10::OperatorHandle& op, DispatchKeySet below, Stack* stack, bool attends) const {
        if (info_.rule == Rule::foreign) {
            if (adapter_.control.twin_active())
                adapter_.twin.run(info_, op, below, stack);
            else
                op.redispatchBoxed(below, stack);
            return;
        }
        const Arguments seen = info_.is_view ? Arguments{} : look_at(*stack, info_);
        if (info_.is_view || seen.meta || (fills_ && fills_new_memory() && marks_memory(*stack))) {
            const Internal internal;
            op.redispatchBoxed(below, stack);
            return;
        }
        static const std::vector<IValue> none;
        std::optional<Watch> watch;
        try {
            watch.emplace(adapter_, info_, op, *stack, seen);
        } catch (const std::exception& e) {
            adapter_.faults.internal(info_.name, e.what());
        }
        if (adapter_.control.twin_active() || attends)
            adapter_.twin.run(info_, op, below, stack);
        else
            run_watched(op, below, stack, watch ? watch->arguments() : none);
        try {
            if (watch) watch->done(*stack);
        } catch (const std::exception& e) {
            adapter_.faults.internal(info_.name, e.what());
        }
    }

    // `arguments`: known where values are kept that can give way to the op.
    void run_watched(const c10::OperatorHandle& op, DispatchKeySet below, Stack* stack,
                     const std::vector<IValue>& arguments) const {
        const Internal internal;
        const std::size_t rest = stack->size() - info_.arguments.size();
        try {
            return op.redispatchBoxed(below, stack);
        } catch (const c10::OutOfMemoryError&) {
            const bool again =
                arguments.size() == info_.arguments.size() && only_makes_results(info_, op, arguments);
            if (!adapter_.shortage.give_up() || !again) throw;
        }
        put_back(*stack, rest, arguments);
        op.redispatchBoxed(below, stack);
    }

    // Whether this fill_ with NaN is torch's own, of memory that has no content yet.
    bool marks_memory(const Stack& stack) const {
        const IValue& value = stack.back();
        if (!value.isDouble() || value.toDouble() == value.toDouble()) return false;
        return !adapter_.shadows.find(stack[stack.size() - 2].toTensor()).shadow.defined();
    }

    Adapter& adapter_;
    const OpInfo info_;
    const bool fills_;
};

bool is_skipped_namespace(const std::string& name) {
    // clang-format off: a table
    static const char* const kSkipped[] = {"prim::", "prims::", "fsdp::", "_c10d_functional::",
                                           "_c10d_functional_autograd::", "c10d_functional::", "inductor::",
                                           "symm_mem::", "profiler::", "higher_order::", "_dtensor::", "mptrace::",
                                           "rngprims::", "debugprims::", "onnx::", "static_runtime::"};
    // clang-format on
    return std::any_of(std::begin(kSkipped), std::end(kSkipped),
                       [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
}

// Whether some backend implements the op. A composite op consists of other ops, which are intercepted themselves.
// silu_backward is both: a composite with a CPU kernel, so the composite must not decide.
bool has_backend_kernel(const c10::OperatorHandle& op) {
    static const DispatchKey kBackends[] = {DispatchKey::CPU,
                                            DispatchKey::CUDA,
                                            DispatchKey::SparseCPU,
                                            DispatchKey::QuantizedCPU,
                                            DispatchKey::MkldnnCPU,
                                            DispatchKey::CompositeExplicitAutograd,
                                            DispatchKey::CompositeExplicitAutogradNonFunctional};
    return std::any_of(std::begin(kBackends), std::end(kBackends),
                       [&](DispatchKey key) { return op.hasKernelForDispatchKey(key); });
}

std::size_t intercept(Adapter& adapter, const std::vector<c10::OperatorName>& names) {
    static auto* const registrations = new std::vector<c10::RegistrationHandleRAII>();
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    std::size_t count = 0;
    for (const c10::OperatorName& name : names) {
        if (is_skipped_namespace(name.name)) continue;
        const auto op = dispatcher.findOp(name);
        if (!op || !op->hasSchema() || !has_backend_kernel(*op)) continue;
        if (op->hasKernelForDispatchKey(DispatchKey::BackendSelect)) continue;
        registrations->push_back(dispatcher.registerImpl(
            name, DispatchKey::BackendSelect,
            c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(adapter, describe(*op))), {},
            nullptr, "mp-trace"));
        ++count;
    }
    return count;
}

// Libraries that the program loads, and ops that it defines in Python.
void intercept_new_ops(Adapter& adapter) {
    static std::mutex one_at_a_time;
    try {
        const std::lock_guard lock(one_at_a_time);
        intercept(adapter, NewOps::take());
    } catch (const std::exception& e) {
        adapter.faults.internal("the interception of new ops", e.what());
    }
}

}  // namespace

std::size_t intercept_ops(Adapter& adapter) {
    // Handles undo their registration when they are destroyed. Ours never are.
    static auto* const listening = new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<NewOps>()));
    (void)listening;
    observe_nodes(adapter);
    return intercept(adapter, NewOps::take());
}

}  // namespace mp::twin
