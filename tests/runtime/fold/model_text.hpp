#pragma once

#include <cinttypes>
#include <cstdio>
#include <string>

#include "runtime/fold/run_model.hpp"
#include "runtime/trace/dump.hpp"

namespace mp::trace::test {

// Everything of a model as text, bit by bit, so that two can be compared and a difference read.
class ModelText {
public:
    std::string of(const RunModel& m) {
        put("run", m.step_count, m.skipped_steps, m.steps_every, m.column_steps, static_cast<int>(m.mode),
            m.total_wall_ns, m.seeds_after_first, m.external_after_first);
        put(m.coverage);
        for (const RankFacts& r : m.ranks) {
            Recording recording;
            recording.has_process = true;
            recording.process = r.process;
            out_ += dump_text(recording);
            put("  rank", r.steps, r.last_step.value, r.ended, r.problems, r.lost_records);
            for (const std::string& p : r.first_problems) put(p);
        }
        for (const Error& e : m.unreadable) put(e.message);
        for (const Rank r : m.missing) put("missing", r.value);
        const auto put_step = [this](const StepSummary& s) {
            put("step", s.step.value, s.ranks, s.skipped, s.has_loss, s.has_twin, s.has_loss_scale, s.loss,
                s.twin_loss, s.loss_scale, s.wall_ns, s.sampled, s.lost_gradients);
            put(s.coverage);
        };
        for (const StepSummary& s : m.steps) put_step(s);
        if (m.unfinished) put_step(*m.unfinished);
        for (const OptimizerSteps& other : m.others) {
            put("optimizer", other.optimizer);
            for (const StepSummary& s : other.steps) put_step(s);
        }
        for (const Step start : m.trainings) put("training", start.value);
        for (const LayerSteps& l : m.map) {
            put("map " + l.layer, static_cast<int>(l.phase), l.order);
            for (const Cell& c : l.cells) put("  cell", c.cum_phi, c.loc_phi, c.flush, c.nonfinite);
        }
        for (const OpSum& o : m.ops) {
            put("sum", o.ranks, o.first_step.value, o.worst_loc_phi, o.worst_cum_phi);
            put("  still", o.still, o.first_still.value, o.last_moved.value);
            for (const Place& p : {o.first_origin, o.worst_loc, o.worst_cum})
                put("  at", p.rank.value, p.step.value);
            put(o.total);
            put(o.at_origin);
        }
        for (const TensorSum& t : m.tensors) put(t);
        for (const SkipFacts& s : m.skips) put(s);
        for (const CollectiveTotal& c : m.collectives) {
            put(c.total.op + c.total.reduction + c.total.group, c.total.calls, c.total.bytes,
                c.total.compared, c.total.error_squares, c.total.sum_squares, c.total.made_nonfinite,
                c.worst_phi, c.worst_at.rank.value, c.worst_at.step.value, c.first_nonfinite.value,
                c.sketched, c.differing, c.differs_at.rank.value, c.differs_at.step.value);
            put("  worst", c.worst_block.first, c.worst_block.length, c.worst_block.elements,
                c.worst_block.step.value, c.worst_block.share);
            put(c.total.memory + c.total.algorithms);
        }
        for (const MatmulRecord& r : m.matmuls)
            put("matmul " + r.layer + r.op + r.how, static_cast<int>(r.phase), static_cast<int>(r.a),
                static_cast<int>(r.b), static_cast<int>(r.result), r.calls, r.m, r.n, r.k, r.batches);
        for (const PlaceTotal& p : m.places)
            put(p.place.layer, static_cast<int>(p.place.role), p.place.tensors, p.place.elements,
                p.first_step.value);
        for (const LayerExponents& e : m.exponents) {
            put(e.layer, static_cast<int>(e.phase), static_cast<int>(e.dtype), e.exponents.lowest);
            for (const std::uint64_t count : e.exponents.counts) put("  bin", count);
        }
        for (const auto& [dtype, ops] : m.ops_by_dtype) put("dtype", static_cast<int>(dtype), ops);
        for (const std::string& p : m.policies) put(p);
        for (const RunModel::Note& n : m.notes) put(n.text, n.count, n.processes, n.first.value);
        return std::move(out_);
    }

private:
    void one(double v) {
        char text[64];
        std::snprintf(text, sizeof text, " %a", v);
        out_ += text;
    }
    template <typename T>
    void value(T v) {
        if constexpr (std::is_floating_point_v<T>) {
            one(static_cast<double>(v));
        } else {
            out_ += " " + std::to_string(v);
        }
    }
    template <typename... T>
    void put(const std::string& what, T... values) {
        out_ += what;
        (value(values), ...);
        out_ += "\n";
    }
    void put(const OpRecord& o) {
        Recording r;
        r.steps.emplace_back().ops = {o};
        out_ += dump_text(r);
    }
    void put(const Coverage& c) {
        Recording r;
        r.steps.emplace_back().coverage = c;
        out_ += dump_text(r);
    }
    void put(const TensorSum& t) {
        Recording r;
        r.steps.emplace_back().tensors = {t.last};
        out_ += dump_text(r);
        put("  sum", t.last_step.value, t.worst, t.meant_to_move, t.unmoved, t.below_half_ulp,
            t.wanted_squares, t.moved_dot, t.mastered, t.samples, t.frozen, t.first_stagnant.value,
            t.hash_mismatches, t.replicas, t.replica_mismatches, t.sampled_error_squares,
            t.sampled_twin_squares, t.first_sample.value, t.first_error_squares, t.first_twin_squares,
            t.change_squares, t.twin_change_squares, t.change_error_squares, t.most_flushed,
            t.first_rounded.value, t.last_rounded.value, static_cast<int>(t.narrow), t.rounding_squares,
            t.rounded_change_squares);
        for (const Place& p :
             {t.worst_at, t.first_nonfinite, t.first_mismatch, t.first_replica_mismatch, t.most_flushed_at})
            put("  at", p.rank.value, p.step.value);
    }
    void put(const SkipFacts& s) {
        put("skip " + s.reduction_op, s.step.value, s.has_scale, s.loss_scale, s.origin_rank.value,
            s.reductions_made_nonfinite, s.twin_loss_finite, s.loss_finite);
        for (const Rank r : s.skipped_by) put("  by", r.value);
        for (const Rank r : s.stepped_by) put("  not", r.value);
        put(s.origin);
        for (const SkipFacts::Gradient& g : s.gradients)
            put("  gradient " + g.name, g.rank.value, g.nonfinite, g.elements, g.twin_amax, g.nonfinite_twin);
    }

    std::string out_;
};

inline std::string text_of(const RunModel& m) { return ModelText().of(m); }

}  // namespace mp::trace::test
