#include "kernels/numerics/policy.hpp"

#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/text.hpp"

namespace mp {
namespace {

using testing::HasSubstr;

// Files of one test, gone afterwards.
class PolicyFiles : public testing::Test {
protected:
    std::string write(std::string_view name, std::string_view text) {
        const std::filesystem::path path = dir_ / name;
        std::ofstream(path, std::ios::binary) << text;
        return path.string();
    }
    void SetUp() override { std::filesystem::create_directories(dir_); }
    void TearDown() override { std::filesystem::remove_all(dir_); }

    const std::filesystem::path dir_ =
        std::filesystem::path(testing::TempDir()) /
        ("policy_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

Policy hmp() { return *Policy::built_in("hmp"); }
Policy parsed(std::string_view text) {
    Result<Policy> policy = Policy::parse(text, "lists/mine.txt");
    EXPECT_TRUE(policy) << policy.error().message;
    return policy ? *std::move(policy) : Policy{};
}

// ---- Habana's rules. -----------------------------------------------------------------------------

TEST(HmpPolicy, ListsComeFirst) {
    const DType fp32[] = {DType::fp32}, bf16[] = {DType::bf16}, fp64[] = {DType::fp64};
    EXPECT_EQ(hmp().dtype_of(Op("linear"), fp32), DType::bf16);
    EXPECT_EQ(hmp().dtype_of(Op("softmax"), bf16), DType::fp32);
    EXPECT_EQ(hmp().dtype_of(Op("div"), bf16, true), DType::fp32) << "in-place ops too";
    EXPECT_EQ(hmp().dtype_of(Op("linear"), fp64), DType::bf16) << "HMP casts every input";
    EXPECT_EQ(hmp().category(op_from_spelling("torch.Tensor.__truediv__")), Category::fp32);
}

TEST(HmpPolicy, TheWidestInputDecidesForItsList) {
    const auto add = [](std::vector<DType> inputs) { return hmp().dtype_of(Op("add"), inputs); };
    using enum DType;
    EXPECT_EQ(add({bf16, fp32}), fp32);
    EXPECT_EQ(add({fp32, bf16}), fp32);
    EXPECT_EQ(add({bf16, bf16}), bf16);
    EXPECT_EQ(add({bf16, fp64, fp32}), fp64);
    EXPECT_EQ(add({bf16, unknown}), unknown);
    EXPECT_EQ(add({bf16, fp16}), unknown) << "neither holds the other";
    EXPECT_EQ(add({fp16, bf16, fp32}), unknown);
    EXPECT_EQ(add({bf16, int64}), bf16);
    EXPECT_EQ(add({int32, int64}), int32);
}

TEST(HmpPolicy, InPlaceOpsFollowTheFirstInput) {
    const DType inputs[] = {DType::bf16, DType::fp32};
    EXPECT_EQ(hmp().dtype_of(Op("add"), inputs, true), DType::bf16);
    EXPECT_EQ(hmp().dtype_of(Op("add"), inputs, false), DType::fp32);
}

TEST(HmpPolicy, OtherOpsFollowTheFirstInput) {
    const DType inputs[] = {DType::bf16, DType::fp32}, unknown[] = {DType::unknown, DType::fp32};
    EXPECT_EQ(hmp().dtype_of(Op("exp"), inputs), DType::bf16);
    EXPECT_EQ(hmp().dtype_of(Op("exp"), unknown), DType::unknown);
    EXPECT_EQ(hmp().dtype_of(Op("exp"), {}), DType::unknown);
}

TEST(ApexPolicy, O1CastsFunctionsAndO2OnlyTheModel) {
    const Policy o1 = *Policy::built_in("apex-o1"), o2 = *Policy::built_in("apex-o2");
    const DType fp32[] = {DType::fp32}, fp16[] = {DType::fp16}, mixed[] = {DType::fp16, DType::fp32};
    EXPECT_EQ(o1.dtype_of(Op("linear"), fp32), DType::fp16);
    EXPECT_EQ(o1.dtype_of(Op("softmax"), fp16), DType::fp32);
    EXPECT_EQ(o1.dtype_of(Op("add"), mixed), DType::fp32);
    EXPECT_EQ(o1.category(Op("binary_cross_entropy")), Category::banned);
    EXPECT_EQ(o1.category(Op("var")), Category::fp32);
    EXPECT_EQ(o2.dtype_of(Op("linear"), fp32), DType::fp16);
    EXPECT_EQ(o2.dtype_of(Op("batch_norm"), fp16), DType::fp32);
    EXPECT_EQ(o2.dtype_of(Op("softmax"), fp16), DType::fp16) << "O2 patches no function";
}

// ---- Reading lists. ------------------------------------------------------------------------------

TEST(PolicyText, SectionsAndSettingsAreRead) {
    const Policy p = parsed(
        "# mine\ndtype = fp16\n family=autocast # as torch\n\n[ lower ]\nmatmul\n"
        "[fp32]\n  exp  # why\n");
    EXPECT_EQ(p.name(), "mine");
    EXPECT_EQ(p.low_precision(), DType::fp16);
    EXPECT_EQ(p.category(Op("matmul")), Category::lower);
    EXPECT_EQ(p.category(Op("exp")), Category::fp32);
    const Policy::Entry* exp = p.find(Op("exp"));
    ASSERT_NE(exp, nullptr);
    EXPECT_EQ(to_string(exp->at), "lists/mine.txt:8:3");
    EXPECT_EQ(exp->at.end_column, 6u);
    EXPECT_TRUE(p.problems().empty());
    const DType doubles[] = {DType::fp64};
    EXPECT_EQ(p.dtype_of(Op("exp"), doubles), DType::fp64) << "family = autocast counts";
}

TEST(PolicyText, EntriesAreSortedByName) {
    const Policy p = parsed("[fp32]\nzeros_of_mine\nexp\nabs\nsum\n");
    for (std::size_t i = 1; i < p.entries().size(); ++i)
        EXPECT_LT(p.entries()[i - 1].op.name(), p.entries()[i].op.name());
    EXPECT_EQ(p.entries().size(), 4u);
}

TEST(PolicyText, LineEndsBlanksAndAMarkInFrontDoNotMatter) {
    const Policy p = parsed("\xEF\xBB\xBF[fp32]\r\nexp\t \r\n\r\n   \r\nlog");
    EXPECT_EQ(p.category(Op("exp")), Category::fp32);
    EXPECT_EQ(p.category(Op("log")), Category::fp32);
    EXPECT_EQ(p.entries().size(), 2u);
    EXPECT_TRUE(p.problems().empty());
}

TEST(PolicyText, AnOpOnTwoListsIsAProblemAndTheLowerListCounts) {
    const Policy p = parsed("[promote]\nadd\n[lower]\nexp\nadd\n[fp32]\nexp\n");
    EXPECT_EQ(p.category(Op("exp")), Category::lower);
    EXPECT_EQ(p.category(Op("add")), Category::lower) << "precedence, not order, decides";
    ASSERT_EQ(p.problems().size(), 2u);
    EXPECT_EQ(to_string(p.problems()[1].at), "lists/mine.txt:7:1");
    EXPECT_THAT(p.problems()[1].message, HasSubstr("'exp' is on two lists"));
    EXPECT_THAT(p.problems()[1].message, HasSubstr("lists/mine.txt:4"));
}

TEST(PolicyText, TwiceOnTheSameListIsNoProblem) {
    EXPECT_TRUE(parsed("[fp32]\ndiv\ndivide\ntruediv\n").problems().empty());
}

TEST(PolicyText, AnUnknownOpIsReportedAndKept) {
    const Policy p = parsed("[fp32]\nexp\nmy_fused_norm\n");
    ASSERT_EQ(p.problems().size(), 1u);
    EXPECT_EQ(p.problems()[0].at.line, 3u);
    EXPECT_THAT(p.problems()[0].message, HasSubstr("my_fused_norm"));
    EXPECT_EQ(p.category(Op("my_fused_norm")), Category::fp32);
}

TEST(PolicyText, BrokenStructureIsAnErrorWithPlaceAndHint) {
    for (const std::string_view text : {"[fp31]\nexp\n", "exp\n", "[]\n", "speed = 3\n", "dtype = fp32\n",
                                        "dtype = lowp\n", "dtype =\n", "family = torch\n"}) {
        const Result<Policy> p = Policy::parse(text, "bad.txt");
        ASSERT_FALSE(p) << text;
        EXPECT_THAT(p.error().message, HasSubstr("bad.txt:1: ")) << text;
        EXPECT_FALSE(p.error().hint.empty()) << text;
    }
}

TEST(PolicyText, AnEmptyListIsAPolicyWithoutEntries) {
    EXPECT_TRUE(parsed("").entries().empty());
    EXPECT_TRUE(parsed("\n# nothing\n[fp32]\n").entries().empty());
}

// ---- Files of users. -----------------------------------------------------------------------------

TEST_F(PolicyFiles, HmpListsAreOneNamePerLine) {
    const std::string bf16 = write("bf16.txt", "# ResNet50\r\naddmm\r\navg_pool2d\r\nbmm \r\n");
    const std::string fp32 = write("fp32.txt", "cross_entropy\n\nlog_softmax   # loss\ntopk");
    const Result<Policy> p = Policy::from_hmp_files(bf16, fp32);
    ASSERT_TRUE(p) << p.error().message;
    EXPECT_TRUE(p->problems().empty());
    EXPECT_EQ(p->category(Op("avg_pool2d")), Category::lower);
    EXPECT_EQ(p->category(Op("topk")), Category::fp32);
    EXPECT_EQ(p->category(Op("conv2d")), Category::unlisted) << "the default list is replaced";
    EXPECT_EQ(p->category(Op("add")), Category::promote) << "the widest-input list is HMP's own";
    EXPECT_EQ(to_string(p->find(Op("bmm"))->at), bf16 + ":4:1");
}

TEST_F(PolicyFiles, AUsersListBeatsTheWidestInputList) {
    const Result<Policy> p = Policy::from_hmp_files(write("bf16.txt", "add\n"), "");
    ASSERT_TRUE(p);
    EXPECT_EQ(p->category(Op("add")), Category::lower);
    EXPECT_EQ(p->category(Op("cat")), Category::promote);
    EXPECT_EQ(p->entries().size(), 4u) << "add, cat, stack, sub: each once";
    EXPECT_EQ(p->category(Op("softmax")), Category::unlisted) << "no fp32 file: an empty fp32 list";
    EXPECT_TRUE(p->problems().empty());
}

TEST_F(PolicyFiles, AnOpInBothFilesNamesBothPlaces) {
    const std::string bf16 = write("bf16.txt", "mm\nsoftmax\n"), fp32 = write("fp32.txt", "softmax\n");
    const Result<Policy> p = Policy::from_hmp_files(bf16, fp32);
    ASSERT_TRUE(p);
    ASSERT_EQ(p->problems().size(), 1u);
    EXPECT_EQ(to_string(p->problems()[0].at), fp32 + ":1:1");
    EXPECT_THAT(p->problems()[0].message, HasSubstr(bf16 + ":2"));
    EXPECT_EQ(p->category(Op("softmax")), Category::lower);
}

TEST_F(PolicyFiles, AMissingFileIsAnErrorWithAHint) {
    const Result<Policy> p = Policy::from_hmp_files("", (dir_ / "absent.txt").string());
    ASSERT_FALSE(p);
    EXPECT_THAT(p.error().message, HasSubstr("absent.txt"));
    EXPECT_FALSE(p.error().hint.empty());
}

TEST_F(PolicyFiles, ADirectoryIsAnErrorAndNoList) {
    const Result<Policy> p = Policy::from_hmp_files(dir_.string(), "");
    ASSERT_FALSE(p);
    EXPECT_FALSE(p.error().hint.empty());
}

TEST_F(PolicyFiles, AMegabyteOfJunkGivesAFewCleanProblems) {
    std::string junk(1 << 20, '\0');
    std::mt19937 random(1);
    for (char& c : junk) c = static_cast<char>(random());
    const Result<Policy> p = Policy::from_hmp_files(write("junk.txt", junk), "");
    ASSERT_TRUE(p);
    EXPECT_GT(p->problems().size(), 10u);
    EXPECT_LE(p->problems().size(), 51u);
    EXPECT_THAT(p->problems().back().message, HasSubstr("more problems"));
    for (const Policy::Problem& problem : p->problems()) {
        EXPECT_LT(problem.message.size(), 200u);
        EXPECT_EQ(escape_controls(problem.message), problem.message) << "nothing that a terminal obeys";
    }
    EXPECT_EQ(p->category(Op("add")), Category::promote);
}

TEST_F(PolicyFiles, OneEndlessLineIsOneProblem) {
    const Result<Policy> p = Policy::from_hmp_files(write("line.txt", std::string(1 << 20, 'a')), "");
    ASSERT_TRUE(p);
    EXPECT_EQ(p->problems().size(), 1u);
}

TEST_F(PolicyFiles, AFileWithoutEndIsRefused) {
    const Result<Policy> p = Policy::from_hmp_files("/dev/zero", "");
    ASSERT_FALSE(p);
    EXPECT_THAT(p.error().message, HasSubstr("16 MiB"));
}

}  // namespace
}  // namespace mp
