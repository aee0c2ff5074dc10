#include "runtime/report/summary.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/fold/parts.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

double fraction(std::uint64_t part, std::uint64_t rest) {
    const double whole = static_cast<double>(part) + static_cast<double>(rest);
    return whole > 0 ? static_cast<double>(part) / whole : -1;
}

}  // namespace

// After an elastic restart a recording begins at a later step, and its first step still seeds all shadows.
void CoverageSum::add(const Recording& recording) {
    bool first = true;
    for (const StepRecord& step : recording.steps) {
        merge_fields(sum, step.coverage);
        if (!first) {
            seeds_after_first += step.coverage.seeds;
            external_after_first += step.coverage.external;
        }
        first = false;
    }
}

double fraction_of_ops(const Coverage& c) { return fraction(c.shadowed, c.unshadowed); }
double fraction_of_bytes(const Coverage& c) { return fraction(c.shadowed_bytes, c.unshadowed_bytes); }

NoteSums notes_of(const std::vector<Recording>& recordings) {
    NoteSums sums;
    for (const Recording& r : recordings) {
        NoteSums own;
        for (const NoteRecord& n : r.notes) {
            const auto [it, first] = own.try_emplace({n.kind, n.text});
            if (first) it->second.first = n.step;
            it->second.count = n.count;
        }
        for (const auto& [key, note] : own) {
            const auto [it, first] = sums.try_emplace(key);
            if (first || note.first < it->second.first) it->second.first = note.first;
            it->second.count += note.count;
            ++it->second.processes;
        }
    }
    return sums;
}

CollectiveSums collectives_of(const std::vector<Recording>& recordings) {
    CollectiveSums sums;
    for (const Recording& r : recordings) {
        for (const StepRecord& s : r.steps) {
            for (const CollectiveRecord& c : s.collectives) {
                CollectiveSum& sum = sums[{c.op, c.reduction, c.dtype, c.group}];
                sum.calls += c.calls;
                sum.bytes += c.bytes;
            }
        }
    }
    return sums;
}

std::map<DType, std::uint64_t> dtypes_of(const std::vector<Recording>& recordings) {
    std::map<DType, std::uint64_t> sums;
    for (const Recording& r : recordings) {
        for (const StepRecord& s : r.steps) {
            for (const DTypeCount& d : s.dtypes) sums[d.dtype] += d.ops;
        }
    }
    return sums;
}

TensorHistories tensors_of(const Recording& recording) {
    TensorHistories histories;
    for (const StepRecord& s : recording.steps) {
        for (const TensorRecord& t : s.tensors) {
            TensorHistory& h = histories[{t.name, t.kind}];
            h.last = &t;
            h.last_step = s.step;
            const double now = relative_l2(t);
            if (is_worse(now, h.worst)) {
                h.worst = now;
                h.worst_step = s.step;
            }
        }
    }
    return histories;
}

std::vector<StepPlace> steps_of(const Run& run) {
    std::vector<StepPlace> places;
    for (const Recording& r : run.recordings) {
        for (const StepRecord& s : r.steps) places.push_back({&r, &s});
    }
    // Both point into vectors of the run, so that addresses are in its order.
    std::sort(places.begin(), places.end(), [](const StepPlace& a, const StepPlace& b) {
        return std::tuple(a.record->step, a.recording, a.record) <
               std::tuple(b.record->step, b.recording, b.record);
    });
    return places;
}

const LossRecord* loss_of(const StepRecord& step) {
    return step.losses.empty() ? nullptr : &step.losses.back();
}

}  // namespace mp::trace
