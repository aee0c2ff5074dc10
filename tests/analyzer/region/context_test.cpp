#include <gmock/gmock.h>

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGuard = R"(
  func amp.hpp:4:5 AmpGuard::AmpGuard usr=guard+ parent_class=AmpGuard params=[{boolean name=on}]
    call 4:20 at::autocast::is_enabled
    call 4:60 at::autocast::set_enabled args=[{boolean param=0}]
  func amp.hpp:5:5 AmpGuard::~AmpGuard usr=guard- parent_class=AmpGuard
    call 5:20 at::autocast::clear_cache
    call 5:60 at::autocast::set_enabled args=[name=before_]
)";

std::string with_guard(const std::string& text) {
    std::string guard = kGuard;
    const std::string type(name_of(DType::boolean));
    for (std::size_t at; (at = guard.find("boolean")) != std::string::npos;) guard.replace(at, 7, type);
    return text + guard;
}

TEST(RegionContexts, ReachThroughThreeFilesWithTheChain) {
    const Program program = linked({R"(
unit train.cpp
func 10:6 train usr=train
  call 11:3 at::autocast::set_enabled args=[constant=true]
  call 12:3 step callee=step
  call 13:3 at::autocast::set_enabled args=[constant=false]
  call 14:3 step2 callee=step2
)",
                                    R"(
unit step.cpp
func 3:6 step usr=step
  call 5:9 loss callee=loss
func 8:6 step2 usr=step2
  call 9:9 at::softmax op=softmax
)",
                                    R"(
unit loss.cpp
func 2:6 loss usr=loss
  call 4:9 at::std op=std
)"});
    EXPECT_EQ(states(program, "train", 0), "off");
    EXPECT_EQ(states(program, "train", 1), "on:fp16");
    EXPECT_EQ(states(program, "train", 3), "off");
    EXPECT_EQ(states(program, "loss", 0), "on:fp16");
    EXPECT_EQ(states(program, "step2", 0), "off");
    const Function& loss = function_named(program, "loss");
    const Context* context = program.enabled_context(loss, loss.calls[0]);
    ASSERT_NE(context, nullptr);
    EXPECT_TRUE(context->proven);
    EXPECT_EQ(to_string(context->opened), "train.cpp:11:3");
    EXPECT_EQ(context->opener.str(), "at::autocast::set_enabled");
    EXPECT_THAT(chain_of(*context),
                ElementsAre("train.cpp:12:3 train calls step here", "step.cpp:5:9 step calls loss here"));
}

TEST(RegionContexts, TakeTheShortestWayIn) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 far usr=far
  call 2:1 at::autocast::set_enabled args=[constant=true]
  call 3:1 middle callee=middle
  call 4:1 at::autocast::set_enabled args=[constant=false]
func 5:1 middle usr=middle
  call 6:1 leaf callee=leaf
func 7:1 near usr=near
  call 8:1 at::autocast::set_enabled args=[constant=true]
  call 9:1 leaf callee=leaf
  call 10:1 at::autocast::set_enabled args=[constant=false]
func 11:1 leaf usr=leaf
  call 12:1 at::sum op=sum
)"});
    const Function& leaf = function_named(program, "leaf");
    EXPECT_THAT(chain_of(*program.enabled_context(leaf, leaf.calls[0])),
                ElementsAre("a.cpp:9:1 near calls leaf here"));
}

TEST(RegionContexts, EachDeviceHasItsOwnState) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f
  call 2:1 at::autocast::set_cpu_enabled args=[constant=true]
  call 3:1 at::sum op=sum
  call 4:1 at::autocast::set_autocast_enabled args=[constant=at::kHPU constant=true]
  call 5:1 at::sum op=sum
  call 6:1 at::autocast::set_cpu_enabled args=[constant=false]
  call 7:1 at::sum op=sum
  call 8:1 at::autocast::set_autocast_enabled args=[constant=c10::DeviceType::HPU constant=false]
  call 9:1 at::sum op=sum
)"});
    EXPECT_EQ(states(program, "f", 1), "on:bf16/cpu");
    EXPECT_EQ(states(program, "f", 3), "on:bf16/cpu on:bf16/hpu");
    EXPECT_EQ(states(program, "f", 5), "on:bf16/hpu");
    EXPECT_EQ(states(program, "f", 7), "off");
}

TEST(RegionContexts, TheDtypeIsTheOneSetForTheDevice) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f
  call 2:1 at::autocast::set_autocast_gpu_dtype args=[constant=torch::kBFloat16]
  call 3:1 at::autocast::set_autocast_cpu_dtype args=[constant=torch::kFloat]
  call 4:1 at::autocast::set_enabled args=[constant=true]
  call 5:1 g callee=g
  call 6:1 at::autocast::set_autocast_dtype args=[constant=at::kCUDA {constant=c10::ScalarType::Half}]
  call 7:1 g2 callee=g2
  call 8:1 at::autocast::set_autocast_gpu_dtype args=[name=chosen]
  call 9:1 g3 callee=g3
func 11:1 g usr=g
  call 12:1 at::sum op=sum
func 13:1 g2 usr=g2
  call 14:1 at::sum op=sum
func 15:1 g3 usr=g3
  call 16:1 at::sum op=sum
)"});
    EXPECT_EQ(states(program, "g", 0), "on:bf16");
    EXPECT_EQ(states(program, "g2", 0), "on:fp16");
    EXPECT_EQ(states(program, "g3", 0), "on:unknown");
}

TEST(RegionContexts, ADtypeSetByTheCallerHoldsInARegionOpenedBelow) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 main usr=main
  call 2:1 at::autocast::set_autocast_gpu_dtype args=[constant=torch::kBFloat16]
  call 3:1 step callee=step
func 5:1 step usr=step
  call 6:1 at::autocast::set_enabled args=[constant=true]
  call 7:1 at::sum op=sum
  call 8:1 at::autocast::set_enabled args=[constant=false]
)"});
    EXPECT_EQ(states(program, "step", 1), "on:bf16");
}

TEST(RegionContexts, AGuardOpensForItsScope) {
    const Program program = linked({with_guard(R"(
unit a.cpp
func 10:1 f usr=f
  call 11:1 AmpGuard::AmpGuard kind=constructor callee=guard+ args=[constant=true]
  call 12:1 at::sum op=sum
  call 13:1 AmpGuard::~AmpGuard kind=destructor callee=guard-
  call 14:1 at::sum op=sum
func 20:1 g usr=g
  call 21:1 AmpGuard::AmpGuard kind=constructor callee=guard+ args=[constant=false]
  call 22:1 at::sum op=sum
  call 23:1 AmpGuard::~AmpGuard kind=destructor callee=guard-
func 30:1 h usr=h
  call 31:1 AmpGuard::AmpGuard kind=constructor callee=guard+ args=[name=chosen]
  call 32:1 at::sum op=sum
  call 33:1 AmpGuard::~AmpGuard kind=destructor callee=guard-
)")});
    EXPECT_EQ(states(program, "f", 1), "on:fp16");
    EXPECT_EQ(states(program, "f", 3), "off");
    EXPECT_EQ(states(program, "g", 1), "off");
    EXPECT_EQ(states(program, "h", 1), "unknown");
    const Function& f = function_named(program, "f");
    EXPECT_EQ(program.enabled_context(f, f.calls[1])->opener.str(), "AmpGuard");
    EXPECT_THAT(leaks(program), testing::IsEmpty());
}

TEST(RegionContexts, ANestedGuardGivesTheOuterStateBack) {
    const Program program = linked({with_guard(R"(
unit a.cpp
func 10:1 f usr=f
  call 11:1 AmpGuard::AmpGuard kind=constructor callee=guard+ args=[constant=true]
  call 12:1 AmpGuard::AmpGuard kind=constructor callee=guard+ args=[constant=false]
  call 13:1 at::sum op=sum
  call 14:1 AmpGuard::~AmpGuard kind=destructor callee=guard-
  call 15:1 at::sum op=sum
  call 16:1 AmpGuard::~AmpGuard kind=destructor callee=guard-
  call 17:1 at::sum op=sum
)")});
    EXPECT_EQ(states(program, "f", 2), "off");
    EXPECT_EQ(states(program, "f", 4), "on:fp16");
    EXPECT_EQ(states(program, "f", 6), "off");
}

TEST(RegionContexts, AVariableThatReadTheStateRestoresIt) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 outer usr=outer
  call 2:1 at::autocast::set_enabled args=[constant=true]
  call 3:1 island callee=island
  call 4:1 at::autocast::set_enabled args=[constant=false]
func 6:1 island usr=island
  call 7:1 at::autocast::is_enabled
  call 8:1 at::autocast::set_enabled args=[constant=false]
  call 9:1 at::sum op=sum
  call 10:1 at::autocast::set_enabled args=[call=0]
  call 11:1 at::sum op=sum
)"});
    EXPECT_EQ(states(program, "island", 2), "off");
    EXPECT_EQ(states(program, "island", 4), "on:fp16");
}

TEST(RegionContexts, HelpersThatReturnAndTakeTheOldStateRestoreIt) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 enter usr=enter
  call 2:1 at::autocast::is_enabled
  call 3:1 at::autocast::set_enabled args=[constant=true]
  return call=0
func 5:1 leave usr=leave params=[name=before]
  call 6:1 at::autocast::set_enabled args=[param=0]
func 10:1 f usr=f
  call 11:1 enter callee=enter
  call 12:1 at::sum op=sum
  call 13:1 leave callee=leave args=[call=0]
  call 14:1 at::sum op=sum
)"});
    EXPECT_EQ(states(program, "f", 1), "on:fp16");
    EXPECT_EQ(states(program, "f", 3), "off");
    EXPECT_THAT(leaks(program), testing::IsEmpty());
}

TEST(RegionContexts, AnUnknownArgumentIsUnknown) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f
  call 2:1 at::autocast::set_enabled args=[text="config.amp() && x"]
  call 3:1 g callee=g
func 5:1 g usr=g
  call 6:1 at::sum op=sum
)"});
    EXPECT_EQ(states(program, "g", 0), "unknown");
    const Function& g = function_named(program, "g");
    EXPECT_EQ(program.enabled_context(g, g.calls[0]), nullptr);
}

TEST(RegionContexts, AParameterNamesTheConditionOfItsRegion) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f params=[name=amp]
  call 2:1 at::autocast::set_enabled args=[{name=amp param=0}]
  call 3:1 at::sum op=sum
  call 4:1 at::autocast::set_enabled args=[constant=false]
)"});
    const Function& f = function_named(program, "f");
    const Context& context = program.contexts(f, f.calls[1])[0];
    EXPECT_EQ(context.enabled, Switch::unknown);
    EXPECT_EQ(context.condition.str(), "amp");
}

TEST(RegionContexts, AConditionalRegionIsNotProvenAndNamesItsFlag) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f
  block to=[{1 condition=amp} {2 condition=amp when=false}]
  block to=[2]
  block to=[{3 condition=amp} {4 condition=amp when=false}]
  block to=[4]
  block leaves
  call 2:1 at::autocast::set_enabled args=[constant=true] block=1
  call 3:1 g callee=g block=2
  call 4:1 at::sum op=sum block=3
  call 5:1 at::autocast::set_enabled args=[constant=false] block=3
  call 6:1 at::sum op=sum block=4
func 8:1 g usr=g
  call 9:1 at::sum op=sum
)"});
    EXPECT_EQ(states(program, "g", 0), "on:fp16? off");
    EXPECT_EQ(states(program, "f", 2), "on:fp16") << "the same flag was tested again";
    EXPECT_EQ(states(program, "f", 4), "off");
    const Function& g = function_named(program, "g");
    EXPECT_EQ(program.enabled_context(g, g.calls[0])->condition.str(), "amp");
    EXPECT_THAT(leaks(program), testing::IsEmpty());
}

TEST(RegionContexts, ADispatchKeyGuardCloses) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 outer usr=outer
  call 2:1 at::autocast::set_enabled args=[constant=true]
  call 3:1 wrapper callee=wrapper
  call 4:1 at::autocast::set_enabled args=[constant=false]
func 6:1 wrapper usr=wrapper
  call 7:1 c10::impl::ExcludeDispatchKeyGuard kind=constructor args=[constant=c10::DispatchKey::Autocast]
  call 8:1 at::sum op=sum
  call 9:1 c10::impl::ExcludeDispatchKeyGuard kind=destructor
  call 10:1 at::sum op=sum
  call 11:1 c10::impl::ExcludeDispatchKeyGuard kind=constructor args=[constant=c10::DispatchKey::AutogradCUDA]
  call 12:1 at::sum op=sum
)"});
    EXPECT_EQ(states(program, "wrapper", 1), "off");
    EXPECT_EQ(states(program, "wrapper", 3), "on:fp16");
    EXPECT_EQ(states(program, "wrapper", 5), "on:fp16") << "another key has nothing to do with autocast";
}

TEST(RegionContexts, ReachOverridersAndLambdasButNotThreadsOrKernels) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f
  call 2:1 at::autocast::set_enabled args=[constant=true]
  call 3:1 Net::forward kind=method callee=base
  call 4:1 at::parallel_for lambdas=[l1]
  call 5:1 std::thread::thread kind=constructor lambdas=[l2]
  call 6:1 scale kind=kernel callee=scale
  call 7:1 submit lambdas=[l3]
  call 8:1 at::autocast::set_enabled args=[constant=false]
func 10:1 Base::forward usr=base virtual
  call 11:1 at::sum op=sum
func 12:1 Mlp::forward usr=mlp virtual overrides=[base]
  call 13:1 at::sum op=sum
func 14:1 Deep::forward usr=deep virtual overrides=[mlp]
  call 15:1 at::sum op=sum
func 16:1 l1 kind=lambda
  call 17:1 at::sum op=sum
func 18:1 l2 kind=lambda
  call 19:1 at::sum op=sum
func 20:1 l3 kind=lambda
  call 21:1 at::sum op=sum
func 22:1 scale kind=kernel
  call 23:1 expf op=exp
)"});
    EXPECT_EQ(states(program, "Base::forward", 0), "on:fp16?") << "one of several";
    EXPECT_EQ(states(program, "Mlp::forward", 0), "on:fp16?");
    EXPECT_EQ(states(program, "Deep::forward", 0), "on:fp16?");
    EXPECT_EQ(states(program, "l1", 0), "on:fp16");
    EXPECT_EQ(states(program, "l2", 0), "off") << "the state belongs to the thread";
    EXPECT_EQ(states(program, "l3", 0), "on:fp16?") << "nobody knows when it runs";
    EXPECT_EQ(states(program, "scale", 0), "off") << "device code has no autocast state";
}

TEST(RegionContexts, ALambdaCalledByNameIsAPlainCall) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f
  call 2:1 at::autocast::set_enabled args=[constant=true]
  call 3:1 f::lambda kind=method callee=l lambdas=[l] args=[name=fn]
  call 4:1 at::autocast::set_enabled args=[constant=false]
func 2:9 f::lambda usr=l kind=lambda
  call 2:20 at::sum op=sum
)"});
    EXPECT_EQ(states(program, "f::lambda", 0), "on:fp16");
}

TEST(RegionContexts, RecursionEnds) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f
  call 2:1 at::autocast::set_enabled args=[constant=true]
  call 3:1 odd callee=odd
  call 4:1 at::autocast::set_enabled args=[constant=false]
func 5:1 odd usr=odd
  call 6:1 even callee=even
func 7:1 even usr=even
  call 8:1 odd callee=odd
  call 9:1 at::sum op=sum
func 11:1 flip usr=flip
  block to=[1 2]
  block to=[2]
  block leaves
  call 12:1 at::autocast::set_enabled args=[constant=true] block=0
  call 13:1 flip callee=flip block=1
  call 14:1 at::sum op=sum block=1
)"});
    EXPECT_EQ(states(program, "even", 1), "on:fp16");
    EXPECT_EQ(states(program, "flip", 2), "on:fp16");
}

TEST(RegionContexts, AnAnnotationAndTheConfigurationOpenBodies) {
    const Program program = linked({R"(
unit a.cpp
func 1:1 f usr=f annotations=[mp::low_precision:bf16]
  call 2:1 g callee=g
func 3:1 g usr=g
  call 4:1 at::sum op=sum
func 5:1 h usr=h annotations=[mp::low_precision]
  call 6:1 at::sum op=sum
func 7:1 ns::forward usr=fw
  call 8:1 at::sum op=sum
func 9:1 my::Amp::use usr=use
  call 10:1 my::Amp::Amp kind=constructor
  call 11:1 at::sum op=sum
  call 12:1 my::Amp::~Amp kind=destructor
  call 13:1 at::sum op=sum
  call 14:1 begin_half
  call 15:1 at::sum op=sum
  call 16:1 end_half
  call 17:1 at::sum op=sum
)"},
                                   {.guards = {"my::Amp"},
                                    .enter = {"begin_half"},
                                    .leave = {"end_half"},
                                    .functions = {"forward"},
                                    .dtype = DType::bf16});
    EXPECT_EQ(states(program, "g", 0), "on:bf16/");
    EXPECT_EQ(states(program, "h", 0), "on:lowp/");
    EXPECT_EQ(states(program, "ns::forward", 0), "on:bf16/");
    EXPECT_EQ(states(program, "my::Amp::use", 1), "on:bf16/");
    EXPECT_EQ(states(program, "my::Amp::use", 3), "off");
    EXPECT_EQ(states(program, "my::Amp::use", 5), "on:bf16/");
    EXPECT_EQ(states(program, "my::Amp::use", 7), "off");
}

TEST(RegionContexts, TooManyPathsProveNothing) {
    std::string text = "unit a.cpp\nfunc 1:1 f usr=f\n";
    std::string calls;
    const int flags = 10;
    for (int i = 0; i < flags; ++i) {
        const std::string flag = "flag" + std::to_string(i);
        text += "block to=[{" + std::to_string(2 * i + 1) + " condition=" + flag + "} {" +
                std::to_string(2 * i + 2) + " condition=" + flag + " when=false}]\nblock to=[" +
                std::to_string(2 * i + 2) + "]\n";
        calls +=
            "call 2:1 at::autocast::set_enabled args=[constant=true] block=" + std::to_string(2 * i + 1) +
            "\n";
    }
    text += "block leaves\n" + calls + "call 3:1 g callee=g block=" + std::to_string(2 * flags) +
            "\nfunc 5:1 g usr=g\ncall 6:1 at::sum op=sum\n";
    const Program program = linked({text});
    EXPECT_THAT(states(program, "g", 0), HasSubstr("unknown"));
    const Function& g = function_named(program, "g");
    EXPECT_EQ(program.enabled_context(g, g.calls[0]), nullptr);
    EXPECT_THAT(leaks(program), testing::IsEmpty());
}

TEST(RegionContexts, ALongChainIsCutInTheMiddle) {
    std::string text =
        "unit a.cpp\nfunc 1:1 f0\ncall 1:5 at::autocast::set_enabled args=[constant=true]\n"
        "call 1:9 f1 callee=f1\n";
    const int depth = 20000;  // as deep as anyone's stack would not be
    for (int i = 1; i < depth; ++i)
        text += "func " + std::to_string(i + 1) + ":1 f" + std::to_string(i) + "\ncall " +
                std::to_string(i + 1) + ":9 f" + std::to_string(i + 1) + " callee=f" + std::to_string(i + 1) +
                "\n";
    text +=
        "func " + std::to_string(depth + 1) + ":1 f" + std::to_string(depth) + "\ncall 1:1 at::sum op=sum\n";
    const Program program = linked({text});
    const Function& last = function_named(program, "f" + std::to_string(depth));
    const auto chain = chain_of(*program.enabled_context(last, last.calls[0]));
    ASSERT_EQ(chain.size(), 17u);
    EXPECT_EQ(chain.front(), "a.cpp:1:9 f0 calls f1 here");
    EXPECT_THAT(chain[8], HasSubstr("19984 more calls"));
    EXPECT_EQ(chain.back(), "a.cpp:20000:9 f19999 calls f20000 here");
}

}  // namespace
}  // namespace mp::lint
