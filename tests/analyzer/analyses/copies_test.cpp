#include "analyzer/analyses/copies.hpp"

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::string file(std::string_view path, const std::vector<std::string_view>& functions) {
    std::string text = "unit \"" + std::string(path) + "\" language=python\n";
    for (const std::string_view name : functions)
        text += "  func 1:5 train." + std::string(name) + " kind=python\n";
    return text;
}

// Which of the reports, one in train.one of each file, stay above a note.
std::vector<std::string> told(
    const std::vector<std::pair<std::string, std::vector<std::string_view>>>& files) {
    std::vector<Unit> units;
    Findings findings;
    for (const auto& [path, functions] : files) {
        units.push_back(parse_facts(file(path, functions)).value());
        Finding report;
        report.rule = "MP501";
        report.severity = Severity::warning;
        report.span.file = Symbol(path);
        report.span.line = 2;
        report.message = "the same";
        report.function = Symbol("train.one");
        findings.push_back(report);
    }
    const Program program = Program::link(std::move(units));
    weigh_copies(program, findings);
    std::vector<std::string> paths;
    for (const Finding& f : findings)
        if (f.severity > Severity::note) paths.emplace_back(f.span.file.str());
    return paths;
}

const std::vector<std::string_view> kFour{"one", "two", "three", "four"};

TEST(Copies, OfTwoFilesOfOneNameTheFirstIsTold) {
    EXPECT_THAT(told({{"/p/old/train.py", kFour}, {"/p/train.py", kFour}}), ElementsAre("/p/train.py"));
    EXPECT_THAT(told({{"/p/b/train.py", kFour}, {"/p/a/train.py", kFour}}), ElementsAre("/p/a/train.py"));
}

TEST(Copies, AMarkBehindTheNameTellsTheCopy) {
    for (const std::string name : {"train copy.py", "train copy 2.py", "train-Copy1.py", "train_old.py",
                                   "train_backup.py", "train (1).py"})
        EXPECT_THAT(told({{"/p/" + name, kFour}, {"/p/x/train.py", kFour}}), ElementsAre("/p/x/train.py"))
            << name;
}

TEST(Copies, ACopyMayLackWhatCameSince) {
    EXPECT_THAT(told({{"/p/train copy.py", {"one", "two"}}, {"/p/train.py", kFour}}),
                ElementsAre("/p/train.py"));
    EXPECT_THAT(told({{"/p/train copy.py", {"one", "new"}}, {"/p/train.py", kFour}}), ::testing::SizeIs(2));
}

TEST(Copies, OtherFilesAreToldBoth) {
    EXPECT_THAT(told({{"/p/train.py", kFour}, {"/p/trainer.py", kFour}}), ::testing::SizeIs(2));
    EXPECT_THAT(told({{"/p/train2.py", kFour}, {"/p/train3.py", kFour}}), ::testing::SizeIs(2));
    EXPECT_THAT(told({{"/p/a/train.py", kFour}, {"/p/b/train.py", {"one", "five", "six", "seven"}}}),
                ::testing::SizeIs(2));
}

}  // namespace
}  // namespace mp::lint::test
