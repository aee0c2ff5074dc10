#include <gmock/gmock.h>

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

ResolvedDType argument_of(const Program& program, std::string_view function, std::size_t call = 0) {
    const Function& f = function_named(program, function);
    return program.dtype_of(f, f.calls.at(call).args.at(0));
}

TEST(ProgramDTypes, ComeThroughTwoCalls) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 top usr=top
  call 2:1 at::Tensor::to result.dtype=bf16 result.shape=tensor
  call 3:1 middle callee=middle args=[{tensor call=0}]
)",
                                    R"(
unit b.cpp
func 1:1 middle usr=middle params=[{tensor name=x}]
  call 2:1 leaf callee=leaf args=[{tensor param=0}]
func 4:1 leaf usr=leaf params=[{tensor name=y}]
  call 5:1 at::softmax op=softmax args=[{tensor param=0}]
)"});
    const ResolvedDType found = argument_of(program, "leaf");
    EXPECT_EQ(found.dtype, DType::bf16);
    ASSERT_EQ(found.chain.size(), 2u);
    EXPECT_EQ(to_string(found.chain[0].span) + " " + found.chain[0].text, "b.cpp:2:1 y of leaf is bf16 here");
    EXPECT_EQ(to_string(found.chain[1].span) + " " + found.chain[1].text,
              "a.cpp:3:1 x of middle is bf16 here");
}

TEST(ProgramDTypes, CallersThatDisagreeGiveUnknown) {
    const auto two = [](const std::string& first, const std::string& second) {
        return linked({"unit a.cpp\nfunc 1:1 a\n call 2:1 leaf callee=leaf args=[{tensor " + first +
                       "}]\nfunc 3:1 b\n call 4:1 leaf callee=leaf args=[{tensor " + second +
                       "}]\nfunc 5:1 leaf params=[tensor]\n call 6:1 at::softmax args=[{tensor param=0}]\n"});
    };
    EXPECT_EQ(argument_of(two("fp16", "fp32"), "leaf").dtype, DType::unknown);
    EXPECT_EQ(argument_of(two("fp16", "fp16"), "leaf").dtype, DType::fp16);
    EXPECT_EQ(argument_of(two("fp16", "name=z"), "leaf").dtype, DType::unknown);
}

TEST(ProgramDTypes, NobodyCallsNobodyKnows) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 leaf usr=leaf params=[tensor]
  call 2:1 at::softmax args=[{tensor param=0}]
)"});
    EXPECT_EQ(argument_of(program, "leaf").dtype, DType::unknown);
}

TEST(ProgramDTypes, ACallerThatDoesNotKnowMakesItUnknown) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 root usr=root params=[tensor]
  call 2:1 leaf callee=leaf args=[{tensor param=0}]
func 3:1 sure usr=sure
  call 4:1 leaf callee=leaf args=[{fp16 tensor}]
func 5:1 leaf usr=leaf params=[tensor]
  call 6:1 at::softmax args=[{tensor param=0}]
)"});
    EXPECT_EQ(argument_of(program, "leaf").dtype, DType::unknown);
}

TEST(ProgramDTypes, ResultsAreWhatEveryReturnGives) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 same usr=same
  return fp16 tensor
  return fp16 tensor
func 2:1 mixed usr=mixed
  return fp16 tensor
  return fp32 tensor
func 3:1 through usr=through params=[tensor]
  return tensor param=0
func 5:1 f usr=f
  call 6:1 same callee=same
  call 7:1 mixed callee=mixed
  call 8:1 through callee=through args=[{tensor call=0}]
  call 9:1 at::sum args=[{tensor call=0}]
  call 10:1 at::sum args=[{tensor call=1}]
  call 11:1 at::sum args=[{tensor call=2}]
)"});
    EXPECT_EQ(argument_of(program, "f", 3).dtype, DType::fp16);
    EXPECT_EQ(argument_of(program, "f", 4).dtype, DType::unknown);
    EXPECT_EQ(argument_of(program, "f", 5).dtype, DType::fp16);
}

TEST(ProgramDTypes, RecursionAgreesWithItself) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 start usr=start
  call 2:1 walk callee=walk args=[{fp16 tensor}]
func 3:1 walk usr=walk params=[tensor]
  call 4:1 walk callee=walk args=[{tensor param=0}]
  call 5:1 at::sum args=[{tensor param=0}]
)"});
    EXPECT_EQ(argument_of(program, "walk", 1).dtype, DType::fp16);
}

TEST(ProgramDTypes, MethodsSkipTheirReceiverAndDefaultsAreUnknown) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f
  call 2:1 Net::run kind=method callee=run args=[name=net {bf16 tensor}]
func 3:1 Net::run usr=run parent_class=Net params=[{tensor name=x} {tensor name=mask}]
  call 4:1 at::sum args=[{tensor param=0}]
  call 5:1 at::sum args=[{tensor param=1}]
)"});
    EXPECT_EQ(argument_of(program, "Net::run", 0).dtype, DType::bf16);
    EXPECT_EQ(argument_of(program, "Net::run", 1).dtype, DType::unknown);
}

}  // namespace
}  // namespace mp::lint
