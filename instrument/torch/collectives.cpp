#include "instrument/torch/collectives.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <utility>

#include "instrument/torch/measure.hpp"
#include "instrument/torch/parameters.hpp"
#include "instrument/torch/thread_state.hpp"
#include "instrument/torch/twin.hpp"
#include "instrument/torch/work.hpp"

namespace mp::twin {
namespace {

std::string canonical(const std::string& base) {
    static const std::pair<const char*, const char*> kNames[] = {
        {"allreduce", "all_reduce"},
        {"allreduce_coalesced", "all_reduce"},
        {"_allgather_base", "all_gather"},
        {"allgather", "all_gather"},
        {"allgather_coalesced", "all_gather"},
        {"allgather_into_tensor_coalesced", "all_gather"},
        {"_reduce_scatter_base", "reduce_scatter"},
        {"reduce_scatter_tensor_coalesced", "reduce_scatter"},
        {"alltoall", "all_to_all"},
        {"alltoall_base", "all_to_all"},
    };
    for (const auto& [from, to] : kNames)
        if (base == from) return to;
    return base;
}

const char* reduction_name(c10d::ReduceOp::RedOpType type) {
    switch (type) {
        case c10d::ReduceOp::SUM:
            return "sum";
        case c10d::ReduceOp::AVG:
            return "avg";
        case c10d::ReduceOp::PRODUCT:
            return "product";
        case c10d::ReduceOp::MIN:
            return "min";
        case c10d::ReduceOp::MAX:
            return "max";
        case c10d::ReduceOp::PREMUL_SUM:
            return "premul_sum";
        default:
            return "other";
    }
}

std::string group_name([[maybe_unused]] const c10d::ProcessGroup& group) {
#if MP_TORCH_AT_LEAST(2, 0)
    return group.getGroupName();
#else
    return "";
#endif
}

template <typename T>
c10::intrusive_ptr<T> as(const IValue& value) {
    if (!value.isObject()) return {};
    const auto type = c10::getCustomClassType<c10::intrusive_ptr<T>>();
    if (value.type() != type) return {};
    return value.toCustomClass<T>();
}

}  // namespace

trace::CollectiveRecord describe_collective(const OpInfo& info, const c10::OperatorHandle& op,
                                            const Stack& stack) {
    trace::CollectiveRecord record;
    record.op = canonical(info.base);
    record.calls = 1;
    const auto& arguments = op.schema().arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const IValue& value = stack[stack.size() - arguments.size() + i];
        if (info.arguments[i].tensor && !info.arguments[i].overwrite)
            for_each_tensor(value, [&](const at::Tensor& t) {
                record.dtype = dtype_of(t.scalar_type());
                record.bytes += static_cast<std::uint64_t>(t.numel()) * t.element_size();
            });
        if (const auto group = as<c10d::ProcessGroup>(value)) record.group = group_name(*group);
        if (const auto reduce = as<c10d::ReduceOp>(value)) record.reduction = reduction_name(reduce->op_);
    }
    return record;
}

void hide_work(Stack& stack, std::size_t results, const std::function<void()>& finished) {
    for (std::size_t i = 0; i < results; ++i) {
        IValue& value = stack[stack.size() - results + i];
        if (const auto work = as<c10d::Work>(value)) {
            c10::intrusive_ptr<c10d::Work> hidden = c10::make_intrusive<HiddenWork>(work, finished);
            value = IValue(std::move(hidden));
        }
    }
}

void wait_for_work(const Stack& results) {
    for (const IValue& value : results)
        if (const auto work = as<c10d::Work>(value)) work->wait();
}

// A low-precision reduction beside the fp32 reduction of the same inputs. It is made on every rank, whatever
// happened before on this one: whether it is made depends only on what all ranks share, the op and its dtype.
struct Twin::Reduction {
    trace::CollectiveRecord like;
    Session* session = nullptr;
    std::vector<at::Tensor> real, exact;
    bool measured = false;
};

std::shared_ptr<Twin::Reduction> Twin::begin_reduction(const Call& call) {
    const trace::CollectiveRecord like = describe_collective(call.info, call.op, *call.stack);
    if (like.reduction.empty() || !is_low_precision(like.dtype)) return nullptr;
    Call exact(call.info, call.op, call.below, call.stack);
    exact.real = call.real;
    exact.local = true;
    const bool prepared = prepare_or_blank(exact);
    try {
        const TwinScope scope;
        Stack results(exact.shadow.begin(), exact.shadow.end());
        call.op.callBoxed(&results);
        wait_for_work(results);
        if (!prepared || session_.attends_only()) return nullptr;  // nobody would collect the figures
        auto reduction = std::make_shared<Reduction>();
        reduction->like = like;
        reduction->session = &session_;
        for (const Call::Pair& pair : exact.written_floats) {
            reduction->real.push_back(pair.real);
            reduction->exact.push_back(pair.shadow);
        }
        return reduction;
    } catch (const std::exception& e) {
        session_.measuring_fault(call.info.name, e.what());
        return nullptr;
    }
}

// Once the program has waited for its result.
std::function<void()> Twin::finisher_of(std::shared_ptr<Reduction> reduction) {
    if (!reduction) return {};
    return [reduction] {
        if (std::exchange(reduction->measured, true)) return;
        for (std::size_t i = 0; i < reduction->real.size(); ++i) {
            cpu::TensorView real, exact;
            Divergence d;
            if (view_for_kernels(reduction->real[i], real) && view_for_kernels(reduction->exact[i], exact) &&
                cpu::divergence(real, exact, d))
                reduction->session->count_reduction(reduction->like, d);
        }
        reduction->real.clear();
        reduction->exact.clear();
    };
}

// The shadow arguments of a collective; blanks, and false, where this rank has none to give. Widened real
// inputs it always has.
bool Twin::prepare_or_blank(Call& call) {
    try {
        if (call.local || !session_.attends_only()) {
            prepare(call);
            return true;
        }
    } catch (const std::exception& e) {
        if (call.local)
            session_.measuring_fault(call.info.name, e.what());
        else
            session_.internal_fault(call.info.name, e.what());
    }
    prepare_blanks(call);
    return false;
}

// The same collective on the shadows, first, and on every rank whatever happened before on this one: a
// rank that left it out would leave the others waiting.
void Twin::collective(Call& call) {
    if (session_.local()) {
        run_real(call);
        return;
    }
    const bool prepared = prepare_or_blank(call);
    bool followed = false;
    bool any_float = call.bytes;
    for (std::size_t i = 0; i < call.real.size() && !any_float; ++i)
        if (call.info.arguments[i].tensor)
            for_each_tensor(call.real[i], [&](const at::Tensor& t) { any_float |= carries_floats(t); });
    const std::size_t results = call.op.schema().returns().size();
    const std::shared_ptr<Reduction> reduction = begin_reduction(call);
    if (any_float) {
        try {
            const TwinScope scope;
            Stack shadow(call.shadow.begin(), call.shadow.end());
            call.op.callBoxed(&shadow);
            wait_for_work(shadow);
            followed = prepared;
        } catch (const std::exception& e) {
            session_.count_failed(call.info.name, e.what(), 0);
        }
    }
    run_real(call);
    const std::function<void()> finish = finisher_of(reduction);
    if (finish) session_.finish_later(finish);
    if (!rule_disabled("work")) hide_work(*call.stack, results, finish);
    if (!prepared) return lose_results(call);
    const TwinScope scope;
    std::uint64_t bytes = 0;
    for (const Call::Pair& pair : call.written_floats) {
        bytes += static_cast<std::uint64_t>(pair.real.numel()) * pair.real.element_size();
        if (!followed)
            shadows_.lose(pair.real);
        else
            shadows_.written(pair.real, /*later=*/true);
    }
    if (!followed && any_float) return;
    for (const Call::Pair& pair : call.written_integers) shadows_.lose_floats(pair.real);
    if (any_float) session_.count_shadowed(bytes);
}

}  // namespace mp::twin
