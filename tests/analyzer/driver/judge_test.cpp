#include "analyzer/driver/judge.hpp"

#include <chrono>

#include <gmock/gmock.h>

#include "analyzer/facts/text.hpp"
#include "kernels/numerics/policy.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Finding finding(std::string_view rule, const char* message) {
    return {.rule = rule, .span = {}, .message = message, .fix = {}, .notes = {}, .function = {}};
}

void late(const RuleContext&, Findings& out) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    out.push_back(finding("MP101", "late"));
}
void at_once(const RuleContext&, Findings& out) {
    out.push_back(finding("MP102", "at once"));
    out.push_back(finding("MP102", "again"));
}

constexpr Rule kLate{.id = "MP101", .name = "late", .confirmed_by = "", .check = late};
constexpr Rule kAtOnce{.id = "MP102", .name = "at-once", .confirmed_by = "", .check = at_once};

std::vector<std::string> said(const std::vector<const Rule*>& rules, int jobs) {
    const Program program = Program::link({});
    const Policies policies = *Policies::load("", {}, "cuda");
    const RuleContext context{.program = program, .policies = policies};
    std::vector<std::string> out;
    for (const Finding& f : judge(rules, context, jobs)) out.push_back(f.message);
    return out;
}

TEST(Judge, TheOrderIsThatOfTheRulesOnAnyNumberOfThreads) {
    for (const int jobs : {-1, 1, 2, 64})
        EXPECT_THAT(said({&kLate, &kAtOnce, &kLate}, jobs), ElementsAre("late", "at once", "again", "late"))
            << jobs;
}

// A file with these functions of one line each.
Unit file_with(const std::string& path, const std::vector<std::string>& functions) {
    std::string text = "unit " + path + " language=python\n";
    for (std::size_t i = 0; i < functions.size(); ++i)
        text += "  func " + std::to_string(i + 1) + ":1 m." + functions[i] + " kind=python\n";
    return *parse_facts(text);
}

void on_each_f(const RuleContext& context, Findings& out) {
    for (const Function* f : context.program.functions()) {
        if (f->name.str() != "m.f") continue;
        Finding found = finding("MP203", "scaled");
        found.severity = Severity::error;
        found.span = f->span;
        found.function = f->name;
        out.push_back(std::move(found));
    }
}
constexpr Rule kOnEachF{.id = "MP203", .name = "on-each-f", .confirmed_by = "", .check = on_each_f};

std::vector<std::string> levels(std::vector<Unit> units) {
    const Program program = Program::link(std::move(units));
    const Policies policies = *Policies::load("", {}, "cuda");
    std::vector<std::string> out;
    for (const Finding& f : judge({&kOnEachF}, {.program = program, .policies = policies}, 1))
        out.push_back(std::string(f.span.file.str()) + " " + std::string(name_of(f.severity)));
    return out;
}

TEST(Judge, WhatACopyHasTooIsANote) {
    const std::vector<std::string> names{"f", "g", "h", "i", "j"};
    EXPECT_THAT(levels({file_with("kaggle/src/train.py", names), file_with("src/train.py", names),
                        file_with("z/train.py", {"f", "g", "h", "i"})}),
                ElementsAre("kaggle/src/train.py note", "src/train.py error", "z/train.py note"));
}

TEST(Judge, FilesOfOneNameThatDifferAreNoCopies) {
    EXPECT_THAT(
        levels({file_with("a/train.py", {"f", "g", "h", "i"}), file_with("b/train.py", {"f", "x", "y", "z"}),
                file_with("c/model.py", {"f", "g", "h", "i"}), file_with("d/run.py", {"f"}),
                file_with("e/run.py", {"f"})}),
        ElementsAre("a/train.py error", "b/train.py error", "c/model.py error", "d/run.py error",
                    "e/run.py error"));
}

TEST(Judge, NoRuleSaysNothing) { EXPECT_THAT(said({}, 4), IsEmpty()); }

}  // namespace
}  // namespace mp::lint
