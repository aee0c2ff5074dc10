#include "runtime/fold/sketches.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "runtime/fold/op_table.hpp"
#include "runtime/fold/parts.hpp"

namespace mp::trace {
namespace {

// Fewer blocks have an error that is too far from that of the whole tensor.
constexpr std::uint64_t kFewestBlocks = 32;
// A block that is so far off was not reduced from these values: something else wrote them, or the calls do not belong
// together. Relative to the result, squared.
constexpr double kUnrelated = 0.25;

struct Errors {
    std::uint64_t blocks = 0, elements = 0;
    ExactSum squares, results;
    std::uint64_t differing = 0;
    Place differs_at;
    Member differs_for;
    double worst_error = 0;  // squared
    CollectiveTotal::WorstBlock worst{};
};

template <class Received>
bool precedes(const Received& a, const Received& b, bool less) {
    if (a.sum != b.sum) return less ? a.sum < b.sum : a.sum > b.sum;
    return a.rank < b.rank;
}

}  // namespace

void SketchTable::add(const SketchRecord& r, Step step, Rank process) {
    if (!std::isfinite(r.sent) || (r.has_received && !std::isfinite(r.received))) return;
    Block block;
    block.step = step;
    block.sent.add(r.sent);
    block.senders = 1;
    block.receivers = r.has_received;
    block.least = block.most = {r.received, r.received_squares, r.rank, process};
    merge({r.communicator, r.call, r.first, r.length, r.elements, r.ranks, r.dtype, r.op, r.reduction},
          block);
}

void SketchTable::merge(const Key& key, const Block& block) {
    const auto [at, fresh] = blocks_.try_emplace(key, block);
    if (!fresh) {
        Block& into = at->second;
        into.step = std::min(into.step, block.step);
        into.sent.add(block.sent);
        if (block.receivers > 0) {
            if (into.receivers == 0 || precedes(block.least, into.least, true)) into.least = block.least;
            if (into.receivers == 0 || precedes(block.most, into.most, false)) into.most = block.most;
        }
        into.senders += block.senders;
        into.receivers += block.receivers;
    }
    // The first by key: what is left out here is not among the first of the whole run either.
    if (blocks_.size() > kMost) blocks_.erase(std::prev(blocks_.end()));
}

void SketchTable::merge(const SketchTable& other) {
    for (const auto& [key, block] : other.blocks_) merge(key, block);
}

void SketchTable::put(RunModel& model) const {
    std::map<std::tuple<std::string, std::string, DType, std::uint64_t>, Errors> all;
    for (const auto& [key, block] : blocks_) {
        const auto& [communicator, call, first, length, elements, ranks, dtype, op, reduction] = key;
        if (block.senders != ranks || block.receivers == 0) continue;
        const double expected = block.sent.value() / (reduction == "avg" ? static_cast<double>(ranks) : 1);
        const bool least_is_nearer =
            std::abs(block.least.sum - expected) <= std::abs(block.most.sum - expected);
        const Received& right = least_is_nearer ? block.least : block.most;
        const Received& wrong = least_is_nearer ? block.most : block.least;
        const double error = (right.sum - expected) * (right.sum - expected);
        if (!(error <= kUnrelated * right.squares)) continue;
        Errors& errors = all[{op, reduction, dtype, ranks}];
        if (right.sum != wrong.sum) {
            const Place at{wrong.process, block.step};
            const Member whose{communicator, Rank{static_cast<std::int32_t>(wrong.rank)}, -1};
            if (errors.differing++ == 0 || precedes(at, whose, errors.differs_at, errors.differs_for))
                errors.differs_at = at, errors.differs_for = whose;
            continue;
        }
        ++errors.blocks;
        errors.elements += length;
        errors.squares.add(error);
        if (error > errors.worst_error) {
            errors.worst_error = error;
            errors.worst = {first, length, elements, block.step, 0};
        }
        errors.results.add(right.squares);
    }
    for (CollectiveTotal& c : model.collectives) {
        const auto found = all.find({c.total.op, c.total.reduction, c.total.dtype, c.total.ranks});
        if (found == all.end() || c.total.compared > 0) continue;
        const Errors& errors = found->second;
        c.differing = errors.differing;
        c.differs_at = errors.differs_at;
        c.differs_for = errors.differs_for;
        if (errors.blocks < kFewestBlocks) continue;
        c.sketched = errors.blocks;
        c.worst_block = errors.worst;
        if (errors.worst_error > 0) c.worst_block.share = errors.worst_error / errors.squares.value();
        c.total.compared = errors.elements;
        c.total.error_squares = errors.squares.value();
        c.total.sum_squares = errors.results.value();
        c.worst_phi = phi_of(c.total.error_squares, c.total.sum_squares, c.total.compared, c.total.dtype);
    }
}

}  // namespace mp::trace
