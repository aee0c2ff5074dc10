// The ops that the Python shim calls (instrument/python). Composite: no dispatch key of ours or of the
// program's gets between. Each swallows its own errors: a shim must not break a training script.

#include <torch/library.h>

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

// Layer names are not recorded yet; the shim's calls are accepted so that both can be built apart.
void layer_push(std::string) {}
void layer_pop() {}

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
    m.def("disarm(str reason) -> ()", &disarm);
    m.def("note(str kind, str text) -> ()", &note);
    m.def("finish() -> ()", &finish);
    m.def("internal_begin() -> ()", &internal_begin);
    m.def("internal_end() -> ()", &internal_end);
    m.def("shadow(Tensor t) -> Tensor", &shadow);
}

// The same without the dispatcher: a microsecond a module call is what the shim can spend.
extern "C" __attribute__((visibility("default"))) void mptrace_layer_push(const char*) noexcept {}
extern "C" __attribute__((visibility("default"))) void mptrace_layer_pop() noexcept {}
