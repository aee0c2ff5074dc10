#include "analyzer/region/call_index.hpp"

#include <array>
#include <map>

#include <gmock/gmock.h>

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kFacts = R"(unit /m.py language=python
  func 1:1 m.a kind=python
    call 2:1 torch.mean op=mean
    call 3:1 m.b
  func 5:1 m.b kind=python
    call 6:1 m.c
    call 7:1 torch.Tensor.mean op=mean
    call 8:1 m.b
)";

std::vector<std::uint32_t> lines(const Program& program, const NameQuestion& name, const NameQuestion& op) {
    std::vector<std::uint32_t> out;
    for (const CallAt& at : program.calls().select(name, op))
        out.push_back(program.functions()[at.function]->calls[at.call].span.line);
    return out;
}

NameQuestion is(std::string_view text) {
    return [text](std::string_view name) { return name == text; };
}

TEST(CallIndex, CallsComeInTheOrderOfTheProgram) {
    const Program program = linked({kFacts});
    EXPECT_THAT(lines(program, is("m.b"), {}), ElementsAre(3, 8));
    EXPECT_THAT(lines(program, {}, is("mean")), ElementsAre(2, 7));
    EXPECT_THAT(lines(program, [](std::string_view) { return true; }, {}), ElementsAre(2, 3, 6, 7, 8));
}

TEST(CallIndex, EitherQuestionIsEnoughAndNoneAcceptsNothing) {
    const Program program = linked({kFacts});
    EXPECT_THAT(lines(program, is("m.c"), is("mean")), ElementsAre(2, 6, 7));
    EXPECT_THAT(lines(program, is("torch.mean"), is("mean")), ElementsAre(2, 7)) << "once";
    EXPECT_THAT(lines(program, {}, {}), IsEmpty());
}

TEST(CallIndex, NamesAndLastPartsAreLookedUp) {
    static constexpr std::array<std::string_view, 2> kNames{"m.b", "mean"};
    static constexpr std::array<std::string_view, 2> kLastParts{"mean", "c"};
    const Program program = linked({kFacts});
    EXPECT_THAT(lines(program, name_in(kNames), {}), ElementsAre(3, 8)) << "whole names only";
    EXPECT_THAT(lines(program, last_part_in(kLastParts), {}), ElementsAre(2, 6, 7));
    std::vector<std::string> asked;
    const auto is_torch = [&](std::string_view name) {
        asked.emplace_back(name);
        return name.starts_with("torch.");
    };
    EXPECT_THAT(lines(program, last_part_in(kLastParts, is_torch), {}), ElementsAre(2, 7));
    EXPECT_THAT(asked, UnorderedElementsAre("torch.mean", "torch.Tensor.mean", "m.c")) << "no other name";
    EXPECT_THAT(lines(program, {}, name_in(kNames)), ElementsAre(2, 7)) << "ops too";
}

TEST(CallIndex, AQuestionIsAskedOncePerTextAndOfKnownOpsOnly) {
    const Program program = linked({kFacts});
    std::map<std::string, int> asked;
    const auto count = [&](std::string_view text) {
        ++asked[std::string(text)];
        return false;
    };
    EXPECT_THAT(lines(program, count, count), IsEmpty());
    EXPECT_THAT(asked, ElementsAre(std::pair("m.b", 1), std::pair("m.c", 1), std::pair("mean", 1),
                                   std::pair("torch.Tensor.mean", 1), std::pair("torch.mean", 1)));
}

}  // namespace
}  // namespace mp::lint
