#pragma once

// Code that only tries the program out. Half that nothing else passes says little about the program: a test compares
// precisions on purpose, and a benchmark or a demonstration has nothing to lose.

#include <algorithm>
#include <span>
#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// In a test or benchmark, in a function named so (test_scan(), profile()), or in the main block of a Python file whose
// code other files of the program run.
bool is_trial(const RuleContext&, const Function&, const Call&);
bool is_trial(const RuleContext&, const SourceSpan&);

// Whether code of another file runs a function of this one; tests and benchmarks do not count.
bool is_run_elsewhere(const RuleContext&, Symbol file);

// A script that measures and keeps nothing: it asks for peak memory, profiles, checks gradients, or takes the time of
// steps on drawn data or a single one, and neither saves nor evaluates what it computes; no other file runs its
// functions. In C++ and CUDA a file with a main() that reads no files, and times kernels or updates no weights: a
// benchmark or a lesson; and a file of test cases.
bool only_measures(const RuleContext&, Symbol file);
// C++ and CUDA: each way to the function begins in such a file.
bool is_run_to_measure(const RuleContext&, const Function&);
// Such a file, or one whose name says that it is a test or a benchmark.
bool only_tries_out(const RuleContext&, Symbol file);

// A file of Python whose own statements call its functions.
bool is_script(const Program&, Symbol file);

// What the function makes and no statement of the file reads: an optimizer that takes no step. Statements of a module
// make it for other files or cells, except behind a branch (`if __name__ == ...`).
bool is_unread(const Program&, const Function&, const Call& made);

// The first call over the place; nullptr when there is none.
const Call* call_at(const Function&, const SourceSpan&);

// The functions of a file stand together, ordered by their lines.
std::span<const Function* const> functions_of(const Program&, Symbol file);

// Whether the test holds of a call in the file.
template <typename Test>
bool has_call(const Program& program, Symbol file, Test test) {
    return std::ranges::any_of(functions_of(program, file),
                               [&](const Function* f) { return std::ranges::any_of(f->calls, test); });
}

// The statements of a file or notebook, outside of its functions.
bool is_statements(const Function&);

// Statements of a notebook or script that take a step once, outside of every loop: a demonstration trains nothing.
bool steps_once(const Function&);

// The calls that name the function, those of the program itself before those that only try it out.
std::vector<const Call*> callers_by_weight(const RuleContext&, const Function&);

}  // namespace mp::lint
