#include "instrument/torch/sources.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cctype>
#include <string_view>
#include <utility>

#include "instrument/torch/call_path.hpp"
#include "instrument/torch/python_frame.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

// Python's C API, found by name: the adapter cannot link Python, because C++ programs have none.
struct Python {
    using Object = void;
    int (*gil_ensure)() = nullptr;
    void (*gil_release)(int) = nullptr;
    Object* (*this_thread)() = nullptr;
    Object* (*frame)() = nullptr;
    int (*line)(Object*) = nullptr;
    Object* (*back)(Object*) = nullptr;
    Object* (*code)(Object*) = nullptr;
    Object* (*attribute)(Object*, const char*) = nullptr;
    const char* (*text)(Object*) = nullptr;
    void (*release)(Object*) = nullptr;
    void (*retain)(Object*) = nullptr;
    void (*clear_error)() = nullptr;
    int (*finalizing)() = nullptr;
    bool found = false;

    template <typename F>
    static bool bind(F& into, const char* name) {
        into = reinterpret_cast<F>(::dlsym(RTLD_DEFAULT, name));
        return into != nullptr;
    }

    Python() {
        found = bind(gil_ensure, "PyGILState_Ensure") && bind(gil_release, "PyGILState_Release") &&
                bind(this_thread, "PyGILState_GetThisThreadState") && bind(frame, "PyEval_GetFrame") &&
                bind(line, "PyFrame_GetLineNumber") && bind(back, "PyFrame_GetBack") &&
                bind(code, "PyFrame_GetCode") && bind(attribute, "PyObject_GetAttrString") &&
                bind(text, "PyUnicode_AsUTF8") && bind(release, "Py_DecRef") && bind(retain, "Py_IncRef") &&
                bind(clear_error, "PyErr_Clear");
        if (!bind(finalizing, "Py_IsFinalizing")) bind(finalizing, "_Py_IsFinalizing");
    }
};

const Python& python() {
    static const Python api;
    return api;
}

bool is_library(std::string_view file) {
    return file.empty() || file.front() == '<' || file.find("/torch/") != std::string_view::npos ||
           file.find("mptrace_shim") != std::string_view::npos ||
           file.find("/lightning") != std::string_view::npos ||
           file.find("/lib/python3") != std::string_view::npos;
}

std::string relative(std::string_view file) {
    char here[4096];
    if (!::getcwd(here, sizeof here)) return std::string(file);
    const std::string_view folder(here);
    if (file.size() > folder.size() + 1 && file.substr(0, folder.size()) == folder &&
        file[folder.size()] == '/')
        file.remove_prefix(folder.size() + 1);
    return std::string(file);
}

std::string file_of(const Python& api, Python::Object* frame) {
    Python::Object* const code = api.code(frame);
    if (!code) return "";
    Python::Object* const name = api.attribute(code, "co_filename");
    const char* const text = name ? api.text(name) : nullptr;
    std::string file = text ? text : "";
    if (!text) api.clear_error();
    if (name) api.release(name);
    api.release(code);
    return file;
}

// Walks outwards to the user's first frame.
std::string walk_to_user_frame(const Python& api) {
    Python::Object* frame = api.frame();  // borrowed
    if (!frame) return "";
    api.retain(frame);
    std::string place;
    for (int depth = 0; frame && depth < 200; ++depth) {
        const std::string file = file_of(api, frame);
        if (!is_library(file)) {
            place = relative(file) + ":" + std::to_string(api.line(frame));
            break;
        }
        Python::Object* const outer = api.back(frame);
        api.release(frame);
        frame = outer;
    }
    if (frame) api.release(frame);
    return place;
}

// What the names of an op and of the autograd node that it makes have in common: "nllloss" of aten::nll_loss_forward
// and of NllLossBackward0.
std::string letters_of(std::string_view name, std::string_view end) {
    name = name.substr(0, name.rfind(end));
    std::string letters;
    for (const char c : name)
        if (c != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return letters;
}

std::string word_of_op(std::string_view op) {
    const std::size_t scope = op.rfind(':');
    return letters_of(scope == std::string_view::npos ? op : op.substr(scope + 1), "_forward");
}

std::string word_of_node(std::string_view node) { return letters_of(node, "Backward"); }

}  // namespace

std::string innermost_user_frame() {
    const Python& api = python();
    if (!api.found || !api.this_thread() || (api.finalizing && api.finalizing())) return "";
    const Internal internal;
    const int state = api.gil_ensure();
    std::string place = walk_to_user_frame(api);
    api.gil_release(state);
    return place;
}

std::string source_of(const Site& site) {
    return site.address ? source_of_call(site.address) : innermost_user_frame();
}

std::string Sources::of(const Site& site, const OpInfo& op, at::ScalarType dtype) {
    if (site.phase == Phase::backward) return of_backward(site);
    const Key key(site.layer, &op, site.phase, dtype);
    {
        const std::lock_guard lock(mutex_);
        if (const auto it = known_.find(key); it != known_.end()) return it->second.place;
    }
    std::string place = source_of(site);
    if (place.empty()) place = layers_.source(site.layer);
    const std::lock_guard lock(mutex_);
    if (site.phase == Phase::forward) {
        forward_.emplace(std::pair(site.layer, std::string()), place);
        forward_.emplace(std::pair(site.layer, word_of_op(op.name)), place);
    }
    return known_.emplace(key, Known{std::move(place)}).first->second.place;
}

std::string Sources::of_worst(const Site& site, const OpInfo& op, at::ScalarType dtype, double error) {
    const Key key(site.layer, &op, site.phase, dtype);
    {
        const std::lock_guard lock(mutex_);
        if (const auto it = known_.find(key); it != known_.end() && error <= it->second.error) return {};
    }
    std::string place = source_of(site);
    if (place.empty()) return place;
    const std::lock_guard lock(mutex_);
    return (known_[key] = {std::move(place), error}).place;
}

// A backward runs in C++. Its Python frame is the call of backward(), which is not the place of the layer.
std::string Sources::of_backward(const Site& site) {
    const NodePlace* const node = thread_state().node;
    {
        const std::lock_guard lock(mutex_);
        for (const std::string& word : {node ? word_of_node(node->name) : std::string(), std::string()})
            if (const auto it = forward_.find({site.layer, word}); it != forward_.end()) return it->second;
    }
    return site.address ? source_of_call(site.address) : layers_.source(site.layer);
}

}  // namespace mp::twin
