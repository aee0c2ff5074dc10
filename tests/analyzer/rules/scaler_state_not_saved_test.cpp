#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string saving(std::string_view more, std::string_view enabled = "") {
    return "unit t.py language=python\n  func 1:5 t.main kind=python\n"
           "    call 2:5-30 torch.amp.GradScaler kind=constructor args=[" +
           std::string(enabled) +
           "] result.name=scaler\n"
           "    call 2:40-60 torch.amp.GradScaler.scale kind=method args=[{object call=0 name=scaler} "
           "{other}]\n"
           "    call 3:5-30 torch.optim.AdamW.state_dict kind=method args=[{name=opt}]\n"
           "    call 4:5-30 torch.save args=[{other}]\n" +
           std::string(more);
}
constexpr std::string_view kSaved =
    "    call 5:5-30 torch.amp.GradScaler.state_dict kind=method args=[{name=scaler}]\n";
constexpr std::string_view kLoadsOptimizer =
    "    call 6:5-30 torch.optim.AdamW.load_state_dict kind=method args=[{name=opt}]\n";
constexpr std::string_view kLoadsScaler =
    "    call 7:5-30 torch.amp.GradScaler.load_state_dict kind=method args=[{name=scaler}]\n";

TEST(ScalerStateNotSaved, ACheckpointWithoutTheScalerIsANote) {
    EXPECT_THAT(lint("MP210", {saving(kLoadsOptimizer)}), ElementsAre("note 3"));
    EXPECT_THAT(lint("MP210", {saving(kSaved)}), IsEmpty());
    EXPECT_THAT(lint("MP210", {saving("")}), ElementsAre("note 3")) << "nothing goes on from it";
    EXPECT_THAT(lint("MP210", {saving(std::string(kLoadsOptimizer) +
                                      "    call 5:5-30 ?.__getitem__ kind=op args=[{call=2} {other}]\n")}),
                IsEmpty())
        << "only an entry is read";
}

TEST(ScalerStateNotSaved, OffMakesItNothing) {
    EXPECT_THAT(lint("MP210", {saving("", "{name=amp keyword=enabled}")}), ElementsAre("note 3"));
    EXPECT_THAT(lint("MP210", {saving("", "{constant=false keyword=enabled}")}), IsEmpty());
}

TEST(ScalerStateNotSaved, SavedAndNeverLoaded) {
    const std::string saved(kSaved), opt(kLoadsOptimizer), scaler(kLoadsScaler);
    EXPECT_THAT(lint("MP210", {saving(saved + opt)}), ElementsAre("note 5"));
    EXPECT_THAT(lint("MP210", {saving(saved + opt + scaler)}), IsEmpty());
}

TEST(ScalerStateNotSaved, WhatNothingCallsLoadsNothing) {
    const std::string resume =
        "  func 20:9 t.resume kind=python params=[{name=opt}]\n" + std::string(kLoadsOptimizer);
    const std::string script = "  func 40:1 t.<module> kind=python\n    call 41:1 t.main callee=t.main\n";
    EXPECT_THAT(lint("MP210", {saving(std::string(kSaved) + resume + script)}), IsEmpty());
    EXPECT_THAT(lint("MP210", {saving(std::string(kSaved) + resume + script +
                                      "    call 42:1 t.resume callee=t.resume args=[{name=opt}]\n")}),
                ElementsAre("note 5"));
}

}  // namespace
}  // namespace mp::lint::test
