#pragma once

#include <cstddef>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

bool is_python(const Function&);

// The text after the last "::" or ".".
std::string_view last_name(std::string_view qualified);

// `f.__enter__` and `f.__exit__`, where `f` is a class of context managers, a library's or a generator.
bool is_enter(const Call&);
bool is_exit(const Call&);

// What a call passes for the parameters of a function it reaches; nullptr when a default stands in,
// or when unpacked arguments hide it.
class Passed {
public:
    Passed(const Call&, const Function& callee);
    const Operand* operator[](std::size_t param) const;

private:
    const Operand* in_python(Symbol name, std::ptrdiff_t first) const;

    const Call& call_;
    const Function& callee_;
    bool python_ = false;
    std::ptrdiff_t before_ = 0;  // arguments that stand before the one for parameter 0
};
const Operand* argument_for(const Call&, const Function& callee, std::int32_t param);

// The call that an operand is the result of; nullptr when it is none.
const Call* call_of(const Function&, const Operand&);

// What `a, b = pair` and `pair[1]` read in Python: the item at a constant place of a held value.
struct Item {
    const Operand* held = nullptr;  // nullptr: the call reads no such item
    std::size_t at = 0;
};
Item item_of(const Call&);
// The item of a list or tuple that is written out; nullptr when the call makes none, or is shorter.
const Operand* item_of_display(const Call&, std::size_t at);

}  // namespace mp::lint
