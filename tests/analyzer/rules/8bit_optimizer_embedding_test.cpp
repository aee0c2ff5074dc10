#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

const std::string kAdam =
    "    call 5:5-40 bitsandbytes.optim.Adam8bit kind=constructor args=[{parameters}]\n";
const std::string kEmbedding = "    call 3:5 torch.nn.Embedding kind=constructor\n";

std::vector<std::string> mp504(std::string_view facts) { return lint("MP504", {python(facts)}); }

TEST(EightBitOptimizerEmbedding, AnEmbeddingInTheSameProgram) {
    EXPECT_THAT(mp504(kEmbedding + kAdam), ElementsAre("note 5"));
    EXPECT_THAT(mp504(kAdam), IsEmpty());
    EXPECT_THAT(mp504(kEmbedding + "    call 5:5 torch.optim.Adam kind=constructor\n"), IsEmpty());
}

TEST(EightBitOptimizerEmbedding, TheModelMayBeInAnotherFile) {
    const std::string net =
        "unit n.py language=python\n  func 1:5 n.Net.__init__ kind=python parent_class=n.Net\n" + kEmbedding;
    const std::string make = "    call 4:5 n.Net kind=constructor callee=n.Net.__init__\n";
    EXPECT_THAT(lint("MP504", {python(make + kAdam), net}), ElementsAre("note 5"));
    EXPECT_THAT(lint("MP504", {python(kAdam), net}), IsEmpty());
}

TEST(EightBitOptimizerEmbedding, EitherRemedyIsEnough) {
    EXPECT_THAT(mp504(kEmbedding + kAdam + "    call 6:5 bitsandbytes.nn.StableEmbedding kind=constructor\n"),
                IsEmpty());
    EXPECT_THAT(
        mp504(kEmbedding + kAdam + "    call 6:5 ?.register_module_override kind=method args=[{other}]\n"),
        IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
