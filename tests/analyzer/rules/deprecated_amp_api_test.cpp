#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string first_edit(const std::string& call) {
    const auto found = findings("MP120", {python(call)});
    if (found.size() != 1) return "findings: " + std::to_string(found.size());
    if (found[0].edits.empty()) return "no edit";
    const Edit& edit = found[0].edits[0];
    EXPECT_TRUE(found[0].safe_edits);
    return std::to_string(edit.at.column) + "-" + std::to_string(edit.at.end_column) + " " + edit.text;
}

TEST(DeprecatedAmpApi, TheCudaAutocastIsANoteWithAFix) {
    EXPECT_EQ(first_edit("call 3:10-35 torch.cuda.amp.autocast kind=constructor\n"),
              "10-34 torch.amp.autocast('cuda'");
}

TEST(DeprecatedAmpApi, KeywordArgumentsStay) {
    EXPECT_EQ(first_edit("call 3:10-50 torch.cuda.amp.autocast kind=constructor "
                         "args=[{other name=amp keyword=enabled span=3:42-49}]\n"),
              "10-34 torch.amp.autocast('cuda', ");
}

TEST(DeprecatedAmpApi, APositionalFlagGetsItsName) {
    EXPECT_EQ(first_edit("call 3:10-50 torch.cuda.amp.autocast kind=constructor "
                         "args=[{other name=amp span=3:34-37}]\n"),
              "10-34 torch.amp.autocast('cuda', enabled=");
}

TEST(DeprecatedAmpApi, TwoPositionalArgumentsAreNotReordered) {
    EXPECT_EQ(first_edit("call 3:10-60 torch.cuda.amp.autocast kind=constructor "
                         "args=[{other name=amp span=3:34-37} {other name=d span=3:39-40}]\n"),
              "no edit");
}

TEST(DeprecatedAmpApi, AnImportedNameIsNotEdited) {
    EXPECT_EQ(first_edit("call 3:10-20 torch.cuda.amp.autocast kind=constructor\n"), "no edit");
}

TEST(DeprecatedAmpApi, TheNewNamesAreSilent) {
    EXPECT_THAT(lint("MP120", {python("call 3:5 torch.amp.autocast kind=constructor\n"
                                      "call 4:5 torch.autocast kind=constructor\n"
                                      "call 5:5 torch.amp.GradScaler kind=constructor\n"
                                      "call 6:5 torch.cuda.amp.GradScaler.scale kind=method\n")}),
                IsEmpty());
}

TEST(DeprecatedAmpApi, ApexIsNamedToo) {
    EXPECT_EQ(first_edit("call 3:5-30 apex.amp.initialize\n"), "no edit");
}

}  // namespace
}  // namespace mp::lint::test
