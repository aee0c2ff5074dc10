#include "instrument/cuda/step_tally.hpp"

#include <algorithm>
#include <utility>

#include "instrument/cuda/product_text.hpp"

namespace mp::raw {
namespace {

constexpr std::size_t kMostAlgorithms = 16;  // that are named of one kind of collective

void count_dtype(trace::StepRecord& record, DType dtype) {
    const auto found =
        std::ranges::find_if(record.dtypes, [dtype](const trace::DTypeCount& d) { return d.dtype == dtype; });
    if (found != record.dtypes.end()) {
        ++found->ops;
    } else {
        record.dtypes.push_back({dtype, 1});
    }
}

}  // namespace

StepTally::Counted StepTally::count(const Places& places, PlaceId id, int device, const Product& product) {
    const DType dtype = product.result.dtype;
    const auto [at, fresh] = ops_.try_emplace({id, product.op, dtype, device}, record.ops.size());
    if (fresh) {
        const Place& place = places[id];
        trace::OpRecord& op = record.ops.emplace_back();
        op.layer = place.layer;
        op.phase = place.phase;
        op.op = product.op;
        op.dtype = dtype;
        op.first = calls;
        op.device = static_cast<std::uint64_t>(device + 1);
    }
    trace::OpRecord& op = record.ops[at->second];
    ++op.calls;
    op.half_sums += product.half_sums;
    op.split_sums += product.split_sums;
    op.tf32 += product.tf32;
    op.depth = std::max(op.depth, static_cast<double>(product.depth));
    count_matmul(at->second, product);
    count_dtype(record, dtype);
    ++record.coverage.ops;
    return {at->second, calls++};
}

void StepTally::count_matmul(std::size_t op, const Product& p) {
    const DType a = p.count > 0 ? p.inputs[0].dtype : DType::unknown;
    const DType b = p.count > 1 ? p.inputs[1].dtype : DType::unknown;
    const Asked asked{op, a, b, p.compute, p.parts, p.epilogue, p.scheme, p.tf32, p.has_scales};
    const auto [at, fresh] = matmuls_.try_emplace(asked, record.matmuls.size());
    if (fresh) {
        trace::MatmulRecord& matmul = record.matmuls.emplace_back();
        matmul.a = a;
        matmul.b = b;
        matmul.result = p.result.dtype;
        matmul.how = how_of(p);
        ops_of_matmuls_.push_back(op);
    }
    const auto largest = [](std::uint64_t& known, auto value) {
        known = std::max(known, static_cast<std::uint64_t>(value));
    };
    trace::MatmulRecord& matmul = record.matmuls[at->second];
    ++matmul.calls;
    largest(matmul.m, p.result.rows);
    largest(matmul.n, p.result.columns);
    largest(matmul.k, p.depth);
    largest(matmul.batches, p.result.batches);
}

StepTally::Counted StepTally::count(const Collective& c) {
    const auto [at, fresh] = collectives_.try_emplace(kind_of(c), record.collectives.size());
    if (fresh) {
        trace::CollectiveRecord& collective = record.collectives.emplace_back();
        collective.op = c.op;
        collective.reduction = c.reduction;
        collective.dtype = c.dtype;
        collective.ranks = static_cast<std::uint64_t>(std::max(c.ranks, 0));
        collective.communicator = c.communicator;
        collective.member = static_cast<std::uint64_t>(c.rank + 1);
        collective.device = static_cast<std::uint64_t>(c.device + 1);
    }
    trace::CollectiveRecord& collective = record.collectives[at->second];
    ++collective.calls;
    collective.bytes += c.sent * c.width;
    ++record.coverage.ops;
    return {at->second, calls++};
}

std::optional<std::size_t> StepTally::find(const Collective& c) const {
    const auto found = collectives_.find(kind_of(c));
    if (found == collectives_.end()) return std::nullopt;
    return found->second;
}

void StepTally::add_algorithm(std::size_t collective, const std::string& algorithm) {
    std::set<std::string>& all = algorithms_[collective];
    if (all.size() >= kMostAlgorithms || !all.insert(algorithm).second) return;
    std::string& text = record.collectives[collective].algorithms;
    text.clear();
    for (const std::string& one : all) text += (text.empty() ? "" : ", ") + one;
}

void StepTally::add(std::size_t op, trace::ProductRecord product) {
    record.products.push_back(std::move(product));
    ops_of_products_.push_back(op);
}

void StepTally::name_products() {
    const auto name = [this](auto& record_of, std::size_t op_index) -> const trace::OpRecord& {
        const trace::OpRecord& op = record.ops[op_index];
        record_of.layer = op.layer;
        record_of.op = op.op;
        record_of.phase = op.phase;
        return op;
    };
    for (std::size_t i = 0; i < record.products.size(); ++i)
        record.products[i].device = name(record.products[i], ops_of_products_[i]).device;
    for (std::size_t i = 0; i < record.matmuls.size(); ++i) name(record.matmuls[i], ops_of_matmuls_[i]);
}

void StepTally::leave_out_devices() {
    for (trace::OpRecord& op : record.ops) op.device = 0;
}

void StepTally::name_forward() {
    std::uint64_t backward = ~std::uint64_t{0};
    for (const trace::OpRecord& op : record.ops)
        if (op.phase == Phase::backward) backward = std::min(backward, op.first);
    if (backward == ~std::uint64_t{0}) return;
    for (trace::OpRecord& op : record.ops)
        if (op.phase == Phase::unknown && op.first < backward) op.phase = Phase::forward;
}

// They come without the order of their calls: a place is the forward's if its ops are.
void StepTally::name_forward_times() {
    for (trace::TimeRecord& time : record.times)
        if (time.phase == Phase::unknown &&
            std::ranges::any_of(record.ops, [&time](const trace::OpRecord& op) {
                return op.phase == Phase::forward && op.layer == time.layer;
            }))
            time.phase = Phase::forward;
}

}  // namespace mp::raw
