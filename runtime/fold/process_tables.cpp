#include "runtime/fold/process_tables.hpp"

#include "runtime/fold/parts.hpp"
#include "runtime/trace/decode.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

// A node of a map: three pointers and a colour.
constexpr std::size_t kMapNode = 32;

}  // namespace

std::optional<LossRecord> loss_of(const std::vector<LossRecord>& losses) {
    if (losses.empty()) return std::nullopt;
    LossRecord sum = losses.back();
    for (std::size_t i = 0; i + 1 < losses.size(); ++i) {
        sum.real += losses[i].real;
        sum.twin += losses[i].twin;
        sum.has_twin = sum.has_twin && losses[i].has_twin;
    }
    return sum;
}

void CoverageSum::add(const Coverage& c, bool first_of_recording) {
    merge_fields(sum, c);
    if (first_of_recording) return;
    seeds_after_first += c.seeds;
    external_after_first += c.external;
}

void CoverageSum::merge(const CoverageSum& other) {
    merge_fields(sum, other.sum);
    seeds_after_first += other.seeds_after_first;
    external_after_first += other.external_after_first;
}

bool TableMaker::fits(std::size_t bytes) {
    if (bytes > room_) return false;
    room_ -= bytes;
    return true;
}

// Tensors come in the same order in most steps. False: there was no room for a new one.
bool TableMaker::add(std::size_t row, const TensorRecord& r, std::string name, Step step) {
    const bool hinted =
        row < hints_.size() && hints_[row]->first.second == r.kind && hints_[row]->first.first == name;
    if (!hinted) {
        const std::size_t bytes = sizeof(TensorHistories::value_type) + kMapNode + name.size();
        std::pair key(std::move(name), r.kind);
        auto at = made_->tensors.find(key);
        if (at == made_->tensors.end()) {
            if (!fits(bytes)) return false;
            at = made_->tensors.try_emplace(std::move(key)).first;
        }
        if (row >= hints_.size()) hints_.resize(row + 1, at);
        hints_[row] = at;
    }
    TensorHistory& h = hints_[row]->second;
    h.last = r;
    h.last_step = step;
    const double now = relative_l2(r);
    if (is_worse(now, h.worst)) {
        h.worst = now;
        h.worst_step = step;
    }
    return true;
}

void TableMaker::step(const StepRows& rows, const NameList& names) {
    const StepRecord& s = rows.record;
    if (s.optimizer == kNoOptimizer) return;
    made_->coverage.add(s.coverage, made_->counts.steps == 0 || s.step == made_->counts.first_step);
    made_->counts.add(s);
    bool whole = fits(sizeof(StepRow) + s.losses.size() * sizeof(LossRecord));
    if (whole) {
        made_->steps.push_back({.step = s.step,
                                .optimizer = s.optimizer,
                                .skipped = s.skipped,
                                .has_loss_scale = s.has_loss_scale,
                                .loss_scale = s.loss_scale,
                                .wall_ns = s.wall_ns,
                                .seeds = s.coverage.seeds,
                                .external = s.coverage.external,
                                .losses = s.losses});
    }
    for (std::size_t i = 0; i < s.tensors.size(); ++i)
        whole = add(i, s.tensors[i], text_of(rows.tensors[i], names), s.step) && whole;
    left_out_ += !whole;
}

void TableMaker::note(const NoteRecord& n) { made_->counts.add(n); }

std::shared_ptr<const ProcessTables> TableMaker::finish(const Recording& told) {
    RecordingCounts& counts = made_->counts;
    counts.bytes = told.bytes;
    counts.has_process = told.has_process;
    counts.problems = told.problems;
    if (left_out_ > 0)
        counts.problems.push_back(
            {told.bytes, 0, std::to_string(left_out_) + " records are not listed: too many to hold"});
    return std::move(made_);
}

}  // namespace mp::trace
