#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/launch/doctor/report.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

DoctorReport sample() {
    return {
        .sections = {{.name = "torch",
                      .lines = {{.key = "torch", .verdict = Verdict::ok, .value = "2.11.0", .needed = true},
                                {.key = "adapter",
                                 .verdict = Verdict::no,
                                 .value = "none",
                                 .hint = "mp-trace build-adapter",
                                 .needed = true}}},
                     {.name = "cpu",
                      .lines = {{.key = "bf16", .verdict = Verdict::warn, .value = "slow"},
                                {.key = "cores", .value = "8"},
                                {.key = "empty"}}}}};
}

TEST(DoctorReport, TheTextHasOneLinePerFactAndOneForWhatToDo) {
    EXPECT_EQ(to_text(sample()),
              "torch\n"
              "  ok    torch                                  2.11.0\n"
              "  no    adapter                                none\n"
              "        -> mp-trace build-adapter\n"
              "\n"
              "cpu\n"
              "  warn  bf16                                   slow\n"
              "  note  cores                                  8\n"
              "  note  empty\n"
              "\n"
              "torch programs cannot be traced here: adapter\n");
}

TEST(DoctorReport, OnlyANeededLineThatSaysNoMakesItUntraceable) {
    DoctorReport report = sample();
    EXPECT_FALSE(traceable(report));
    report.sections[0].lines[1].needed = false;
    EXPECT_TRUE(traceable(report));
    EXPECT_THAT(to_text(report),
                HasSubstr("nothing that was looked at keeps torch programs from being traced"));
    report.sections[0].lines[1] = {.key = "adapter", .verdict = Verdict::warn, .needed = true};
    EXPECT_TRUE(traceable(report));
}

TEST(DoctorReport, JsonHasItsKeysInOneOrderAndTheSameFacts) {
    const std::string text = to_json(sample());
    EXPECT_THAT(text,
                testing::StartsWith("{\n  \"version\": 1,\n  \"traceable\": false,\n  \"sections\": [\n"));
    EXPECT_THAT(text,
                HasSubstr("\"key\": \"adapter\",\n          \"verdict\": \"no\",\n"
                          "          \"value\": \"none\",\n"
                          "          \"hint\": \"mp-trace build-adapter\",\n          \"needed\": true\n"));
    EXPECT_EQ(to_json(sample()), text);
    EXPECT_EQ(nlohmann::json::parse(text)["sections"][1]["lines"].size(), 3u);
}

TEST(DoctorReport, ForeignTextCannotMoveTheCursorOrBeginALine) {
    const DoctorReport report{.sections = {{.name = "torch",
                                            .lines = {{.key = "torch",
                                                       .verdict = Verdict::no,
                                                       .value = "\x1b[2J\n  ok    torch\x7f \xc2\x9b"
                                                                "1m caf\xc3\xa9",
                                                       .hint = "a\rb"}}}}};
    const std::string text = to_text(report);
    EXPECT_THAT(text, HasSubstr("\\x1b[2J\\x0a  ok    torch\\x7f \\xc2\\x9b1m caf\xc3\xa9\n"));
    EXPECT_THAT(text, HasSubstr("-> a\\x0db\n"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(DoctorReport, JsonStaysValidWhenTextIsNotUtf8) {
    const DoctorReport report{
        .sections = {{.name = "\xff", .lines = {{.key = "\xc3", .value = "\x80\x1b"}}}}};
    EXPECT_FALSE(nlohmann::json::parse(to_json(report), nullptr, false).is_discarded());
}

}  // namespace
}  // namespace mp::launch::doctor
