#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/judge/judge.hpp"
#include "runtime/judge/policy_text.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(PolicyText, AllFormsAreRead) {
    const auto fsdp = parse_policy("fsdp:param=bf16,reduce=fp32,buffer=none,output=bf16@blocks.1", "");
    ASSERT_TRUE(fsdp) << fsdp.error().message;
    EXPECT_EQ(fsdp->param, DType::bf16);
    EXPECT_EQ(fsdp->reduce, DType::fp32);
    EXPECT_EQ(fsdp->buffer, DType::unknown);
    EXPECT_EQ(fsdp->layer, "blocks.1");
    const auto autocast = parse_policy("autocast:cpu=bf16", "2.11.0+cpu");
    ASSERT_TRUE(autocast);
    EXPECT_EQ(autocast->list->name(), "torch-cpu-2.5");
    EXPECT_EQ(parse_policy("autocast:cuda=fp16", "1.13.1+cu117")->list->name(), "torch-cuda-1.13");
    EXPECT_EQ(parse_policy("autocast:cuda=fp16", "nonsense")->list->name(), "torch-cuda-2.12");
    EXPECT_EQ(parse_policy("ddp", "")->kind, DeclaredPolicy::Kind::ddp);
    EXPECT_TRUE(parse_policy("tf32:matmul=off,cudnn=on", "")->tf32_cudnn);
    EXPECT_EQ(parse_policy("apex-o1", "")->kind, DeclaredPolicy::Kind::list);
}

TEST(PolicyText, WhatIsWrongIsSaid) {
    for (const char* text :
         {"", "fsdp", "fsdp:parm=bf16", "fsdp:param=bf17", "fsdp:param=int8", "fsdp:param",
          "autocast:tpu=bf16", "autocast:cuda", "autocast:cuda=bf16,cpu=bf16", "hmp:bf16=/nowhere",
          "hmp:x=/dev/null", "/nowhere/list.txt", "tf32:x=on", "torch-cpu-9.9", "\x1b[31m"}) {
        const auto policy = parse_policy(text, "");
        ASSERT_FALSE(policy) << text;
        EXPECT_EQ(policy.error().message.find('\x1b'), std::string::npos);
    }
    EXPECT_FALSE(parse_policy(std::string(100'000, 'a'), ""));
    EXPECT_LT(parse_policy(std::string(100'000, 'a'), "").error().message.size(), 1000u);
}

TEST(PolicyText, ListsFromFiles) {
    const fs::path folder = fs::temp_directory_path() / ("mp-policy-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::ofstream(folder / "mine.txt") << "dtype = bf16\n[fp32]\nsoftmax\n[lower]\nlinear\n";
    std::ofstream(folder / "bf16.txt") << "linear\n";
    std::ofstream(folder / "fp32.txt") << "softmax\n";
    const auto mine = parse_policy((folder / "mine.txt").string(), "");
    ASSERT_TRUE(mine) << mine.error().message;
    EXPECT_EQ(mine->list->category(op_from_name("softmax")), Category::fp32);
    const auto hmp = parse_policy(
        "hmp:bf16=" + (folder / "bf16.txt").string() + ",fp32=" + (folder / "fp32.txt").string(), "");
    ASSERT_TRUE(hmp) << hmp.error().message;
    EXPECT_EQ(hmp->list->category(op_from_name("linear")), Category::lower);
    fs::remove_all(folder);
}

Check::Answer answer(const Judgement& j, const std::string& sentence) {
    for (const Check& c : j.checks) {
        if (c.sentence == sentence) return c.answer;
    }
    ADD_FAILURE() << "no sentence: " << sentence;
    return Check::Answer::not_observed;
}

PlaceTotal place(TensorRole role, std::string layer, DType dtype) {
    PlaceTotal p;
    p.place = {.role = role,
               .layer = std::move(layer),
               .phase = Phase::unknown,
               .dtype = dtype,
               .tensors = 1,
               .elements = 4096};
    p.first_step = Step{0};
    return p;
}

CollectiveTotal reduction(DType dtype) {
    CollectiveTotal c;
    c.total.op = "reduce_scatter";
    c.total.reduction = "avg";
    c.total.dtype = dtype;
    c.total.calls = 240;
    return c;
}

TEST(Checks, SentencesAreAnswered) {
    RunModel m = healthy();
    m.places = {place(TensorRole::parameter, "a", DType::fp32),
                place(TensorRole::checkpoint, "model.pt", DType::bf16)};
    m.collectives = {reduction(DType::bf16)};
    m.ops.push_back(op_sum("norm", "aten::native_layer_norm", Phase::forward, DType::fp32, 0, 1));
    const Judgement j = judge(m);
    EXPECT_EQ(answer(j, "parameters are stored in fp32"), Check::Answer::yes);
    EXPECT_EQ(answer(j, "checkpoints are fp32"), Check::Answer::no);
    EXPECT_EQ(answer(j, "optimizer state is fp32"), Check::Answer::not_observed);
    EXPECT_EQ(answer(j, "the reduction runs in fp32"), Check::Answer::no);
    EXPECT_EQ(answer(j, "BatchNorm and LayerNorm run in fp32"), Check::Answer::yes);
    for (const Check& c : j.checks) EXPECT_FALSE(c.violated) << "nobody declared " << c.sentence;
    bool violated = false;
    for (const Check& c : judge(m, {}, {"fsdp:reduce=fp32"}).checks) violated = violated || c.violated;
    EXPECT_TRUE(violated);
    EXPECT_EQ(text_of(j), "") << "answers are no findings: nobody declared anything";
}

TEST(Checks, TheCountsOfSeveralRanksSayThatTheyAreSums) {
    RunModel m = healthy();
    m.places = {place(TensorRole::parameter, "a", DType::fp32)};
    EXPECT_EQ(judge(m).checks.front().evidence, "fp32 4,096 elements");
    m.ranks.push_back(m.ranks.front());
    m.ranks.back().process.rank = Rank{1};
    EXPECT_EQ(judge(m).checks.front().evidence, "fp32 4,096 elements, summed over 2 ranks");
}

TEST(OffPolicy, AReductionBelowThePolicy) {
    RunModel m = healthy();
    m.collectives = {reduction(DType::fp16)};
    m.policies = {"fsdp:param=bf16,reduce=fp32"};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT060");
    EXPECT_THAT(j.findings[0].message, HasSubstr("reduce_scatter in fp16, the policy says fp32"));
    EXPECT_EQ(answer(j, "gradients are reduced in fp32"), Check::Answer::no);
    m.collectives = {reduction(DType::fp32)};
    EXPECT_EQ(text_of(judge(m)), "");
}

TEST(OffPolicy, FSDPReducesInTheParametersDtypeByDefault) {
    RunModel m = healthy();
    m.collectives = {reduction(DType::bf16)};
    m.policies = {"fsdp:param=bf16"};
    EXPECT_EQ(text_of(judge(m)), "");
}

TEST(OffPolicy, BuffersBelowThePolicy) {
    RunModel m = healthy();
    m.places = {place(TensorRole::buffer, "rope", DType::bf16),
                place(TensorRole::parameter, "rope", DType::fp32)};
    const Judgement j = judge(m, {}, {"fsdp:param=bf16,buffer=fp32"});
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "rope");
    EXPECT_THAT(j.findings[0].message, HasSubstr("buffers of rope are bf16"));
}

TEST(OffPolicy, AnOpOffTheAutocastList) {
    RunModel m = healthy();
    m.policies = {"autocast:cuda=bf16"};
    EXPECT_EQ(text_of(judge(m)), "");
    m.ops.push_back(op_sum("blocks.1", "aten::exp", Phase::forward, DType::bf16, 1, 5));
    const Judgement found = judge(m);
    ASSERT_EQ(found.findings.size(), 1u) << text_of(found);
    EXPECT_EQ(found.findings[0].severity, Severity::warning) << "autocast may be off there on purpose";
    const Judgement declared = judge(m, {}, {"autocast:cuda=bf16"});
    ASSERT_EQ(declared.findings.size(), 1u);
    EXPECT_EQ(declared.findings[0].severity, Severity::error);
    EXPECT_EQ(declared.findings[0].op, "aten::exp");
    m.policies = {"autocast:cpu=bf16"};
    EXPECT_EQ(text_of(judge(m)), "") << "exp is on no list of the CPU";
}

TEST(OffPolicy, AnOpThatTakesADtype) {
    RunModel m = healthy();
    m.policies = {"autocast:cuda=bf16"};
    m.ops.push_back(op_sum("loss", "aten::_log_softmax", Phase::forward, DType::bf16, 1, 5));
    const Judgement alone = judge(m);
    ASSERT_EQ(alone.findings.size(), 1u) << text_of(alone);
    EXPECT_EQ(alone.findings[0].severity, Severity::note) << "cross_entropy names the dtype of its logits";
    EXPECT_THAT(alone.findings[0].advice, HasSubstr("logits.float()"));
    m.ops.push_back(op_sum("loss", "aten::exp", Phase::forward, DType::bf16, 1, 5));
    const Judgement both = judge(m);
    ASSERT_EQ(both.findings.size(), 1u) << text_of(both);
    EXPECT_EQ(both.findings[0].op, "aten::exp") << "which needs no name to break the list";
    EXPECT_EQ(both.findings[0].severity, Severity::warning);
}

TEST(OffPolicy, TheOtherHalf) {
    RunModel m = healthy();
    m.policies = {"autocast:cuda=bf16"};
    m.ops.push_back(op_sum("blocks.1.fc", "aten::addmm", Phase::forward, DType::fp16, 1, 5));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    m.policies = {"autocast:cuda=bf16", "autocast:cuda=fp16"};
    EXPECT_EQ(text_of(judge(m)), "") << "either region may have run it";
}

TEST(OffPolicy, FilesNamedByARecordingAreNotRead) {
    RunModel m = healthy();
    m.policies = {"/etc/passwd", "hmp:bf16=/etc/passwd", "some.txt", "unheard:of"};
    EXPECT_EQ(text_of(judge(m)), "");
}

}  // namespace
}  // namespace mp::trace
