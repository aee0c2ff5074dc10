#include "instrument/torch/recording.hpp"

#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "runtime/trace/job_directory.hpp"
#include "runtime/trace/process.hpp"

namespace mp::twin {
namespace {

constexpr int kFlushMilliseconds = 2000;

// What Python's command line runs: a script or module. "" if it is a child that multiprocessing has started, whose
// command line has none of the program's. Other arguments are never read out.
std::optional<std::string> python_program(const std::string& process) {
    std::ifstream file("/proc/" + process + "/cmdline", std::ios::binary);
    std::string word;
    for (bool value = true; std::getline(file, word, '\0'); value = word == "-W" || word == "-X") {
        if (value) continue;  // the interpreter, or the value of an option
        if (word == "-m" && std::getline(file, word, '\0')) return "python -m " + word;
        if (word == "-c" && std::getline(file, word, '\0'))
            return word.starts_with("from multiprocessing.") ? "" : "python -c";
        if (word == "-") return "python -";
        if (word.empty() || word[0] != '-') return word.substr(word.rfind('/') + 1);
    }
    return std::nullopt;
}

// The name that the user knows: of what Python runs, else of the executable.
std::string program_name(bool has_python) {
    if (!has_python) return trace::executable();
    std::optional<std::string> name = python_program("self");
    if (name && name->empty()) name = python_program(std::to_string(::getppid()));
    return name && !name->empty() ? *name : trace::executable();
}

trace::ProcessRecord describe_process(const Control& control) {
    trace::ProcessRecord process = trace::describe_process(control.identity());
    process.program = program_name(control.has_python());
    process.framework = "torch " TORCH_VERSION;
    process.mode = control.options().mode;
    return process;
}

}  // namespace

bool Recording::open() {
    if (is_open()) return true;
    const std::lock_guard lock(mutex_);
    if (is_open()) return true;
    if (tried_ || !control_.armed()) return false;
    tried_ = true;
    if (!control_.is_listed()) return false;
    const trace::Options& options = control_.options();
    directory_ = trace::job_directory(options.run_dir, control_.identity());
    auto opened = trace::Recorder::open(directory_, trace::recording_name(control_.identity()),
                                        {.file_bytes = options.budget, .queue_bytes = 16u << 20});
    if (!opened) {
        if (!options.quiet)
            std::fprintf(stderr, "mp-trace: nothing is recorded: %s\n", opened.error().message.c_str());
        return false;
    }
    owned_ = std::move(*opened);
    owned_->process(describe_process(control_));
    recorder_.store(owned_.get(), std::memory_order_release);
    return true;
}

bool Recording::is_first() const {
    std::error_code error;
    const std::filesystem::directory_iterator files(control_.options().run_dir, error);
    return std::none_of(begin(files), end(files),
                        [](const auto& file) { return file.path().extension() == ".mpt"; });
}

void Recording::step(const trace::StepRecord& record) {
    if (!open()) return;
    owned_->step(record);
    steps_ += record.optimizer != trace::kNoOptimizer;
}

void Recording::note(const trace::NoteRecord& record) {
    if (is_open()) owned_->note(record);
}

void Recording::flush() {
    if (is_open()) owned_->flush(kFlushMilliseconds);
}

void Recording::after_fork_in_child() noexcept {
    if (is_open()) owned_->abandon_after_fork();
}

}  // namespace mp::twin
