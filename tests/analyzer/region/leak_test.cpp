#include <gmock/gmock.h>

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string on(int line, int block = 0) {
    return "  call " + std::to_string(line) +
           ":1 at::autocast::set_enabled args=[constant=true] block=" + std::to_string(block) + "\n";
}
std::string off(int line, int block = 0) {
    return "  call " + std::to_string(line) +
           ":1 at::autocast::set_enabled args=[constant=false] block=" + std::to_string(block) + "\n";
}
std::string op(int line, int block = 0) {
    return "  call " + std::to_string(line) + ":1 at::matmul op=matmul block=" + std::to_string(block) + "\n";
}
std::string call(int line, const std::string& name, int block = 0) {
    return "  call " + std::to_string(line) + ":1 " + name + " callee=" + name +
           " block=" + std::to_string(block) + "\n";
}

const std::string kUnit = "unit a.cpp\n";

// if (<first>) on; work; if (<second>) off;
std::string pair_under(const std::string& first, const std::string& second) {
    const auto branch = [](const std::string& flag, int then, int other) {
        const std::string condition = flag.empty() ? "" : " condition=" + flag;
        return "  block to=[{" + std::to_string(then) + condition + "} {" + std::to_string(other) +
               condition + (flag.empty() ? "" : " when=false") + "}]\n";
    };
    return kUnit + "func 1:1 f\n" + branch(first, 1, 2) + "  block to=[2]\n" + branch(second, 3, 4) +
           "  block to=[4]\n  block leaves\n" + on(2, 1) + op(3, 2) + off(4, 3);
}

TEST(RegionLeaks, APairInOneFunctionIsFine) {
    EXPECT_THAT(leaks(linked({kUnit + "func 1:1 f\n" + on(2) + op(3) + off(4)})), IsEmpty());
}

TEST(RegionLeaks, NeverClosedIsALeak) {
    EXPECT_THAT(leaks(linked({kUnit + "func 1:1 f\n" + on(2) + op(3)})), ElementsAre("f 2"));
}

TEST(RegionLeaks, TheEndOfAScopeWithoutGradientsClosesNoRegion) {
    const auto text = [](const std::string& close) {
        return kUnit + "func 1:1 f\n  call 1:5 at::NoGradGuard::NoGradGuard kind=constructor\n" + on(2) +
               op(3) + close + "  call 5:1 at::NoGradGuard::~NoGradGuard kind=destructor\n";
    };
    EXPECT_THAT(leaks(linked({text("")})), ElementsAre("f 2"));
    EXPECT_THAT(leaks(linked({text(off(4))})), IsEmpty());
}

TEST(RegionLeaks, APairUnderTheSameFlagIsFine) {
    EXPECT_THAT(leaks(linked({pair_under("amp", "amp")})), IsEmpty());
}

// The last statement of a function: the way past it leaves.
TEST(RegionLeaks, APairWhoseSecondHalfIsTheLastStatementIsFine) {
    const auto text = [](const std::string& second) {
        return kUnit + "func 1:1 f\n  block to=[{1 condition=amp} {2 condition=amp when=false}]\n" +
               "  block to=[2]\n  block to=[{3 condition=" + second + "}] leaves\n  block leaves\n" +
               on(2, 1) + op(3, 2) + off(4, 3);
    };
    EXPECT_THAT(leaks(linked({text("amp")})), IsEmpty());
    EXPECT_THAT(leaks(linked({text("fast")})), ElementsAre("f 2"));
}

TEST(RegionLeaks, AbortingIsNoWayOut) {
    const std::string text = kUnit + "func 1:1 f\n  block to=[1 2]\n  block\n  block leaves\n" + on(2) +
                             call(3, "abort", 1) + off(4, 2);
    EXPECT_THAT(leaks(linked({text})), IsEmpty());
}

TEST(RegionLeaks, APairUnderDifferentFlagsLeaksAndSaysWhen) {
    const Program program = linked({pair_under("amp", "fast")});
    ASSERT_THAT(leaks(program), ElementsAre("f 2"));
    ASSERT_EQ(program.leaks()[0].path.size(), 1u);
    EXPECT_EQ(program.leaks()[0].path[0].text, "when amp holds and fast does not hold");
}

TEST(RegionLeaks, UnknownConditionsThatMayAgreeProveNothing) {
    EXPECT_THAT(leaks(linked({pair_under("", "")})), IsEmpty());
}

TEST(RegionLeaks, AnUnconditionalRegionClosedUnderAConditionLeaks) {
    const std::string text =
        kUnit + "func 1:1 f\n  block to=[1 2]\n  block to=[2]\n  block leaves\n" + on(2) + op(3) + off(4, 1);
    EXPECT_THAT(leaks(linked({text})), ElementsAre("f 2"));
}

// on; if (empty) return; off;
TEST(RegionLeaks, AnEarlyReturnLeaks) {
    const auto early = [](int close_early) {
        return kUnit + "func 1:1 f\n  block to=[1 2]\n  block 3:20-26 leaves\n  block leaves\n" + on(2) +
               (close_early ? off(close_early, 1) : "") + op(4, 2) + off(5, 2);
    };
    const Program bad = linked({early(0)});
    ASSERT_THAT(leaks(bad), ElementsAre("f 2"));
    EXPECT_EQ(to_string(bad.leaks()[0].leaves), "a.cpp:3:20");
    EXPECT_THAT(leaks(linked({early(3)})), IsEmpty());
}

TEST(RegionLeaks, AThrowLeaks) {
    const std::string text = kUnit + "func 1:1 f\n  block to=[1 2]\n  block 4:5 leaves\n  block leaves\n" +
                             on(2) + call(4, "std::runtime_error", 1) + off(5, 2);
    EXPECT_THAT(leaks(linked({text})), ElementsAre("f 2"));
}

// for (...) { on; if (skip) continue; off; }
TEST(RegionLeaks, ALoopContinueLeaks) {
    const auto loop = [](bool closes) {
        return kUnit + "func 1:1 f\n  block to=[1 4]\n  block to=[2 3]\n  block to=[0]\n  block to=[0]\n" +
               "  block leaves\n" + on(3, 1) + (closes ? off(4, 2) : "") + op(5, 3) + off(6, 3);
    };
    EXPECT_THAT(leaks(linked({loop(false)})), ElementsAre("f 3"));
    EXPECT_THAT(leaks(linked({loop(true)})), IsEmpty());
}

TEST(RegionLeaks, AMacroPairInALoopUnderOneFlagIsFine) {
    const std::string text =
        kUnit + "func 1:1 f\n  block to=[1 6]\n" +
        "  block to=[{2 condition=cfg.amp} {3 condition=cfg.amp when=false}]\n" + "  block to=[3]\n" +
        "  block to=[{4 condition=cfg.amp} {5 condition=cfg.amp when=false}]\n" +
        "  block to=[5]\n  block to=[0]\n  block leaves\n" + on(3, 2) + op(4, 3) + off(5, 4);
    EXPECT_THAT(leaks(linked({text})), IsEmpty());
}

const std::string kEnter = "func 50:1 enter_amp\n" + on(51);
const std::string kLeave = "func 60:1 leave_amp\n" + off(61);

TEST(RegionLeaks, AHelperIsForItsCallersToClose) {
    const std::string good = "func 1:1 good\n" + call(2, "enter_amp") + op(3) + call(4, "leave_amp");
    const std::string bad = "func 10:1 bad\n" + call(12, "enter_amp") + op(13);
    EXPECT_THAT(leaks(linked({kUnit + good + kEnter + kLeave})), IsEmpty());
    EXPECT_THAT(leaks(linked({kUnit + good + bad + kEnter + kLeave})), ElementsAre("bad 12"));
    EXPECT_THAT(leaks(linked({kUnit + kEnter + kLeave})), IsEmpty()) << "an interface nobody here uses";
}

TEST(RegionLeaks, WorkInTheOpenerIsItsOwnLeakUnlessACallerCloses) {
    const std::string trainer = "func 1:1 train\n" + on(2) + op(3);
    EXPECT_THAT(leaks(linked({kUnit + trainer + "func 10:1 run\n" + call(11, "train")})),
                ElementsAre("train 2"));
    EXPECT_THAT(leaks(linked({kUnit + trainer + "func 10:1 run\n" + call(11, "train") + off(12)})),
                IsEmpty());
}

TEST(RegionLeaks, MainIsProcessWide) {
    EXPECT_THAT(leaks(linked({kUnit + "func 1:1 main\n" + on(2) + op(3)})), ElementsAre("main 2 process"));
}

TEST(RegionLeaks, AFlagArgumentOfAHelperDecidesThere) {
    const std::string helpers =
        "func 50:1 begin params=[name=amp]\n"
        "  block to=[{1 condition=amp} {2 condition=amp when=false}]\n"
        "  block to=[2]\n  block leaves\n" +
        on(51, 1) +
        "func 60:1 end params=[name=amp]\n"
        "  block to=[{1 condition=amp} {2 condition=amp when=false}]\n"
        "  block to=[2]\n  block leaves\n" +
        off(61, 1);
    const auto use = [&](const std::string& a, const std::string& b) {
        return kUnit + helpers +
               "func 1:1 f params=[name=use name=other]\n  call 2:1 begin callee=begin args=[" + a + "]\n" +
               op(3) + "  call 4:1 end callee=end args=[" + b + "]\n";
    };
    EXPECT_THAT(leaks(linked({use("constant=true", "constant=true")})), IsEmpty());
    EXPECT_THAT(leaks(linked({use("constant=false", "constant=false")})), IsEmpty());
    EXPECT_THAT(leaks(linked({use("constant=true", "constant=false")})), ElementsAre("f 2"));
    EXPECT_THAT(leaks(linked({use("{param=0 text=use}", "{param=0 text=use}")})), IsEmpty());
    EXPECT_THAT(leaks(linked({use("{param=0 text=use}", "{param=1 text=other}")})), ElementsAre("f 2"));
}

const std::string kScope = R"(
func 70:1 Scope::Scope parent_class=Scope usr=s+
  call 71:1 at::autocast::is_enabled
  call 72:1 at::autocast::set_enabled args=[constant=true]
func 73:1 Scope::end parent_class=Scope usr=s.end
  block to=[{1 condition=active_} {2 condition=active_ when=false}]
  block to=[2]
  block leaves
  call 74:1 at::autocast::set_enabled args=[name=before_] block=1
func 75:1 Scope::~Scope parent_class=Scope usr=s-
  call 76:1 Scope::end kind=method callee=s.end
)";

TEST(RegionLeaks, AGuardThatCanEndEarlyIsTrusted) {
    const std::string use =
        "func 1:1 f\n"
        "  call 2:1 Scope::Scope kind=constructor callee=s+\n" +
        op(3) + "  call 4:1 Scope::end kind=method callee=s.end args=[name=scope]\n" + op(5) +
        "  call 6:1 Scope::~Scope kind=destructor callee=s-\n";
    const Program program = linked({kUnit + use + kScope});
    EXPECT_THAT(leaks(program), IsEmpty());
    EXPECT_EQ(states(program, "f", 1), "on:fp16");
}

TEST(RegionLeaks, AGuardOnTheHeapIsNotJudged) {
    const std::string use = "func 1:1 f\n  call 2:1 Scope::Scope kind=constructor callee=s+\n" + op(3);
    EXPECT_THAT(leaks(linked({kUnit + use + kScope})), IsEmpty());
}

TEST(RegionLeaks, AnObjectThatNeverClosesIsNoGuard) {
    const std::string text = kUnit + "func 1:1 f\n  call 2:1 On::On kind=constructor callee=on+\n" + op(3) +
                             "func 9:1 On::On usr=on+ parent_class=On\n" + on(10);
    EXPECT_THAT(leaks(linked({text})), ElementsAre("f 2"));
}

TEST(RegionLeaks, BeginAndEndOfOneObjectArePaired) {
    const std::string methods =
        "func 9:1 Amp::begin usr=b parent_class=Amp\n  call 10:1 at::autocast::is_enabled\n" + on(11) +
        "func 12:1 Amp::end usr=e parent_class=Amp\n"
        "  call 13:1 at::autocast::set_enabled args=[name=before_]\n";
    const std::string begin = "  call 2:1 Amp::begin kind=method callee=b args=[name=amp]\n";
    const std::string end = "  call 4:1 Amp::end kind=method callee=e args=[name=amp]\n";
    EXPECT_THAT(leaks(linked({kUnit + "func 1:1 f\n" + begin + op(3) + end + methods})), IsEmpty());
    EXPECT_THAT(leaks(linked({kUnit + "func 1:1 f\n" + begin + op(3) + methods})), ElementsAre("f 2"));
}

TEST(RegionLeaks, AnInterfaceOfOneObjectMayDoMoreThanSwitch) {
    const std::string begin = "func 9:1 Amp::begin usr=b parent_class=Amp\n" + on(10) + op(11);
    const std::string end = "func 12:1 Amp::end usr=e parent_class=Amp\n" + off(13) + op(14);
    EXPECT_THAT(leaks(linked({kUnit + begin + end})), IsEmpty());
    EXPECT_THAT(leaks(linked({kUnit + begin})), ElementsAre("Amp::begin 10"));
}

TEST(RegionLeaks, AGuardHeldAsAMemberIsNotJudged) {
    const std::string text = kUnit + "func 1:1 f\n  call 2:1 Trainer::Trainer kind=constructor callee=t+\n" +
                             op(3) +
                             "func 5:1 Trainer::Trainer usr=t+ parent_class=Trainer\n"
                             "  call 6:1 Scope::Scope kind=constructor callee=s+\n";
    const Program program = linked({text + kScope});
    EXPECT_THAT(leaks(program), IsEmpty());
    EXPECT_EQ(states(program, "f", 1), "unknown");
}

TEST(RegionLeaks, AThreadOpensForItselfOnly) {
    const std::string text = kUnit +
                             "func 1:1 f\n  call 2:1 std::thread::thread kind=constructor lambdas=[l]\n" +
                             op(3) + "func 5:1 l kind=lambda\n" + on(6) + op(7);
    const Program program = linked({text});
    EXPECT_THAT(leaks(program), ElementsAre("l 6"));
    EXPECT_EQ(states(program, "f", 1), "off");
}

TEST(RegionLeaks, RestoringAConstantMattersOnlyWhenNested) {
    const std::string inner = "func 10:1 inner\n" + on(11) + op(12) + off(13);
    const std::string plain = "func 1:1 outer\n" + call(2, "inner");
    const std::string nested = "func 1:1 outer\n" + on(2) + call(3, "inner") + op(4) + off(5);
    EXPECT_THAT(leaks(linked({kUnit + plain + inner})), IsEmpty());
    const Program program = linked({kUnit + nested + inner});
    ASSERT_THAT(leaks(program), ElementsAre("inner 11 constant"));
    EXPECT_EQ(program.leaks()[0].leaves.line, 13u);
}

TEST(RegionLeaks, ReopeningWhatTheFunctionClosedIsFine) {
    EXPECT_THAT(leaks(linked({kUnit + "func 1:1 f\n" + off(2) + op(3) + on(4)})), IsEmpty());
}

TEST(RegionLeaks, ALambdaThatClosesWhatItOpensIsFine) {
    const std::string text = kUnit + "func 1:1 f\n  call 2:1 std::for_each lambdas=[l]\n" + op(3) +
                             "func 5:1 l kind=lambda\n" + on(6) + op(7) + off(8);
    EXPECT_THAT(leaks(linked({text})), IsEmpty());
}

}  // namespace
}  // namespace mp::lint
