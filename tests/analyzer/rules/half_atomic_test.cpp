#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp403(std::string_view fact) { return lint("MP403", {kernel(fact)}); }

TEST(HalfAtomic, AddingIntoHalfIsAWarning) {
    for (const std::string name : {"atomicAdd", "gpuAtomicAdd", "at::native::fastAtomicAdd", "atomAdd"})
        for (const std::string dtype : {"fp16", "bf16", "lowp"})
            EXPECT_THAT(
                mp403("call 4:3 " + name + " args=[{" + dtype + " pointer name=out} {" + dtype + "}]"),
                ElementsAre("warning 4"))
                << name << " " << dtype;
}

TEST(HalfAtomic, PackedHalvesAreHalves) {
    EXPECT_THAT(mp403("call 4:3 atomicAdd args=[{fp16 pointer} {fp16 vec}]"), ElementsAre("warning 4"));
}

TEST(HalfAtomic, FloatAndIntegerTargetsAreSilent) {
    EXPECT_THAT(mp403("call 4:3 atomicAdd args=[{fp32 pointer name=out} {fp16}]"), IsEmpty());
    EXPECT_THAT(mp403("call 4:3 atomicAdd args=[{int32 pointer name=out} {int32}]"), IsEmpty());
    EXPECT_THAT(mp403("call 4:3 atomicAdd args=[{pointer name=out} {fp16}]"), IsEmpty());
}

TEST(HalfAtomic, MaximumIsSilent) {
    EXPECT_THAT(mp403("call 4:3 atomicMax args=[{fp16 pointer} {fp16}]"), IsEmpty());
    EXPECT_THAT(mp403("call 4:3 atomicCAS args=[{uint16 pointer} {uint16} {uint16}]"), IsEmpty());
}

TEST(HalfAtomic, BodyOfAnAtomicWrapperIsSilent) {
    EXPECT_THAT(lint("MP403", {"unit a.cu language=cuda\n  func 1:1 atomAdd kind=device\n"
                               "    call 4:3 atomicAdd args=[{fp16 pointer} {fp16}]\n"}),
                IsEmpty());
}

TEST(HalfAtomic, AtomicReferenceSays) {
    EXPECT_THAT(mp403("call 4:3 cuda::atomic_ref::fetch_add kind=method template_args=[{fp16 "
                      "scalar text=__half}] "
                      "args=[{object} {fp16}]"),
                ElementsAre("warning 4"));
    EXPECT_THAT(mp403("call 4:3 cuda::atomic_ref::fetch_add kind=method template_args=[{fp32 "
                      "scalar text=float}] "
                      "args=[{object} {fp32}]"),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
