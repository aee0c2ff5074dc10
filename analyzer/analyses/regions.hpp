#pragma once

// Shared by the autocast rules: the policy of a context, and its text in notes.

#include <string>
#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// The op list of the context's device; nullptr for a device whose list is not known.
const Policy* policy_of(const RuleContext&, const Context&);

// The category of an op in a list. Autocast never sees ops that are made of others, such as cross_entropy: what is done
// to the others is done to them.
Category category_in(const Policy&, Op);

// The same for one call: an einsum that sums nothing, "i,j->ij", multiplies elements, and no list casts it.
Category category_of(const Policy&, const Call&);

// Whether the list casts the inputs of such an op to fp32, always or unless the call names a dtype.
bool casts_to_fp32(Category);

// "fp16 autocast", "cuda autocast", "autocast": as much as is known.
std::string describe(const Context&);

// Where it opens, then the calls that lead from there.
std::vector<Note> notes_of(const Context&);

// A test or a benchmark opens the region. What only such a program runs in half says little about the others.
bool is_opened_by_a_trial(const RuleContext&, const Context&);

// The region that runs a product of a Python program in a low precision; nullptr: none does.
const Context* lowering_region(const RuleContext&, const Function&, const Call& product);

// Whether the function reads the autocast state, and so handles it itself.
bool reads_autocast_state(const Function&);
// The same, or a decorator of custom autograd functions says what they run in.
bool handles_autocast(const Function&);
// A gradient-free scope (NoGradGuard, InferenceMode) is opened in the function.
bool is_inference(const Function&);

}  // namespace mp::lint
