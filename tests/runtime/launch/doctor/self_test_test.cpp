#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fake_machine.hpp"
#include "runtime/launch/doctor/self_test.hpp"
#include "runtime/trace/recorder.hpp"
#include "scratch.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;

// One step's record of one operation whose relative L2 error is `error`.
trace::OpRecord op(const std::string& name, double error) {
    trace::OpRecord record;
    record.op = name;
    record.dtype = DType::bf16;
    record.elements = record.loc_compared = 65536;
    record.loc_squares = 65536;
    record.loc_error_squares = error * error * record.loc_squares;
    return record;
}

trace::StepRecord step_of(std::vector<trace::OpRecord> ops) {
    trace::StepRecord step;
    step.step = Step{0};
    step.ops = std::move(ops);
    return step;
}

const std::map<std::string, double> kFloors = {
    {"matmul", 1.6575e-3}, {"gelu", 1.6763e-3}, {"dropout", 1.6410e-3}};

std::vector<trace::OpRecord> right() {
    return {op("aten::mm", 1.6578e-3), op("aten::gelu", 1.6760e-3), op("aten::mul", 1.6411e-3),
            op("aten::native_layer_norm", 0)};
}

SelfTestFacts facts_of(std::vector<trace::OpRecord> ops) {
    trace::Run run;
    run.recordings.emplace_back();
    for (trace::OpRecord& one : ops) run.recordings.back().steps.push_back(step_of({std::move(one)}));
    return {.same_results = true, .floors = kFloors, .ops = local_ops(run)};
}

std::size_t count(const Section& section, Verdict verdict) {
    return static_cast<std::size_t>(std::count_if(section.lines.begin(), section.lines.end(),
                                                  [&](const Line& line) { return line.verdict == verdict; }));
}

TEST(SelfTest, ARightRecordingPasses) {
    const Section section = self_test_section(facts_of(right()));
    EXPECT_EQ(section.lines.size(), 5u);
    EXPECT_EQ(count(section, Verdict::ok), 5u);
    EXPECT_THAT(line_of(section, "bf16 matmul (aten::mm)").value, HasSubstr("introduces 1.658e-03"));
}

TEST(SelfTest, EachOperationAloneCanFailIt) {
    for (std::size_t i = 0; i < right().size(); ++i) {
        for (const double wrong :
             {0.0, 1.59e-3, 1.71e-3, 2.3e-3, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
            if (i == 3 && wrong == 0) continue;
            std::vector<trace::OpRecord> ops = right();
            ops[i] = op(ops[i].op, wrong);
            const Section section = self_test_section(facts_of(std::move(ops)));
            EXPECT_EQ(count(section, Verdict::no), 1u) << i << " " << wrong;
            EXPECT_FALSE(traceable({.sections = {section}}));
        }
    }
}

TEST(SelfTest, InsideTheBandButFarFromItsOwnFloorIsWrong) {
    std::vector<trace::OpRecord> ops = right();
    ops[0] = op("aten::mm", 1.69e-3);
    EXPECT_EQ(count(self_test_section(facts_of(std::move(ops))), Verdict::no), 1u);
    // A floor that is not the floor of bf16 is wrong too: then the script's own numbers are wrong.
    ops = right();
    ops[0] = op("aten::mm", 1.75e-3);
    SelfTestFacts beside = facts_of(std::move(ops));
    beside.floors["matmul"] = 1.75e-3;
    EXPECT_EQ(count(self_test_section(beside), Verdict::no), 1u);
    SelfTestFacts unknown = facts_of(right());
    unknown.floors.clear();
    EXPECT_EQ(count(self_test_section(unknown), Verdict::no), 3u);
}

TEST(SelfTest, AKernelThatRoundsMoreThanOnceIsExpectedToShowIt) {
    std::vector<trace::OpRecord> ops = right();
    ops[0] = op("aten::mm", 1.87e-2);
    SelfTestFacts facts = facts_of(std::move(ops));
    facts.kernels["matmul"] = 1.872e-2;
    EXPECT_EQ(count(self_test_section(facts), Verdict::ok), 5u);
    facts.kernels["matmul"] = 1.80e-2;
    EXPECT_EQ(count(self_test_section(facts), Verdict::no), 1u);
}

TEST(SelfTest, AnOperationThatWasNotRecordedOrIsNotFiniteFails) {
    std::vector<trace::OpRecord> ops = right();
    ops.erase(ops.begin());
    EXPECT_EQ(line_of(self_test_section(facts_of(ops)), "bf16 matmul").value, "was not recorded");
    ops = right();
    ops[1].loc_compared -= 2;
    EXPECT_THAT(line_of(self_test_section(facts_of(ops)), "bf16 gelu (aten::gelu)").value,
                HasSubstr("2 values are not finite"));
    EXPECT_EQ(count(self_test_section({}), Verdict::no), 5u);
}

TEST(SelfTest, ResultsThatTracingChangedFailIt) {
    SelfTestFacts facts = facts_of(right());
    facts.same_results = false;
    EXPECT_EQ(line_of(self_test_section(facts), "results").verdict, Verdict::no);
}

TEST(SelfTest, StepsProcessesAndOverloadsAddUp) {
    trace::Run run;
    run.recordings.resize(2);
    run.recordings[0].steps = {step_of({op("aten::mul.Tensor", 1e-3)}),
                               step_of({op("aten::mul.Scalar", 1e-3)})};
    run.recordings[1].steps = {step_of({op("aten::mul", 1e-3)})};
    trace::TensorRecord other;
    other.name = "weight";
    other.elements = 1;
    run.recordings[1].steps[0].tensors.push_back(other);
    const auto ops = local_ops(run);
    ASSERT_EQ(ops.size(), 1u);
    EXPECT_EQ(ops.at("aten::mul").elements, 3 * 65536u);
    EXPECT_NEAR(ops.at("aten::mul").error_squares, 3 * 65536e-6, 1e-9);
}

TEST(SelfTest, TheScriptsOwnLinesAreReadAndOthersAreNot) {
    const char* const out =
        "floor matmul 0.00166\nfloor gelu x\nfloor dropout -1\nfloors y 2\n floor z 1\nfloor\n"
        "kernel gelu 0.002\ndigest abc\n";
    EXPECT_EQ(errors_of(out, "floor"), (std::map<std::string, double>{{"matmul", 0.00166}}));
    EXPECT_EQ(errors_of(out, "kernel"), (std::map<std::string, double>{{"gelu", 0.002}}));
    EXPECT_EQ(digest_of(out), "abc");
    EXPECT_EQ(digest_of("digest\n"), "");
}

// A fake `mp-trace run --mode local -o DIR -- python script`: leaves a recording made here.
class SelfTestRun : public Scratch {
protected:
    std::string recording(const std::vector<trace::OpRecord>& ops) const {
        auto recorder = trace::Recorder::open(directory_, "r0.mpt", {});
        EXPECT_TRUE(recorder);
        (*recorder)->process({});
        (*recorder)->step(step_of(ops));
        EXPECT_TRUE((*recorder)->flush(10'000));
        return directory_ + "/r0.mpt";
    }
    std::string tool(const std::string& file) const {
        return program("mp-trace", R"(
[ "$1 $2 $3 $4 $6" = "run --mode local -o --" ] || exit 125
mkdir "$5" && cp ")" + file + R"(" "$5/" && shift 6 && exec "$@")");
    }
    std::string python(const std::string& digest_when_traced = "same") const {
        return program("python", "[ -f \"$1\" ] || exit 2\n[ \"$2\" = floors ] || { echo digest " +
                                     digest_when_traced + "; exit 0; }\n" +
                                     "echo floor matmul 1.6575e-3\necho floor gelu 1.6763e-3\n"
                                     "echo floor dropout 1.6410e-3\necho digest same\n");
    }
};

TEST_F(SelfTestRun, TracesItsScriptAndJudgesTheRecording) {
    const Section good = self_test_section(probe_self_test(tool(recording(right())), python()));
    EXPECT_EQ(count(good, Verdict::ok), 5u) << to_text({.sections = {good}});
}

TEST_F(SelfTestRun, SeesThatTracingChangedAResult) {
    const SelfTestFacts facts = probe_self_test(tool(recording(right())), python("other"));
    EXPECT_EQ(facts.fault, "");
    EXPECT_FALSE(facts.same_results);
}

TEST_F(SelfTestRun, SaysWhatFailedWhenThereIsNoRecording) {
    const auto fault = [&](const std::string& with_tool, const std::string& with_python) {
        return probe_self_test(with_tool, with_python).fault;
    };
    const std::string silent = program("silent", "shift 6; echo 'mp-trace: no adapter' >&2; exec \"$@\"");
    EXPECT_THAT(fault(silent, python()), HasSubstr("there is no recording"));
    EXPECT_EQ(probe_self_test(silent, python()).hint, "no adapter");
    EXPECT_THAT(fault(program("bad", "exit 125"), python()),
                HasSubstr("the traced run exited with status 125"));
    EXPECT_THAT(fault(silent, program("none", "exit 1")), HasSubstr("the untraced run exited with status 1"));
    EXPECT_THAT(fault(directory_ + "/missing", python()), HasSubstr("could not be started"));
    const Section section = self_test_section(probe_self_test(silent, python()));
    EXPECT_FALSE(traceable({.sections = {section}}));
}

}  // namespace
}  // namespace mp::launch::doctor
