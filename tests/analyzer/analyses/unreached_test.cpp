// Seen in the level of MP405: what nothing reaches is a note.

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

using ::testing::ElementsAre;

// `scale` stores an inverse root in half. Its USR has parameters, as in C++.
std::string scale(std::string_view usr = "c:@F@scale#") {
    return "  func 9:1 scale usr=" + std::string(usr) +
           "\n    cast 12:7 fp32->fp16 source.stat=rstd output\n";
}

std::string kernels(const std::string& functions, std::string_view more = "") {
    return "unit kernels.cu language=cuda " + std::string(more) + "\n" + functions;
}

std::string main_with(const std::string& call) {
    return "unit main.cpp\n  func 20:1 main usr=c:@F@main#\n    call 21:3 " + call + "\n";
}

TEST(Unreached, WhatMainCallsIsReached) {
    EXPECT_THAT(lint("MP405", {kernels(scale()), main_with("scale callee=c:@F@scale#")}),
                ElementsAre("warning 12"));
    EXPECT_THAT(lint("MP405", {kernels(scale()), main_with("other")}), ElementsAre("note 12"));
}

TEST(Unreached, WhatOnlyAnUnreachedFunctionCallsIsUnreached) {
    const std::string two =
        kernels(scale() + "  func 15:1 between usr=c:@F@between#\n    call 16:3 scale callee=c:@F@scale#\n");
    EXPECT_THAT(lint("MP405", {two, main_with("other")}), ElementsAre("note 12"));
    EXPECT_THAT(lint("MP405", {two, main_with("between callee=c:@F@between#")}), ElementsAre("warning 12"));
}

TEST(Unreached, ALibraryIsRunByOthers) {
    EXPECT_THAT(lint("MP405", {kernels(scale())}), ElementsAre("warning 12"));
}

TEST(Unreached, OthersMayRunWhatIsHandedOnOrHasCLinkage) {
    const std::string other = main_with("other");
    EXPECT_THAT(lint("MP405", {kernels(scale(), "taken=[c:@F@scale#]"), other}), ElementsAre("warning 12"));
    EXPECT_THAT(lint("MP405", {kernels(scale("c:@F@scale")), other}), ElementsAre("warning 12"));
    EXPECT_THAT(lint("MP405", {kernels(scale()), main_with("scale")}), ElementsAre("warning 12"))
        << "a call of that name, of a function that was not resolved";
}

TEST(Unreached, WhatDidNotParseMayRunIt) {
    EXPECT_THAT(lint("MP405", {kernels(scale()), main_with("other"), "unit broken.cpp state=partial\n"}),
                ElementsAre("warning 12"));
    EXPECT_THAT(lint("MP405", {kernels(scale()), main_with("other"), "unit whole.cpp\n"}),
                ElementsAre("note 12"));
}

}  // namespace
}  // namespace mp::lint::test
