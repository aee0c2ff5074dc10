#pragma once

// Python functions around an autocast region, written as the front end writes them.

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {

inline std::string python(std::string_view facts, std::string_view params = "{name=model} {name=x}") {
    return "unit train.py language=python\n  func 1:5 train.step kind=python params=[" + std::string(params) +
           "]\n" + std::string(facts);
}

// Calls 0 and 1: `with torch.autocast("cuda", ...):` on line 2.
inline std::string open(std::string_view arguments = "") {
    const std::string args = "{constant=\"'cuda'\"} " + std::string(arguments);
    return "    call 2:10-40 torch.autocast kind=constructor args=[" + args + "]\n" +
           "    call 2:10-40 torch.autocast.__enter__ kind=method args=[{object call=0} " + args + "]\n";
}

inline std::string close() {
    return "    call 2:10-40 torch.autocast.__exit__ kind=method args=[{object call=1}]\n";
}

}  // namespace mp::lint::test
