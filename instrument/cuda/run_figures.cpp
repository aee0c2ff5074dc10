// What the device tells of calls: measured before and after each, read when their events have passed, and added to the
// records of the steps that the calls belong to.

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "instrument/cuda/run.hpp"
#include "instrument/cuda/samples.hpp"
#include "kernels/cuda/measure.hpp"
#include "runtime/trace/op_stats.hpp"

namespace mp::raw {
namespace {

constexpr int kMostSamples = 512;      // products of a step of which elements are computed again
constexpr int kMostSketches = 32;      // reductions of a step of which blocks are sketched
constexpr std::size_t kMostHeld = 16;  // ended steps of which it is not known yet whether they were skipped

void merge(trace::OpRecord& into, const cuda::ProductError& error) {
    into.loc_compared += error.compared;
    into.loc_nonfinite += error.nonfinite;
    into.loc_error_squares += error.error_squares;
    into.loc_squares += error.squares;
    into.loc_dot += error.dot;
    if (error.squares > 0)
        into.loc_worst = trace::larger(into.loc_worst, std::sqrt(error.error_squares / error.squares));
}

}  // namespace

bool Run::provide_slots() {
    if (batch_.slots) return true;
    if (!free_.empty()) {
        batch_.slots = std::move(free_.back());
        free_.pop_back();
    } else {
        batch_.slots = meter_.slots();
    }
    batch_.id = ++batches_;
    return batch_.slots != nullptr;
}

Run::Ticket Run::measure(Call call, abi::Stream stream, const cpu::TensorView* inputs) {
    const std::int64_t number = steps_.own() >= 0 ? steps_.own() : std::max(named_step_, std::int64_t{0});
    if (!options_.steps.contains(mp::Step{number})) return {};
    if (!provide_slots()) {
        ++unmeasured_;
        return {};
    }
    call.figures = batch_.slots->take<TensorStats>(call.inputs + 1);
    if (!call.figures) {
        close_batch();
        drain();
        if (provide_slots()) call.figures = batch_.slots->take<TensorStats>(call.inputs + 1);
    }
    if (!call.figures) {
        ++unmeasured_;
        return {};
    }
    if (!meter_.statistics(stream, inputs, call.inputs, call.figures)) {
        ++unmeasured_;
        return {};
    }
    ++call.step->open;
    batch_.calls.push_back(std::move(call));
    return {batch_.id, batch_.calls.size() - 1};
}

void Run::measure_result(Ticket ticket, abi::Stream stream, const cpu::TensorView& result, bool succeeded) {
    if (!succeeded) return;
    // Another thread may have ended the step meanwhile. Then nothing of the call is kept.
    if (ticket.batch != batch_.id || ticket.call >= batch_.calls.size()) {
        ++unmeasured_;
        return;
    }
    Call& call = batch_.calls[ticket.call];
    call.has_result = meter_.statistics(stream, &result, 1, call.figures + call.inputs);
    if (!call.has_result) ++unmeasured_;
    call.into = result.data;
    call.allocation = Meter::allocation_id_of(result.data);
}

void Run::sketch(Ticket ticket, const Collective& c) {
    const std::uint64_t next = number_of_step();
    const bool wanted = next % 256 == 0 || std::has_single_bit(next);
    StepTally& step = *steps_.work();
    if (!wanted || step.sketches == kMostSketches) return;
    Sketching s = sketching_of(c);
    if (s.sent.count == 0) return;
    auto* const figures = batch_.slots->take<cuda::Sketch>(static_cast<int>(s.sent.count));
    if (!figures || !meter_.sketch(c.stream, s.sent, figures)) return;
    s.sent_figures = figures;
    ++step.sketches;
    batch_.sketches.emplace(ticket.call, std::move(s));
}

void Run::sketch_result(Ticket ticket, abi::Stream stream, bool succeeded) {
    if (!succeeded || ticket.batch != batch_.id) return;
    const auto found = batch_.sketches.find(ticket.call);
    if (found == batch_.sketches.end() || found->second.received.count == 0) return;
    Sketching& s = found->second;
    auto* const figures = batch_.slots->take<cuda::Sketch>(static_cast<int>(s.received.count));
    if (figures && meter_.sketch(stream, s.received, figures)) s.received_figures = figures;
}

// The exact elements are in the memory of the stream until compare(), so no second product may begin meanwhile. One of
// an older batch is lost.
void Run::expect(Ticket ticket, Call& call, const Product& product) {
    StepTally& step = *call.step;
    if (!is_sampled() || !product.is_plain || step.samples == kMostSamples) return;
    if (sampled_.batch == ticket.batch) return;
    call.sampled = sample_of(product, call.ordinal);
    call.sampled.seed += number_of_step() << 32;
    if (!meter_.expect(product.stream, call.sampled)) return;
    ++step.samples;
    sampled_ = ticket;
    expect_sketch(call, product.stream);
}

// A result with few rows needs no sketch: the checked elements are of all its rows. Neither does one in fp64, which is
// as exact as the sketch.
void Run::expect_sketch(Call& call, abi::Stream stream) {
    const std::uint32_t figures = figures_of_sketch(call.sampled);
    if (figures < 2 || call.sampled.d.dtype == DType::fp64) return;
    if (!cuda::is_sketchable(call.sampled)) {
        note_locked(trace::NoteKind::not_observed, "products that are too large for a sketch", 1);
        return;
    }
    auto* const rows = batch_.slots->take<cuda::RowsError>(static_cast<int>(figures));
    if (rows && meter_.expect_sketch(stream, call.sampled, rows)) call.rows = rows;
}

void Run::compare(Ticket ticket, abi::Stream stream, bool succeeded) {
    sampled_ = {};
    if (!succeeded || ticket.batch != batch_.id || ticket.call >= batch_.calls.size()) return;
    Call& call = batch_.calls[ticket.call];
    auto* const error = batch_.slots->take<cuda::ProductError>(1);
    if (error && meter_.compare(stream, call.sampled, error)) call.error = error;
    call.is_sketched = call.rows && meter_.compare_sketch(stream, call.sampled, call.rows);
}

void Run::close_batch() {
    if (!batch_.slots) return;
    batch_.fence = meter_.fence();
    waiting_.push_back(std::exchange(batch_, Batch{}));
}

void Run::add(StepTally& step, const Call& call) const {
    if (!call.has_result) return;
    std::uint64_t lost = 0;
    double amax = 0;
    for (int i = 0; i < call.inputs; ++i) {
        lost += call.figures[i].nonfinite();
        amax = trace::larger(amax, call.figures[i].amax);
    }
    const TensorStats& result = call.figures[call.inputs];
    if (!call.product) {
        trace::CollectiveRecord& record = step.record.collectives[call.record];
        ++(lost > 0 ? record.lost_inputs : record.finite_inputs);
        if (result.nonfinite() > 0 && record.lost_results++ == 0 && record.memory.empty())
            record.memory = memory_of(call.into, call.allocation);
        return;
    }
    trace::OpRecord& op = step.record.ops[call.record];
    trace::add_result(op, result);
    if (call.error) {
        merge(op, *call.error);
        step.record.sampled = true;
    }
    if (call.is_sketched) step.add(call.record, record_of(call.sampled, call.rows));
    if (result.nonfinite() == 0) return;
    if (op.input_amax == 0) op.input_amax = amax;
    const bool is_first_origin = lost == 0 && op.origins++ == 0;
    if (is_first_origin) op.first_origin = call.ordinal;
    if (is_first_origin || op.source.empty()) op.source = memory_of(call.into, call.allocation);
}

void Run::add(StepTally& step, std::vector<Weights::Compared>& weights) {
    for (Weights::Compared& w : weights) {
        if (w.figure) {
            w.record.meant_to_move = w.figure->meant_to_move;
            w.record.unmoved = w.figure->unmoved;
        }
        step.record.tensors.push_back(std::move(w.record));
        step.record.sampled = true;
    }
}

void Run::drain() {
    while (!waiting_.empty() && waiting_.front().fence.passed()) {
        Batch& batch = waiting_.front();
        if (batch.fence.valid()) {
            for (const Call& call : batch.calls) add(*call.step, call);
            for (const auto& [call, sketches] : batch.sketches)
                put_records(sketches, batch.calls[call].step->record.sketches);
            if (batch.step) add(*batch.step, batch.weights);
        } else {
            unmeasured_ += batch.calls.size();
        }
        for (const Call& call : batch.calls) --call.step->open;
        if (batch.step) --batch.step->open;
        batch.slots->clear();
        free_.push_back(std::move(batch.slots));
        waiting_.pop_front();
    }
    write_ready();
}

// One for each role, layer and dtype.
std::vector<trace::DTypePlace> Run::named_places() const {
    std::map<std::tuple<trace::TensorRole, std::string_view, DType>, trace::DTypePlace> places;
    for (const auto& [data, place] : named_) {
        const auto [at, fresh] = places.try_emplace({place.role, place.layer, place.dtype}, place);
        if (fresh) continue;
        at->second.tensors += place.tensors;
        at->second.elements += place.elements;
    }
    std::vector<trace::DTypePlace> all;
    for (auto& [key, place] : places) all.push_back(std::move(place));
    return all;
}

void Run::write_ready() {
    // Times come late; one step waits for the last ones.
    const std::size_t kept = options_.device_times && !closing_ ? 1 : 0;
    for (; ended_.size() > kept && ended_.front()->open == 0; ended_.pop_front()) {
        const bool can_wait = !closing_ && ended_.size() < kMostHeld;
        if (!skips_.settle(*ended_.front(), can_wait)) break;
        if (!open()) continue;
        trace::StepRecord& record = ended_.front()->record;
        record.places = named_places();
        ended_.front()->name_products();
        places_of_steps_.put(record);
        recorder_->step(record);
        written_ += record.optimizer != trace::kNoOptimizer;
    }
}

}  // namespace mp::raw
