#include "instrument/torch/collectives.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <utility>

#include "instrument/torch/collective_records.hpp"
#include "instrument/torch/tensors.hpp"
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
#if MP_TORCH_AT_LEAST(2, 2)
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

void look_at_inputs(Late& late, trace::CollectiveRecord& record, const OpInfo& info, const Stack& stack) {
    if (record.reduction.empty() || record.dtype != DType::fp16) return;
    const std::size_t count = info.arguments.size();
    bool looked = false, finite = true;
    for (std::size_t i = 0; i < count; ++i) {
        if (!info.arguments[i].tensor || info.arguments[i].overwrite) continue;
        for_each_tensor(stack[stack.size() - count + i], [&](const at::Tensor& t) {
            if (!late.serves(t)) {
                looked = true;
                finite &= !any_nonfinite(t);
            } else if (const Figure<TensorStats> stats = late.statistics(t)) {
                late.then([like = record, stats](LateStep& step) {
                    for (trace::CollectiveRecord& c : step.record.collectives)
                        if (same_kind(c, like)) ++(stats->nonfinite() == 0 ? c.finite_inputs : c.lost_inputs);
                });
            }
        });
    }
    if (looked) ++(finite ? record.finite_inputs : record.lost_inputs);
}

void hide_work(Stack& stack, std::size_t results, const std::function<void()>& finished,
               const std::shared_ptr<std::atomic<bool>>& chained) {
    for (std::size_t i = 0; i < results; ++i) {
        IValue& value = stack[stack.size() - results + i];
        if (const auto work = as<c10d::Work>(value)) {
            c10::intrusive_ptr<c10d::Work> hidden = c10::make_intrusive<HiddenWork>(work, finished, chained);
            value = IValue(std::move(hidden));
        }
    }
}

void wait_for_work(const Stack& results) {
    for (const IValue& value : results)
        if (const auto work = as<c10d::Work>(value)) work->wait();
}

}  // namespace mp::twin
