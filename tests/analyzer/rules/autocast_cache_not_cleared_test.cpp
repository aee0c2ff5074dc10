#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kOn = "call 3:5 at::autocast::set_enabled args=[{bool constant=true}]\n";
constexpr const char* kForward =
    "call 4:5 torch::nn::LinearImpl::forward kind=method args=[{object name=fc} {tensor name=x}]\n";
constexpr const char* kOff = "call 5:5 at::autocast::set_enabled args=[{bool constant=false}]\n";
constexpr const char* kClear = "call 6:5 at::autocast::clear_cache\n";
constexpr const char* kStep = "call 8:5 torch::optim::SGD::step kind=method args=[{object name=opt}]\n";

std::string train(std::initializer_list<std::string_view> calls) {
    std::string text;
    for (const std::string_view call : calls) text += call;
    return host(text);
}

TEST(AutocastCacheNotCleared, AStepAfterAnUnclearedRegionIsAnError) {
    EXPECT_THAT(lint("MP111", {train({kOn, kForward, kOff, kStep})}), ElementsAre("error 8"));
}

TEST(AutocastCacheNotCleared, AClearOnTheWayIsSilent) {
    EXPECT_THAT(lint("MP111", {train({kOn, kForward, kOff, kClear, kStep})}), IsEmpty());
}

TEST(AutocastCacheNotCleared, WithoutAStepItIsInference) {
    EXPECT_THAT(lint("MP111", {train({kOn, kForward, kOff})}), IsEmpty());
}

TEST(AutocastCacheNotCleared, AForwardOutsideTheRegionIsSilent) {
    EXPECT_THAT(lint("MP111", {train({kOn, kOff, kForward, kStep})}), IsEmpty());
}

TEST(AutocastCacheNotCleared, WithTheCacheOffItIsSilent) {
    EXPECT_THAT(lint("MP111", {train({"call 2:5 at::autocast::set_autocast_cache_enabled "
                                      "args=[{bool constant=false}]\n",
                                      kOn, kForward, kOff, kStep})}),
                IsEmpty());
}

TEST(AutocastCacheNotCleared, AGuardWhoseDestructorClearsIsSilent) {
    const std::string guard =
        "unit guard.cpp\n  func 1:1 Guard::~Guard usr=~Guard parent_class=Guard\n"
        "    call 2:5 at::autocast::clear_cache\n";
    EXPECT_THAT(
        lint("MP111",
             {train({kOn, kForward, kOff, "call 6:1 Guard::~Guard callee=~Guard kind=destructor\n", kStep}),
              guard}),
        IsEmpty());
}

TEST(AutocastCacheNotCleared, ItIsFoundAcrossFunctions) {
    const std::string forward = "unit f.cpp\n  func 1:1 forward usr=forward params=[{tensor name=x}]\n" +
                                std::string(kOn) + kForward + kOff;
    EXPECT_THAT(lint("MP111", {forward, train({"call 7:5 forward callee=forward "
                                               "args=[{tensor name=x}]\n",
                                               kStep})}),
                ElementsAre("error 8"));
}

TEST(AutocastCacheNotCleared, OnePathWithoutTheClearIsEnough) {
    EXPECT_THAT(lint("MP111", {train({"block to=[{1 condition=done} {2 condition=done when=false}]\n",
                                      "block to=[3]\n", "block to=[3]\n", "block leaves\n", kOn, kForward,
                                      kOff, "call 6:5 at::autocast::clear_cache block=1\n",
                                      "call 8:5 torch::optim::SGD::step kind=method "
                                      "args=[{object name=opt}] block=3\n"})}),
                ElementsAre("error 8"));
}

TEST(AutocastCacheNotCleared, WhatOpensAndClearsUnderOneFlagIsSilent) {
    const auto guarded = [](const std::string& flag) {
        return lint("MP111",
                    {train({"block to=[{1 condition=amp} {2 condition=amp when=false}]\n", "block to=[2]\n",
                            "block to=[{3 condition=" + flag + "} {4 condition=" + flag + " when=false}]\n",
                            "block to=[4]\n", "block leaves\n",
                            "call 3:5 at::autocast::set_enabled args=[constant=true] block=1\n",
                            "call 4:9 torch::nn::LinearImpl::forward kind=method op=linear "
                            "args=[{module name=net} {tensor name=x}] block=2\n",
                            "call 6:5 at::autocast::clear_cache block=3\n",
                            "call 7:5 at::autocast::set_enabled args=[constant=false] block=3\n",
                            "call 8:5 torch::optim::SGD::step kind=method "
                            "args=[{object name=opt}] block=4\n"})});
    };
    EXPECT_THAT(guarded("amp"), IsEmpty());
    EXPECT_THAT(guarded("last"), ElementsAre("error 8"));
}

TEST(AutocastCacheNotCleared, TheInferenceProfileIsSilent) {
    EXPECT_THAT(lint("MP111", {train({kOn, kForward, kOff, kStep})}, Profile::inference), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
