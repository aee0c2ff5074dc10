#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string straight(bool unscaled) {
    return training(made_scaler() + on_optimizer(3, "zero_grad") + scaled_backward(4) +
                    (unscaled ? on_scaler(5, "unscale_") : "") + clip_line(6) + on_scaler(7, "step") +
                    on_scaler(8, "update"));
}

TEST(ClipBeforeUnscale, ClipOfScaledGradientsIsAnErrorAtTheClip) {
    EXPECT_THAT(lint("MP203", {straight(false)}), ElementsAre("error 6"));
    EXPECT_THAT(lint("MP203", {straight(true)}), IsEmpty());
}

TEST(ClipBeforeUnscale, MultiplyingGradientsIsAClipAndCopyingThemBackIsNone) {
    const auto with = [](std::string method) {
        return training(made_scaler() + scaled_backward(4) + "    call 6:9 torch.Tensor." + method +
                        " kind=method in_place args=[{tensor name=p.grad}] block=2\n" + on_scaler(7, "step") +
                        on_scaler(8, "update"));
    };
    EXPECT_THAT(lint("MP203", {with("mul_")}), ElementsAre("error 6"));
    EXPECT_THAT(lint("MP203", {with("copy_")}), IsEmpty());
}

TEST(ClipBeforeUnscale, InsertsTheLineThatIsMissing) {
    const Findings found = findings("MP203", {straight(false)});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, "scaler.unscale_(opt)\n        ");
    EXPECT_EQ(found[0].edits[0].at.column, found[0].edits[0].at.end_column);
    EXPECT_FALSE(found[0].safe_edits);
}

TEST(ClipBeforeUnscale, NoEditWhereAPathHasUnscaledAlready) {
    const Findings found =
        findings("MP203", {training(made_scaler() + scaled_backward(4) + on_scaler(5, "unscale_", 4) +
                                        clip_line(6, 5) + on_scaler(7, "step", 5) + on_scaler(8, "update", 5),
                                    "    block to=[4 5]\n    block to=[5]\n    block to=[1]\n")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found[0].edits.empty());
}

TEST(ClipBeforeUnscale, ScaleReadByHandIsTrusted) {
    EXPECT_THAT(lint("MP203", {training(scaled_backward(4) + on_scaler(5, "get_scale") + clip_line(6) +
                                        on_scaler(7, "step"))}),
                IsEmpty());
}

TEST(ClipBeforeUnscale, ADisabledScalerScalesNothing) {
    EXPECT_THAT(lint("MP203", {training(made_scaler("{constant=false keyword=enabled}") + scaled_backward(4) +
                                        clip_line(6) + on_scaler(7, "step"))}),
                IsEmpty());
}

// if amp: scaled backward else: plain; if amp: unscale_; clip
std::string guarded(const std::string& first, const std::string& second) {
    const auto fork = [](const std::string& condition, int yes, int no) {
        const std::string text = condition.empty() ? "" : " condition=" + condition;
        return "    block to=[{" + std::to_string(yes) + text + "} {" + std::to_string(no) + text +
               (condition.empty() ? "" : " when=false") + "}]\n";
    };
    return training(made_scaler("{keyword=enabled name=flag}") + scaled_backward(4, 4) +
                        plain_backward(5, 5) + on_scaler(6, "unscale_", 7) + clip_line(7, 8) +
                        on_scaler(8, "step", 8) + on_scaler(9, "update", 8),
                    fork(first, 4, 5) + "    block to=[6]\n    block to=[6]\n" + fork(second, 7, 8) +
                        "    block to=[8]\n    block to=[1]\n");
}

TEST(ClipBeforeUnscale, EqualConditionsAreTakenTheSameWay) {
    EXPECT_THAT(lint("MP203", {guarded("amp", "amp")}), IsEmpty());
}

TEST(ClipBeforeUnscale, TwoGuardsThatMayBeTwinsProveNothing) {
    EXPECT_THAT(lint("MP203", {guarded("", "")}), IsEmpty());
    EXPECT_THAT(lint("MP203", {guarded("amp", "scales")}), IsEmpty());
}

std::string helper(bool unscales) {
    return "unit engine.py language=python\n"
           "  func 1:5 engine.finish kind=python params=[{name=grad_scaler} {name=optimizer} "
           "{name=params}]\n" +
           std::string(unscales ? "    call 2:5-30 ?.unscale_ kind=method args=[{name=grad_scaler param=0} "
                                  "{name=optimizer param=1}]\n"
                                : "") +
           "    call 3:5-30 torch.nn.utils.clip_grad_norm_ args=[{name=params param=2} "
           "{constant=1}]\n"
           "    call 4:5-30 ?.step kind=method args=[{name=grad_scaler param=0} {name=optimizer "
           "param=1}]\n"
           "    call 5:5-30 ?.update kind=method args=[{name=grad_scaler param=0}]\n";
}

TEST(ClipBeforeUnscale, FollowsTheScalerIntoAHelperOfAnotherFile) {
    const std::string loop =
        training(made_scaler() + scaled_backward(4) +
                 call_line(5,
                           "engine.finish callee=engine.finish args=[{name=scaler} {name=opt} "
                           "{parameters}] block=2"));
    EXPECT_THAT(lint("MP203", {loop, helper(false)}), ElementsAre("error 3"));
    EXPECT_THAT(lint("MP203", {loop, helper(true)}), IsEmpty());
}

std::string home_made(bool unscaled) {
    return "unit a.cpp\n  func 11:6 train usr=train params=[{object name=opt} {object "
           "name=scaler}]\n"
           "    call 15:22-40 GradScaler::scale kind=method callee=s args=[{object param=1 "
           "name=scaler} "
           "{tensor name=loss}] result.shape=tensor\n"
           "    call 15:22-51 at::Tensor::backward kind=method callee=b args=[{tensor call=0}]\n" +
           std::string(unscaled ? "    call 16:9-20 GradScaler::unscale_ kind=method callee=u args=[{object "
                                  "param=1 name=scaler} {object param=0 name=opt}]\n"
                                : "") +
           "    call 17:9-66 torch::nn::utils::clip_grad_norm_ callee=c args=[{object} {fp64 "
           "constant=1}]\n"
           "    call 18:24-40 GradScaler::step kind=method callee=t args=[{object param=1 "
           "name=scaler} "
           "{object name=opt}]\n"
           "    call 19:42-57 GradScaler::update kind=method callee=v args=[{object param=1 "
           "name=scaler}]\n";
}

TEST(ClipBeforeUnscale, AHomeMadeScalerIsKnownByItsMethods) {
    EXPECT_THAT(lint("MP203", {home_made(false)}), ElementsAre("error 17"));
    EXPECT_THAT(lint("MP203", {home_made(true)}), IsEmpty());
}

// if amp: scaled backward else: plain; four more clips, each under its own flag; clip; if amp: step.
TEST(ClipBeforeUnscale, ManyIndependentConditionsHideNoPath) {
    constexpr int kFlags = 4, kFirst = 6;
    std::string calls = made_scaler() + scaled_backward(4, 4) + plain_backward(5, 5);
    std::string blocks =
        "    block to=[{4 condition=amp} {5 condition=amp when=false}]\n"
        "    block to=[6]\n    block to=[6]\n";
    for (int flag = 0; flag < kFlags; ++flag) {
        const int at = kFirst + 2 * flag;
        const std::string condition = " condition=flag" + std::to_string(flag);
        const std::string next = std::to_string(at + 2);
        blocks += "    block to=[{" + std::to_string(at + 1) + condition + "} {" + next + condition +
                  " when=false}]\n    block to=[" + next + "]\n";
        calls += on_scaler(6, "load_state_dict", at + 1) + clip_line(7, at + 1);
    }
    const int last = kFirst + 2 * kFlags;
    blocks += "    block to=[{" + std::to_string(last + 1) +
              " condition=amp} {1 condition=amp "
              "when=false}]\n    block to=[1]\n";
    calls += clip_line(8, last) + on_scaler(9, "step", last + 1) + on_scaler(10, "update", last + 1);
    EXPECT_THAT(lint("MP203", {training(calls, blocks)}), testing::Contains("error 8"));
}

}  // namespace
}  // namespace mp::lint::test
