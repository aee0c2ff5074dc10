#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string list(std::string_view file, std::string_view key, std::initializer_list<std::string_view> ops) {
    std::string text = "unit " + std::string(file) +
                       " language=python\n  func 1:1 <file> usr=" + std::string(file) + " kind=python\n";
    int line = 1;
    for (const std::string_view op : ops)
        text += "    setting " + std::to_string(line++) + ":1 " + std::string(key) + " value.constant=\"'" +
                std::string(op) + "'\"\n";
    return text;
}

std::vector<std::string> low(std::initializer_list<std::string_view> ops) {
    return lint("MP109", {list("ops_bf16.txt", "bf16_ops", ops)});
}

TEST(OpListOverride, AnOpOfTheDefaultFp32ListIsAWarning) {
    EXPECT_THAT(low({"linear", "softmax", "div"}), ElementsAre("warning 2", "warning 3"));
}

TEST(OpListOverride, SigmoidSaturates) { EXPECT_THAT(low({"sigmoid"}), ElementsAre("warning 1")); }

TEST(OpListOverride, TheDefaultListIsSilent) {
    EXPECT_THAT(low({"addmm", "batch_norm", "bmm", "conv2d", "dropout", "group_norm", "layer_norm",
                     "leaky_relu", "linear", "matmul", "mul", "relu", "t"}),
                IsEmpty());
}

TEST(OpListOverride, HarmlessAdditionsAreSilent) {
    EXPECT_THAT(low({"max_pool2d", "avg_pool2d", "cat"}), IsEmpty());
}

TEST(OpListOverride, WhatACustomFp32ListLeavesOutIsOneNote) {
    EXPECT_THAT(lint("MP109", {list("ops_fp32.txt", "fp32_ops", {"softmax", "log_softmax"})}),
                ElementsAre("note 1"));
}

TEST(OpListOverride, AnOpOnBothListsIsANote) {
    const auto found = lint(
        "MP109", {list("ops_bf16.txt", "bf16_ops", {"relu"}), list("ops_fp32.txt", "fp32_ops", {"relu"})});
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0], "note 1");
}

TEST(OpListOverride, ApexRegistrationsAreRead) {
    EXPECT_THAT(lint("MP109", {python("call 3:1 apex.amp.register_half_function args=[{object "
                                      "name=torch} {object constant=\"'softmax'\"}]\n"
                                      "call 4:1 apex.amp.register_half_function args=[{object "
                                      "name=torch} {object constant=\"'bmm'\"}]\n")}),
                ElementsAre("warning 3"));
}

TEST(OpListOverride, PaddlesWhiteListIsRead) {
    EXPECT_THAT(lint("MP109", {python("call 3:1 set kind=constructor args=[{object "
                                      "constant=\"'softmax'\"}]\n"
                                      "call 3:1 paddle.amp.auto_cast args=[{object call=0 "
                                      "keyword=custom_white_list}]\n")}),
                ElementsAre("warning 3"));
}

TEST(OpListOverride, TensorFlowsVariableIsRead) {
    EXPECT_THAT(lint("MP109", {python("setting 3:1 os.environ.TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"
                                      "ALLOWLIST_ADD value.constant=\"'Exp,Relu'\"\n")}),
                ElementsAre("warning 3"));
}

}  // namespace
}  // namespace mp::lint::test
