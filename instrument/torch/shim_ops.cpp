// The ops that the Python shim calls (instrument/python). They are composite, so no dispatch key of ours or of the
// program's comes between. Each catches its own errors: the shim must not break a training script.

#include <torch/library.h>

#include <algorithm>
#include <cstdio>

#include "instrument/torch/adapter.hpp"
#include "instrument/torch/measure.hpp"
#include "instrument/torch/tensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

template <typename Work>
void guarded(const char* where, const Work& work) {
    Adapter* const a = adapter();
    if (!a || !a->control.armed()) return;
    try {
        const Internal internal;
        work(*a);
    } catch (const c10::OutOfMemoryError&) {
        a->shortage.give_up();
    } catch (const std::exception& e) {
        a->faults.internal(where, e.what());
    }
}

void loss(const at::Tensor& root, const at::Tensor& value) {
    guarded("loss", [&](Adapter& a) { a.losses.scaled(root, value); });
}

void parameter(std::string name, const at::Tensor& t) {
    guarded("parameter", [&](Adapter& a) { a.parameters.add(trace::TensorKind::parameter, name, t); });
}

void gradient(std::string name, const at::Tensor& t) {
    guarded("gradient", [&](Adapter& a) { a.parameters.add(trace::TensorKind::gradient, name, t); });
}

void buffer(std::string name, const at::Tensor& t) {
    guarded("buffer", [&](Adapter& a) { a.parameters.add(trace::TensorKind::buffer, name, t); });
}

void state(std::string name, const at::Tensor& t) {
    guarded("state", [&](Adapter& a) { a.parameters.add(trace::TensorKind::optimizer_state, name, t); });
}

// The ranks of a fork train unseen where the parent has trained too; without this line the run would only be empty.
void say_forked(const Adapter& a) {
    if (!a.control.options().quiet)
        std::fprintf(stderr,
                     "mp-trace: a process trains that was forked by one which had trained: it is not traced; "
                     "start it with the method spawn\n");
}

void before_step(std::int64_t) {
    if (take_forked()) say_forked(*adapter());
    guarded("before_step", [&](Adapter& a) { a.clock.before_step(); });
}

void after_step(std::int64_t optimizer, bool skipped, double scale) {
    guarded("after_step", [&](Adapter& a) { a.clock.after_step(optimizer, skipped, scale); });
}

void disarm(std::string reason) {
    guarded("disarm", [&](Adapter& a) { a.faults.disarm(reason); });
}

void note(std::string kind, std::string text) {
    guarded("note", [&](Adapter& a) {
        a.notes.say(kind == "seed" ? trace::NoteKind::seed : trace::NoteKind::not_observed, text);
    });
}

void finish(std::string how) {
    guarded("finish", [&](Adapter& a) { a.finish(how); });
}

void forked() {
    try {
        begin_in_child();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "mp-trace: %s; the child of a fork runs untraced\n", e.what());
    }
}

void task_begins() {
    guarded("task_begins", [](Adapter& a) { a.task_begins(); });
}

void task_ends(std::string how) {
    guarded("task_ends", [&](Adapter& a) { a.task_ends(how); });
}

void summaries(const std::vector<std::int64_t>& pids) {
    guarded("summaries", [&](Adapter& a) { a.summarize_children(pids); });
}

// Values that code outside the dispatcher has written: the twin has no history of them.
void outside(const std::vector<at::Tensor>& values, std::string where) {
    guarded("outside", [&](Adapter& a) {
        const TwinScope scope;
        for (const at::Tensor& t : values) {
            if (!t.defined() || !carries_floats(t)) continue;
            a.coverage.outside(where, bytes_of(t));
            if (t.numel() == 1 && c10::isFloatingType(t.scalar_type())) a.losses.candidate(t);
            if (a.control.twin_active() && !a.control.local() && has_plain_memory(t)) a.shadows.lose(t);
        }
    });
}

void world(std::int64_t rank, std::int64_t local_rank, std::int64_t size) {
    guarded("world", [&](Adapter& a) {
        if (a.recording.is_open()) return;
        a.control.learn_rank(static_cast<std::int32_t>(rank), static_cast<std::int32_t>(local_rank),
                             static_cast<std::int32_t>(size));
    });
}

void optimizer_made() {
    guarded("optimizer_made", [](Adapter& a) { a.inferred_clock.leave_to_optimizers(); });
}

void internal_begin() { ++thread_state().depth; }
void internal_end() { --thread_state().depth; }

void layer_push(std::string name) {
    guarded("layer_push", [&](Adapter& a) { a.layers.push(name); });
}
void layer_pop() {
    guarded("layer_pop", [](Adapter& a) { layer_ends(a, a.layers.pop()); });
}

void source(std::string layer, std::string where) {
    guarded("source", [&](Adapter& a) { a.layers.set_source(layer, where); });
}

void policy(std::string text) {
    guarded("policy", [&](Adapter& a) { a.notes.say(trace::NoteKind::policy, text); });
}

// The one role that the adapter does not see by itself.
void place(std::string role, std::string layer, std::string dtype, std::int64_t tensors,
           std::int64_t elements) {
    if (role != "checkpoint") return;
    guarded("place", [&](Adapter& a) {
        trace::DTypePlace place;
        place.role = trace::TensorRole::checkpoint;
        place.layer = std::move(layer);
        place.dtype = dtype_from_name(dtype).value_or(DType::unknown);
        place.tensors = static_cast<std::uint64_t>(std::max<std::int64_t>(tensors, 0));
        place.elements = static_cast<std::uint64_t>(std::max<std::int64_t>(elements, 0));
        a.clock.tensors().place(std::move(place));
    });
}

at::Tensor shadow(const at::Tensor& t) {
    Adapter* const a = adapter();
    return a ? a->shadows.value(t) : t.clone();
}

}  // namespace
}  // namespace mp::twin

TORCH_LIBRARY(mptrace, m) {
    using namespace mp::twin;
    m.def("loss(Tensor root, Tensor loss) -> ()", &loss);
    m.def("parameter(str name, Tensor p) -> ()", &parameter);
    m.def("gradient(str name, Tensor g) -> ()", &gradient);
    m.def("buffer(str name, Tensor b) -> ()", &buffer);
    m.def("state(str name, Tensor t) -> ()", &state);
    m.def("before_step(int optimizer) -> ()", &before_step);
    m.def("after_step(int optimizer, bool skipped, float scale) -> ()", &after_step);
    m.def("layer_push(str name) -> ()", &layer_push);
    m.def("layer_pop() -> ()", &layer_pop);
    m.def("source(str layer, str where) -> ()", &source);
    m.def("policy(str text) -> ()", &policy);
    m.def("place(str role, str layer, str dtype, int tensors, int elements) -> ()", &place);
    m.def("disarm(str reason) -> ()", &disarm);
    m.def("note(str kind, str text) -> ()", &note);
    m.def("finish(str how) -> ()", &finish);
    m.def("forked() -> ()", &forked);
    m.def("task_begins() -> ()", &task_begins);
    m.def("task_ends(str how) -> ()", &task_ends);
    m.def("summaries(int[] pids) -> ()", [](std::vector<std::int64_t> pids) { summaries(pids); });
    m.def("outside(Tensor[] values, str where) -> ()", &outside);
    m.def("world(int rank, int local_rank, int size) -> ()", &world);
    m.def("optimizer_made() -> ()", &optimizer_made);
    m.def("internal_begin() -> ()", &internal_begin);
    m.def("internal_end() -> ()", &internal_end);
    m.def("shadow(Tensor t) -> Tensor", &shadow);
}

// The same without the dispatcher, because the shim may spend at most a microsecond per module call. For C++ programs
// they are the public interface, which instrument/preload forwards (mptrace.h).
#define MP_PUBLIC extern "C" __attribute__((visibility("default")))

MP_PUBLIC void mptrace_layer_push(const char* name) noexcept {
    using namespace mp::twin;
    if (name) guarded("layer_push", [&](Adapter& a) { a.layers.push(name); });
}

MP_PUBLIC void mptrace_layer_pop() noexcept { mp::twin::layer_pop(); }

MP_PUBLIC void mptrace_loss(const void* tensor) noexcept {
    using namespace mp::twin;
    if (tensor)
        guarded("loss", [&](Adapter& a) { a.losses.declared(*static_cast<const at::Tensor*>(tensor)); });
}

MP_PUBLIC void mptrace_step(int skipped, double loss_scale) noexcept {
    mp::twin::guarded(
        "step", [&](mp::twin::Adapter& a) { a.inferred_clock.declared_step(skipped != 0, loss_scale); });
}
