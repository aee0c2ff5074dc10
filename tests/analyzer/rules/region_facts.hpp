#pragma once

// Programs with an autocast region, for the rules that depend on one: `step` opens it, calls
// `inner` in another file and closes it again.

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {

// `device` is "" (CUDA's old interface) or "cpu_".
inline std::string step(std::string device = "") {
    const std::string set = "at::autocast::set_" + device + "enabled";
    return "unit step.cpp\n"
           "  func 1:1 step usr=step params=[{tensor name=x}]\n"
           "    call 3:5 " +
           set +
           " args=[{bool constant=true}]\n"
           "    call 4:5 inner callee=inner args=[{tensor name=x param=0}]\n"
           "    call 5:5 " +
           set + " args=[{bool constant=false}]\n";
}

inline std::string inner(std::string_view facts) {
    return "unit inner.cpp\n  func 1:1 inner usr=inner params=[{tensor name=x}]\n" + std::string(facts);
}

}  // namespace mp::lint::test
