#include "analyzer/driver/policy_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mp::lint {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PolicyCommand, ListNamesWhatShowShows) {
    const std::string names = run_policy_command({"list"}).value();
    EXPECT_THAT(names, HasSubstr("torch-cuda-2.5\n"));
    EXPECT_THAT(names, HasSubstr("torch-hpu-2.0\n"));
    EXPECT_THAT(names, HasSubstr("hmp\n"));
    const std::string shown = run_policy_command({"show", "torch-xpu-2.5"}).value();
    EXPECT_THAT(shown, HasSubstr("device = xpu"));
    EXPECT_TRUE(Policy::parse(shown, "x.txt"));
}

TEST(PolicyCommand, WhatIsNotUnderstoodIsAnErrorWithAHint) {
    for (const std::vector<std::string>& words : {std::vector<std::string>{"lst"},
                                                  {"show"},
                                                  {"show", "torch-tpu"},
                                                  {"dump"},
                                                  {"dump", "--from-torch", "--pyton", "x"}}) {
        const Result<std::string> answer = run_policy_command(words);
        ASSERT_FALSE(answer);
        EXPECT_FALSE(answer.error().hint.empty());
    }
    EXPECT_THAT(run_policy_command({"dump", "--from-torch", "--python", "no-such-python"}).error().message,
                HasSubstr("no-such-python"));
}

TEST(PolicyCommand, ADumpHasWhatIsRegisteredInTheCategoriesThatAreKnown) {
    const std::string text = policy_from_registrations(
                                 "torch 2.11.0\naten::mm\naten::softmax.int\naten::brand_new\n"
                                 "other::op\n",
                                 "cuda")
                                 .value();
    const Policy policy = Policy::parse(text, "dump.txt").value();
    EXPECT_EQ(policy.category(Op("mm")), Category::lower);
    EXPECT_EQ(policy.category(Op("softmax")), Category::fp32_set_opt_dtype);
    EXPECT_EQ(policy.category(Op("exp")), Category::unlisted) << "not registered";
    EXPECT_THAT(text, HasSubstr("# brand_new\n"));
    EXPECT_THAT(text, Not(HasSubstr("other")));
}

TEST(PolicyCommand, ADeviceWithoutRegistrationsIsAnError) {
    EXPECT_THAT(policy_from_registrations("torch 2.11.0\n", "hpu").error().message, HasSubstr("hpu"));
    EXPECT_FALSE(policy_from_registrations("Traceback\n", "cuda"));
}

}  // namespace
}  // namespace mp::lint
