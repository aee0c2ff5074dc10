// The ops that the Python shim calls (instrument/python). Composite: no dispatch key of ours or of the
// program's gets between. Each swallows its own errors: a shim must not break a training script.

#include <torch/library.h>

#include <algorithm>

#include "instrument/torch/measure.hpp"
#include "instrument/torch/thread_state.hpp"
#include "instrument/torch/twin.hpp"

namespace mp::twin {
namespace {

template <typename Work>
void guarded(const char* where, const Work& work) {
    Session* const s = session();
    if (!s || !s->armed()) return;
    try {
        const Internal internal;
        work(*s);
    } catch (const std::exception& e) {
        s->internal_fault(where, e.what());
    }
}

void loss(const at::Tensor& root, const at::Tensor& value) {
    guarded("loss", [&](Session& s) { s.scaled_loss(root, value); });
}

void parameter(std::string name, const at::Tensor& t) {
    guarded("parameter", [&](Session& s) { s.parameters().add(trace::TensorKind::parameter, name, t); });
}

void gradient(std::string name, const at::Tensor& t) {
    guarded("gradient", [&](Session& s) { s.parameters().add(trace::TensorKind::gradient, name, t); });
}

void buffer(std::string name, const at::Tensor& t) {
    guarded("buffer", [&](Session& s) { s.parameters().add(trace::TensorKind::buffer, name, t); });
}

void state(std::string name, const at::Tensor& t) {
    guarded("state", [&](Session& s) { s.parameters().add(trace::TensorKind::optimizer_state, name, t); });
}

void before_step(std::int64_t optimizer) {
    guarded("before_step", [&](Session& s) { s.before_step(optimizer); });
}

void after_step(std::int64_t optimizer, bool skipped, double scale) {
    guarded("after_step", [&](Session& s) { s.after_step(optimizer, skipped, scale); });
}

void disarm(std::string reason) {
    guarded("disarm", [&](Session& s) { s.disarm(reason); });
}

void note(std::string kind, std::string text) {
    guarded("note", [&](Session& s) {
        s.note(kind == "seed" ? trace::NoteKind::seed : trace::NoteKind::not_observed, text);
    });
}

void finish() {
    guarded("finish", [](Session& s) { s.finish(); });
}

void internal_begin() { ++thread_state().depth; }
void internal_end() { --thread_state().depth; }

void layer_push(std::string name) {
    guarded("layer_push", [&](Session&) { layers().push(name); });
}
void layer_pop() {
    guarded("layer_pop", [](Session&) { layer_ends(layers().pop()); });
}

void source(std::string layer, std::string where) {
    guarded("source", [&](Session&) { layers().set_source(layer, where); });
}

void policy(std::string text) {
    guarded("policy", [&](Session& s) { s.note(trace::NoteKind::policy, text); });
}

// The one role that the adapter does not see by itself.
void place(std::string role, std::string layer, std::string dtype, std::int64_t tensors,
           std::int64_t elements) {
    if (role != "checkpoint") return;
    guarded("place", [&](Session& s) {
        trace::DTypePlace place;
        place.role = trace::TensorRole::checkpoint;
        place.layer = std::move(layer);
        place.dtype = dtype_from_name(dtype).value_or(DType::unknown);
        place.tensors = static_cast<std::uint64_t>(std::max<std::int64_t>(tensors, 0));
        place.elements = static_cast<std::uint64_t>(std::max<std::int64_t>(elements, 0));
        s.place(std::move(place));
    });
}

at::Tensor shadow(const at::Tensor& t) { return twin() ? twin()->value(t) : t.clone(); }

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
    m.def("finish() -> ()", &finish);
    m.def("internal_begin() -> ()", &internal_begin);
    m.def("internal_end() -> ()", &internal_end);
    m.def("shadow(Tensor t) -> Tensor", &shadow);
}

// The same without the dispatcher: a microsecond a module call is what the shim can spend. For C++ programs
// they are the public interface, which instrument/preload forwards (mptrace.h).
#define MP_PUBLIC extern "C" __attribute__((visibility("default")))

MP_PUBLIC void mptrace_layer_push(const char* name) noexcept {
    using namespace mp::twin;
    if (name) guarded("layer_push", [&](Session&) { layers().push(name); });
}

MP_PUBLIC void mptrace_layer_pop() noexcept { mp::twin::layer_pop(); }

MP_PUBLIC void mptrace_loss(const void* tensor) noexcept {
    using namespace mp::twin;
    if (tensor)
        guarded("loss", [&](Session& s) { s.declared_loss(*static_cast<const at::Tensor*>(tensor)); });
}

MP_PUBLIC void mptrace_step(int skipped, double loss_scale) noexcept {
    mp::twin::guarded("step", [&](mp::twin::Session& s) { s.declared_step(skipped != 0, loss_scale); });
}
