#include "instrument/torch/saved_state.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "instrument/torch/safetensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

// Returns an error text, or "".
std::string write_values(const std::string& path, const Parts& parts, ShadowMap* shadows) {
    const TwinScope scope;
    std::vector<NamedTensor> tensors = parts.parameters.values(shadows);
    tensors.push_back(
        {"losses",
         at::empty(
             {0},
             at::kDouble)});  // the format of the files that programs write has this entry; ours is empty
    return write_safetensors(path, tensors);
}

void save(const std::string& pattern, Parts& parts, ShadowMap* shadows) {
    if (pattern.empty()) return;
    const auto path = trace::expand_pattern(
        pattern, parts.control.identity(), [](const char* name) { return std::getenv(name); },
        std::time(nullptr));
    const std::string error = path ? write_values(*path, parts, shadows) : path.error().message;
    if (error.empty()) return;
    parts.notes.say(trace::NoteKind::lossy, error);
    if (!parts.control.options().quiet) std::fprintf(stderr, "mp-trace: not saved: %s\n", error.c_str());
}

}  // namespace

void save_state(Parts& parts) {
    if (!parts.control.given_up()) save(parts.control.options().save_twin, parts, &parts.shadows);
    save(parts.control.options().save_real, parts, nullptr);
}

}  // namespace mp::twin
