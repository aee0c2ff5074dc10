#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string backward(std::string_view facts) {
    return "unit c.py language=python\n  func 9:9 c.Again.backward kind=python "
           "parent_class=c.Again bases=[torch.autograd.Function] params=[{name=ctx} {name=g}]\n"
           "    call 10:14 torch.enable_grad kind=constructor\n" +
           std::string(facts);
}

constexpr const char* kBackward = "    call 12:9 torch.autograd.backward args=[{other name=out}]\n";
constexpr const char* kCheckpoint =
    "call 4:9 torch.utils.checkpoint.checkpoint args=[{other "
    "name=block}]\n";

TEST(CheckpointAutocast, ARecomputationWithoutTheRegionIsANote) {
    EXPECT_THAT(lint("MP119", {backward(kBackward)}), ElementsAre("note 10"));
}

TEST(CheckpointAutocast, ARestoredRegionIsSilent) {
    EXPECT_THAT(lint("MP119", {backward("    call 10:40 torch.autocast kind=constructor args=[{other "
                                        "keyword=**}]\n" +
                                        std::string(kBackward))}),
                IsEmpty());
}

TEST(CheckpointAutocast, WithoutASecondBackwardItIsSilent) {
    EXPECT_THAT(lint("MP119", {backward("")}), IsEmpty());
}

TEST(CheckpointAutocast, ReentrantCheckpointsOfOldTorchAreANote) {
    const std::string code = python(open() + kCheckpoint + close());
    EXPECT_THAT(lint("MP119", {code}, Profile::training, "1.11"), ElementsAre("note 4"));
    EXPECT_THAT(lint("MP119", {code}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
