#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string half(std::string value) {
    return "    call 5:3 torch.Tensor.half kind=method args=[{" + value +
           "}] result.dtype=fp16 result.shape=tensor\n";
}

TEST(Bf16ToFp16, OnlyBf16IsNarrowed) {
    EXPECT_THAT(lint("MP305", {python(half("bf16 tensor name=w"))}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP305", {python(half("fp32 tensor name=w"))}), IsEmpty());
    EXPECT_THAT(lint("MP305", {python(half("lowp tensor name=w"))}), IsEmpty());
    EXPECT_THAT(lint("MP305", {python(half("other name=w"))}), IsEmpty());
}

TEST(Bf16ToFp16, ModulesAndTheGeneralCast) {
    EXPECT_THAT(lint("MP305", {python("    call 5:3 torch.nn.Module.to kind=method args=[{bf16 "
                                      "module name=m} {fp16 dtype constant=torch.float16}] "
                                      "result.dtype=fp16 result.shape=module\n")}),
                ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP305", {python("    call 5:3 torch.nn.Module.to kind=method args=[{bf16 "
                                      "module name=m} {fp32 dtype constant=torch.float32}] "
                                      "result.dtype=fp32 result.shape=module\n")}),
                IsEmpty());
}

TEST(Bf16ToFp16, ThroughFp32IsTheSameNarrowingUnlessClamped) {
    const std::string up =
        "    call 3:3 torch.Tensor.float kind=method args=[{bf16 tensor name=w}] result.dtype=fp32 "
        "result.shape=tensor\n";
    EXPECT_THAT(lint("MP305", {python(up + half("fp32 tensor call=0"))}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP305", {python(up +
                                      "    call 4:3 torch.Tensor.clamp kind=method op=clamp "
                                      "args=[{fp32 tensor call=0} {constant=-65504} "
                                      "{constant=65504}] result.dtype=fp32 result.shape=tensor\n" +
                                      half("fp32 tensor call=1"))}),
                IsEmpty());
}

TEST(Bf16ToFp16, BoundedResultsAreSilent) {
    EXPECT_THAT(lint("MP305", {python("    call 3:3 torch.Tensor.softmax kind=method op=softmax "
                                      "args=[{bf16 tensor name=w}] result.dtype=bf16 "
                                      "result.shape=tensor\n" +
                                      half("bf16 tensor call=0"))}),
                IsEmpty());
}

TEST(Bf16ToFp16, CastsOfCuda) {
    const std::string narrows =
        "cast 4:3 bf16->fp32 source.name=x\ncast 4:3 fp32->fp16 source.name=x inner=0\n";
    EXPECT_THAT(lint("MP305", {kernel(narrows)}), ElementsAre("note 4"));
    EXPECT_THAT(lint("MP305", {kernel("cast 4:3 fp32->fp16 source.name=x")}), IsEmpty());
}

std::string loaded(std::string_view checkpoint, std::string_view then = "", std::string_view dtype = "fp16") {
    return python("    call 3:5 transformers.AutoModel.from_pretrained args=[{" + std::string(checkpoint) +
                  "} {" + std::string(dtype) + " dtype keyword=torch_dtype}] result.dtype=" +
                  std::string(dtype) + " result.shape=module result.name=m\n" + std::string(then));
}

constexpr const char* kGemma = "object constant=\"'google/gemma-2b'\"";
constexpr const char* kTrained =
    "    call 4:5 torch.nn.Module.parameters kind=method args=[{fp16 module call=0 name=m}]\n"
    "    call 5:5 torch.optim.AdamW kind=constructor args=[{fp16 parameters call=1}]\n";

TEST(Bf16ToFp16, ACheckpointTrainedInBf16AndLoadedAsFp16IsAWarning) {
    EXPECT_THAT(lint("MP305", {loaded(kGemma)}), ElementsAre("warning 3"));
    EXPECT_THAT(lint("MP305", {loaded(kGemma, "", "bf16")}), IsEmpty());
    EXPECT_THAT(lint("MP305", {loaded(kGemma)}, Profile::inference), ElementsAre("note 3"));
}

TEST(Bf16ToFp16, AnUnknownCheckpointIsANoteWhenItIsTrained) {
    EXPECT_THAT(lint("MP305", {loaded("other name=path")}), IsEmpty());
    EXPECT_THAT(lint("MP305", {loaded("other name=path", kTrained)}), ElementsAre("note 3"));
    EXPECT_THAT(lint("MP305", {loaded("other name=path",
                                      "    call 4:5 transformers.Trainer kind=constructor "
                                      "args=[{fp16 module call=0 name=m keyword=model}]\n")}),
                ElementsAre("note 3"));
    EXPECT_THAT(lint("MP305", {loaded("other name=path", kTrained)}, Profile::inference), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
