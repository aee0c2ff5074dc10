#include "analyzer/analyses/trials.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/run_order.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

// `if __name__ == "__main__":` of a module. What runs when the module is imported is behind no branch.
bool is_in_main_block(const Function& f, const Call& call) {
    return is_statements(f) && is_behind_branch(f, call.block);
}

bool measures(CodeKind kind) { return kind == CodeKind::test || kind == CodeKind::benchmark; }

bool measures_python(const Call& call) {
    constexpr std::array<std::string_view, 6> kFigures{
        "max_memory_allocated", "max_memory_reserved", "reset_peak_memory_stats", "do_bench", "gradcheck",
        "gradgradcheck"};
    const std::string_view name = call.name.str();
    return any_of(leaf(name), kFigures) || is_within(name, "torch.profiler") ||
           is_within(name, "torch.utils.benchmark");
}

bool tells_time(const Call& call) {
    constexpr std::array<std::string_view, 4> kClocks{"time.time", "time.perf_counter", "time.monotonic",
                                                      "time.process_time"};
    const std::string_view name = call.name.str();
    return any_of(name, kClocks) || is_within(name, "torch.autograd.profiler") ||
           is_within(name, "torch.cuda.profiler");
}

// x = torch.randn(64, 64): data that teach nothing.
bool draws_data(const Call& call) {
    constexpr std::array<std::string_view, 3> kDraws{"torch.rand", "torch.randn", "torch.randint"};
    return any_of(call.name.str(), kDraws);
}

// What may be data to learn from. A checkpoint (torch.load) is none.
bool reads_training_data(const Call& call) {
    constexpr std::array<std::string_view, 7> kWords{"loader", "dataset",  "memmap", "open",
                                                     "read",   "fromfile", "loadtxt"};
    const std::string_view name = leaf(call.name.str());
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(name, word); });
}

bool steps(const Call& call) { return leaf(call.name.str()) == "step"; }

// A notebook that takes a step, to look at what becomes of it.
bool steps_once(const Program& program, Symbol file) {
    const auto functions = functions_of(program, file);
    return has_call(program, file, steps) && std::ranges::all_of(functions, [](const Function* f) {
               return std::ranges::none_of(f->calls, [f](const Call& call) {
                   return steps(call) && (call.loop_depth > 0 || !is_statements(*f));
               });
           });
}

// A script that takes the time of steps on drawn data, or takes one. A function of another file may read some.
bool tries_drawn_steps(const Program& program, Symbol file) {
    const auto may_read = [&](const Call& call) {
        const Function* callee = call.kind == CallKind::function ? program.definition(call.callee) : nullptr;
        return reads_training_data(call) || (callee && callee->span.file != file);
    };
    return (has_call(program, file, tells_time) || steps_once(program, file)) &&
           has_call(program, file, draws_data) && !has_call(program, file, may_read);
}

// What a run leaves behind: weights, or a judgement of them. layer.state_dict()["weight"] is only looked at.
bool keeps_results(const Function& f, const Call& call) {
    constexpr std::array<std::string_view, 6> kWords{"save",        "state_dict", "checkpoint",
                                                     "push_to_hub", "eval",       "valid"};
    const std::string_view name = leaf(call.name.str());
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(name, word); }) &&
           name != "save_for_backward" && !(name == "state_dict" && consumer(f, call, indexes));
}

bool keeps_results(const Program& program, Symbol file) {
    return std::ranges::any_of(functions_of(program, file), [](const Function* f) {
        return std::ranges::any_of(f->calls, [f](const Call& call) { return keeps_results(*f, call); });
    });
}

bool times_kernels(const Call& call) {
    constexpr std::array<std::string_view, 2> kNames{"cudaEventElapsedTime", "hipEventElapsedTime"};
    return any_of(leaf(call.name.str()), kNames);
}

// What it reads is a model or data; what it writes alone may be a table of its figures.
bool reads_files(const Call& call) {
    constexpr std::array<std::string_view, 5> kNames{"fread", "fscanf", "open", "mmap", "getline"};
    const std::string_view name = call.name.str();
    return (any_of(leaf(name), kNames) && !mentions(name, "ofstream")) || mentions(name, "ifstream");
}

// A function of a library that is named as one that reads: load_safetensors(path).
bool is_named_reading(const Call& call) {
    constexpr std::array<std::string_view, 3> kWords{"load", "read", "import"};
    const std::string_view name = leaf(call.name.str());
    return std::ranges::any_of(kWords, [&](std::string_view word) {
        return name.size() > word.size() && mentions(name.substr(0, word.size()), word);
    });
}

// Whether host code that the function runs reads data.
bool reads_data(const Program& program, const Function& from) {
    const auto run = closure({&from}, [&](const Function& f, const auto& add) {
        for (const Call& call : f.calls) {
            const Function* callee = program.definition(call.callee);
            if (callee && callee->kind != FunctionKind::kernel) add(callee);
        }
    });
    return std::ranges::any_of(run, [&](const Function* f) {
        return std::ranges::any_of(f->calls, [&](const Call& call) {
            return reads_files(call) || (!program.definition(call.callee) && is_named_reading(call));
        });
    });
}

// TEST() of GoogleTest makes a class with this method.
bool has_test_cases(const Program& program, Symbol file) {
    return std::ranges::any_of(functions_of(program, file), [](const Function* f) {
        return leaf(f->name.str()) == "TestBody" && f->parent_class.str().ends_with("_Test");
    });
}

bool offers_to_python(std::string_view name) {
    return name.starts_with("pybind11::") || name.starts_with("torch::Library") || is_within(name, "ctypes");
}

// Every main() of a whole project only measures, and one of them stands in the folder of the file: what they run
// through pointers and tables is there to be measured, and is no library beside its benchmarks.
bool is_beside_measuring_main(const RuleContext& context, Symbol file) {
    if (!context.project.is_whole) return false;
    bool is_beside = false;
    for (const Function* f : context.program.functions()) {
        if (f->name.str() != "main") continue;
        if (!only_measures(context, f->span.file)) return false;
        is_beside = is_beside || folder_of(f->span.file) == folder_of(file);
    }
    return is_beside && context.program.calls().select(offers_to_python, {}).empty();
}

// Whether a function that it runs updates weights, or torch is called.
bool updates_weights(const Program& program, const Function& from) {
    return std::ranges::any_of(functions_run_by(program, {&from}), [](const Function* f) {
        return std::ranges::any_of(f->updates, &Update::subtracts) ||
               std::ranges::any_of(f->scalings, &Scaling::averages) ||
               std::ranges::any_of(f->calls, [](const Call& c) { return is_within(c.name.str(), "torch"); });
    });
}

}  // namespace

const Call* call_at(const Function& f, const SourceSpan& at) {
    const auto here = std::ranges::find_if(f.calls, [&](const Call& c) {
        return c.span.line <= at.line && at.line <= std::max(c.span.line, c.span.end_line);
    });
    return here == f.calls.end() ? nullptr : &*here;
}

bool is_trial(const RuleContext& context, const Function& f, const Call& call) {
    if (measures(code_kind(context, f.span.file))) return true;
    if (!is_python(f)) return false;
    return measures(kind_by_name(f)) || (is_in_main_block(f, call) && is_run_elsewhere(context, f.span.file));
}

bool is_trial(const RuleContext& context, const SourceSpan& at) {
    if (measures(code_kind(context, at.file))) return true;
    return std::ranges::any_of(functions_of(context.program, at.file), [&](const Function* f) {
        const Call* here = call_at(*f, at);
        return here && is_trial(context, *f, *here);
    });
}

bool is_run_elsewhere(const RuleContext& context, Symbol file) {
    return std::ranges::any_of(functions_of(context.program, file), [&](const Function* f) {
        return std::ranges::any_of(context.program.callers(f->usr), [&](const Call* call) {
            const Symbol from = call->span.file;
            return from != file && code_kind(context, from) == CodeKind::product &&
                   !has_test_cases(context.program, from);
        });
    });
}

bool only_measures(const RuleContext& context, Symbol file) {
    const Program& program = context.program;
    const auto functions = functions_of(program, file);
    if (functions.empty()) return false;
    if (is_python(*functions.front()))
        return (has_call(program, file, measures_python) || tries_drawn_steps(program, file)) &&
               !keeps_results(program, file) && !is_run_elsewhere(context, file);
    if (has_test_cases(program, file)) return !is_run_elsewhere(context, file);
    const auto main =
        std::ranges::find_if(functions, [](const Function* f) { return f->name.str() == "main"; });
    if (main == functions.end() || reads_data(program, **main)) return false;
    // A helper of a header may take the time for several benchmarks.
    const bool times = has_call(program, file, [&](const Call& call) {
        const Function* callee = program.definition(call.callee);
        return times_kernels(call) || (callee && std::ranges::any_of(callee->calls, times_kernels));
    });
    return times || !updates_weights(program, **main);
}

bool is_run_to_measure(const RuleContext& context, const Function& f) {
    if (is_python(f)) return false;
    bool begins = false, measures = true;
    closure({&f}, [&](const Function& at, const auto& add) {
        const Function* const around = context.program.definition(written_in(at));
        const Function& here = around ? *around : at;
        const std::span<const Call* const> callers = context.program.callers(here.usr);
        if (callers.empty()) {
            begins = true;
            measures = measures && (only_measures(context, here.span.file) ||
                                    is_beside_measuring_main(context, here.span.file));
        }
        if (measures)
            for (const Call* call : callers) add(context.program.owner(*call));
    });
    return begins && measures;
}

bool only_tries_out(const RuleContext& context, Symbol file) {
    return measures(code_kind(context, file)) || only_measures(context, file);
}

bool is_unread(const Program& program, const Function& f, const Call& made) {
    const std::string_view name = made.result.name.str();
    if (name.empty() || name.find('.') != std::string_view::npos) return false;
    if (is_statements(f) && !is_behind_branch(f, made.block)) return false;
    const auto reads = [&](const Operand& o) {
        const std::string_view is = o.name.str();
        return is.starts_with(name) && (is.size() == name.size() || is[name.size()] == '.');
    };
    return std::ranges::none_of(functions_of(program, f.span.file), [&](const Function* other) {
        return std::ranges::any_of(other->returned, reads) ||
               std::ranges::any_of(other->calls,
                                   [&](const Call& c) { return std::ranges::any_of(c.args, reads); }) ||
               std::ranges::any_of(other->aliases, [&](const Alias& a) { return a.of.str() == name; });
    });
}

bool is_script(const Program& program, Symbol file) {
    const auto calls_own = [&](const Call& call) {
        const Function* callee = program.definition(call.callee);
        return callee && callee->span.file == file;
    };
    return std::ranges::any_of(functions_of(program, file), [&](const Function* f) {
        return is_statements(*f) && std::ranges::any_of(f->calls, calls_own);
    });
}

std::span<const Function* const> functions_of(const Program& program, Symbol file) {
    const auto found = std::ranges::equal_range(program.functions(), file.str(), {},
                                                [](const Function* f) { return f->span.file.str(); });
    return {found.begin(), found.end()};
}

bool is_statements(const Function& f) { return leaf(f.name.str()) == "<module>"; }

bool steps_once(const Function& f) {
    bool steps = false;
    for (const Call& call : f.calls) {
        if (leaf(call.name.str()) != "step") continue;
        if (call.loop_depth > 0) return false;
        steps = true;
    }
    return steps && is_statements(f);
}

std::vector<const Call*> callers_by_weight(const RuleContext& context, const Function& f) {
    std::vector<const Call*> callers, trials;
    for (const Call* call : context.program.callers(f.usr)) {
        const Function* caller = context.program.owner(*call);
        (caller && is_trial(context, *caller, *call) ? trials : callers).push_back(call);
    }
    callers.insert(callers.end(), trials.begin(), trials.end());
    return callers;
}

}  // namespace mp::lint
