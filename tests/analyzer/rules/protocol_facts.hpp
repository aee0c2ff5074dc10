#pragma once

// Training loops in facts, for the rules of the loss-scaling protocol. The shape of the loop is
// always
//   block 0 -> 1 (loop head) -> 2 (body) ... -> 1, and 1 -> 3 (the end).

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {

inline std::string call_line(int line, std::string_view rest) {
    return "    call " + std::to_string(line) + ":9-40 " + std::string(rest) + "\n";
}

// One statement of a loop body, on this line and in this block. Names are those of the usual
// script.
inline std::string scale_line(int line, int block = 2) {
    return call_line(line,
                     "torch.amp.GradScaler.scale kind=method args=[{object name=scaler} "
                     "{tensor name=loss}] result.name=scaled block=" +
                         std::to_string(block));
}
inline std::string scaled_backward(int line, int block = 2) {
    return scale_line(line, block) +
           call_line(line,
                     "?.backward kind=method args=[{tensor name=scaled}] block=" + std::to_string(block));
}
inline std::string plain_backward(int line, int block = 2) {
    return call_line(line, "?.backward kind=method args=[{tensor name=loss}] block=" + std::to_string(block));
}
inline std::string on_scaler(int line, std::string_view method, int block = 2) {
    const bool takes = method == "step" || method == "unscale_";
    return call_line(line, "torch.amp.GradScaler." + std::string(method) +
                               " kind=method args=[{object name=scaler}" +
                               (takes ? " {object name=opt}" : "") + "] block=" + std::to_string(block));
}
inline std::string on_optimizer(int line, std::string_view method, int block = 2) {
    return call_line(line, "torch.optim.AdamW." + std::string(method) +
                               " kind=method args=[{object name=opt}] block=" + std::to_string(block));
}
inline std::string clip_line(int line, int block = 2) {
    return call_line(line, "torch.nn.utils.clip_grad_norm_ args=[{parameters} {constant=1}] block=" +
                               std::to_string(block));
}
// scaler = GradScaler(...) before the loop.
inline std::string made_scaler(std::string_view arguments = "") {
    return "    call 2:5-20 torch.amp.GradScaler kind=constructor args=[" + std::string(arguments) +
           "] result.name=scaler result.shape=object\n";
}

// A function whose flow is the loop above, with the given blocks in place of "2 -> 1".
inline std::string training(std::string_view calls, std::string_view body_blocks = "    block to=[1]\n") {
    return "unit train.py language=python\n  func 1:5 train.train kind=python "
           "params=[{name=loss2}]\n"
           "    block to=[1]\n    block to=[2 3]\n" +
           std::string(body_blocks.substr(0, body_blocks.find('\n') + 1)) + "    block leaves\n" +
           std::string(body_blocks.substr(body_blocks.find('\n') + 1)) + std::string(calls);
}

}  // namespace mp::lint::test
