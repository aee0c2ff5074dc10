#pragma once

// Which module an operand of a Python function means: by name, as a part of a list or of another module, or through
// the tensors that it lists.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/facts/model.hpp"

namespace mp::lint {

bool is_same(const Operand&, const Operand&);
// `model` of model.cuda().eval(), from the operand that names the last call.
const Operand& receiver_of(const Function&, const Operand& value);

// Operands that no call of the function has: one of its parameters, and an attribute or variable.
Operand parameter(const Function&, std::size_t param);
Operand attribute(Symbol name);

// list, tuple, dict, ModuleList and ModuleDict
bool is_display_of_modules(std::string_view constructor);
// The list of which the value is one item: `parts` for `m` of `for m in parts`.
std::optional<Operand> list_of(const Function&, const Operand& value);
bool is_item_of(const Function&, const Operand& value, const Operand& list);
// `ddp.module` of `ddp`
bool is_wrapped(const Operand& object, const Operand& wrapper);
// modules(), named_children() and the like
bool lists_parts(std::string_view method);
// `part` of `for part in net.modules()`
bool is_part_in_loop(const Function&, const Operand& part, const Operand& module);

// `p` of `p.detach().clone()`: it has the same dtype.
const Operand& same_tensor(const Function&, const Operand& tensor);
// The call that lists the tensors of a module (parameters(), named_buffers(), values() of a state_dict()), of
// which the operand is one: `p`, `p.data` or `p.detach()` in a loop over them. nullptr for every other value.
const Call* listing_of(const Function&, const Operand& tensor);

// The modules whose parameters a value lists: model.parameters(), a list of parameter groups, or what a function of
// the program makes of them.
struct ListedModule {
    const Function* function = nullptr;
    const Operand* module = nullptr;
    const Call* at = nullptr;  // the call that lists them
};
std::vector<ListedModule> modules_in(const RuleContext&, const Function&, const Operand& parameters);

}  // namespace mp::lint
