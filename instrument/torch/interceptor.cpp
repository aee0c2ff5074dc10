#include "instrument/torch/interceptor.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "instrument/torch/call_path.hpp"
#include "instrument/torch/collectives.hpp"
#include "instrument/torch/measure.hpp"
#include "instrument/torch/nodes.hpp"
#include "instrument/torch/thread_state.hpp"
#include "instrument/torch/twin.hpp"

namespace mp::twin {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

Session* g_session = nullptr;  // of the kernels below; set once, before they exist
Twin* g_twin = nullptr;

// What an op's arguments say, in one pass over them.
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

// An average of weights, a counter: what moves a value from its old one. Filling memory does not.
bool updates_in_place(const OpInfo& info) {
    return info.rule == Rule::generic &&
           std::any_of(info.arguments.begin(), info.arguments.end(),
                       [](const Argument& a) { return a.write && !a.overwrite; });
}

void name_by_call_path(Site& site, bool makes_node) {
    if (!g_session->twin_active() && !g_session->ledger().sampled()) return;
    const CallPath path = call_path();
    site.address = path.address;
    if (path.layer == 0) return;
    site.layer = path.layer;
    site.guessed = true;
    if (makes_node) layers().runs_op(path.layer);
}

NodePlace beside_node(const OpInfo& info, LayerId running) {
    return !running && g_session->backward_ran() ? place_beside_node(info) : NodePlace{};
}

// Which layer and phase an op belongs to; unknown where nothing says so.
Site site_of(const OpInfo& info, bool forward) {
    Site site;
    site.ordinal = g_session->next_ordinal();
    Layers& all = layers();
    const LayerId running = all.current();
    const NodePlace* const node = running_node();
    if (node && !(at::GradMode::is_enabled() && all.depth() > node->layer_depth)) {
        // What a module of a checkpointed forward runs inside a backward is forward again.
        site.phase = Phase::backward;
        site.layer = all.depth() > node->layer_depth ? running : node->layer;
        site.guessed = node->guessed;
    } else if (g_session->in_optimizer()) {
        site.phase = Phase::optimizer;
        site.layer = running ? running : all.optimizer;
    } else if (forward || all.in_module()) {
        site.phase = Phase::forward;
        site.layer = running ? running : all.after_model() ? all.loss : 0;
        if (!running && !g_session->has_python()) name_by_call_path(site, forward);
    } else if (const NodePlace beside = beside_node(info, running); beside.layer) {
        site.phase = Phase::backward;
        site.layer = beside.layer;
        site.guessed = beside.guessed;
    } else if (running) {
        site.phase = running == all.data ? Phase::data : Phase::optimizer;
        site.layer = running;
    } else if (g_session->backward_ran() || updates_in_place(info)) {
        site.phase = Phase::optimizer;
        site.layer = all.update;
    } else {
        site.phase = Phase::data;
        site.layer = all.data;
    }
    return site;
}

// What happens around one op of the program, beside the twin.
class Watch {
public:
    Watch(const OpInfo& info, const c10::OperatorHandle& op, const Stack& stack, const Arguments& seen)
        : info_(info),
          op_(op),
          forward_(at::GradMode::is_enabled() && seen.require_gradients),
          first_(seen.first) {
        // Only measuring asks where an op runs.
        if (g_session->twin_active() || g_session->ledger().sampled() || op_log())
            site_ = current_site() = site_of(info, forward_);
        if (!g_session->twin_active() && g_session->ledger().sampled())
            arguments_.assign(stack.end() - static_cast<std::ptrdiff_t>(info.arguments.size()), stack.end());
        if (info.rule == Rule::collective || info.name.rfind("c10d::", 0) == 0)
            g_session->count_collective(describe_collective(info, op, stack));
        if (g_session->has_python()) return;
        if (forward_ && thread_state().autograd_depth == 0)
            g_session->forward_op(stack, info.arguments.size());
        if (info.writes && thread_state().autograd_depth == 0) report_writes(stack);
    }

    void done(const Stack& stack) const {
        const std::size_t results = op_.schema().returns().size();
        g_session->count_op(census_dtype(stack, results, first_));
        if (!arguments_.empty() && info_.rule != Rule::collective)
            watch_results(*g_session, site_, info_, arguments_, stack, results);
        if (op_log()) write_op_log();
        if (!forward_ || results == 0) return;
        const IValue& value = stack[stack.size() - results];
        if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 1 &&
            c10::isFloatingType(value.toTensor().scalar_type()))
            g_session->candidate(value.toTensor());
    }

private:
    void report_writes(const Stack& stack) const {
        const std::size_t count = info_.arguments.size();
        for (std::size_t i = 0; i < count; ++i)
            if (info_.arguments[i].write)
                for_each_tensor(stack[stack.size() - count + i], [&](const at::Tensor& t) {
                    g_session->wrote(t, info_.base == "zero" || info_.base == "_foreach_zero");
                });
    }

    // For the test that compares our layers with those that hooks see.
    static std::FILE* op_log() {
        static const char* const path = std::getenv("MP_TRACE_TEST_OPLOG");
        static std::FILE* const file = path ? std::fopen(path, "w") : nullptr;
        return file;
    }

    void write_op_log() const {
        std::fprintf(op_log(), "%llu\t%s\t%s\t%s\t%d\n", static_cast<unsigned long long>(site_.ordinal),
                     std::string(name_of(site_.phase)).c_str(), info_.name.c_str(),
                     layers().name(site_.layer).c_str(), site_.guessed);
        std::fflush(op_log());
    }

    const OpInfo& info_;
    const c10::OperatorHandle& op_;
    bool forward_;
    at::ScalarType first_;
    Site site_;
    std::vector<IValue> arguments_;  // kept only where they are looked at afterwards
};

class Kernel final : public c10::OperatorKernel {
public:
    explicit Kernel(OpInfo info) : info_(std::move(info)) {}

    void operator()(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) const {
        const DispatchKeySet below =
            keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::BackendSelect);
        ThreadState& state = thread_state();
        const bool attends = g_session->attends_only() && info_.rule == Rule::collective;
        if (state.depth > 0 || !(g_session->armed() || attends) || !thread_is_the_programs(state)) {
            op.redispatchBoxed(below, stack);
            return;
        }
        if (attends)
            g_twin->run(info_, op, below, stack);
        else
            observe(op, below, stack);
    }

private:
    void observe(const c10::OperatorHandle& op, DispatchKeySet below, Stack* stack) const {
        const Arguments seen = info_.is_view ? Arguments{} : look_at(*stack, info_);
        if (info_.is_view || seen.meta) {
            const Internal internal;
            op.redispatchBoxed(below, stack);
            return;
        }
        std::optional<Watch> watch;
        try {
            watch.emplace(info_, op, *stack, seen);
        } catch (const std::exception& e) {
            g_session->internal_fault(info_.name, e.what());
        }
        if (g_session->twin_active()) {
            g_twin->run(info_, op, below, stack);
        } else {
            const Internal internal;
            op.redispatchBoxed(below, stack);
        }
        try {
            if (watch) watch->done(*stack);
        } catch (const std::exception& e) {
            g_session->internal_fault(info_.name, e.what());
        }
    }

    const OpInfo info_;
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

// An op is an op of its own when some backend implements it; a composite is only the sum of its parts.
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

}  // namespace

std::size_t intercept_ops(Session& session, Twin& twin) {
    g_session = &session;
    g_twin = &twin;
    // Handles undo their registration when they die; ours live as long as the process.
    static auto* const registrations = new std::vector<c10::RegistrationHandleRAII>();
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        if (is_skipped_namespace(name.name)) continue;
        const auto op = dispatcher.findOp(name);
        if (!op || !op->hasSchema() || !has_backend_kernel(*op)) continue;
        if (op->hasKernelForDispatchKey(DispatchKey::BackendSelect)) continue;
        registrations->push_back(dispatcher.registerImpl(
            name, DispatchKey::BackendSelect,
            c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(describe(*op))), {}, nullptr,
            "mp-trace"));
    }
    observe_nodes(session);
    return registrations->size();
}

}  // namespace mp::twin
