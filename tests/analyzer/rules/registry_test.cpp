#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/analyzer/rules/rule_test.hpp"
#include "tests/fakes/source_dir.hpp"

namespace mp::lint::test {
namespace {

const std::filesystem::path kRoot = mp_source_dir();

std::string file_stem(std::string_view name) {
    std::string stem(name);
    std::ranges::replace(stem, '-', '_');
    return stem;
}

std::string read(const std::filesystem::path& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace

TEST(Registry, IsSortedByIdAndUnique) {
    const auto rules = all_rules();
    for (std::size_t i = 1; i < rules.size(); ++i) EXPECT_LT(rules[i - 1]->id, rules[i]->id);
    std::set<std::string_view> names;
    for (const Rule* rule : rules) EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
}

TEST(Registry, EveryRuleHasItsFileAndTest) {
    for (const Rule* rule : all_rules()) {
        const std::string stem = file_stem(rule->name);
        EXPECT_THAT(
            read(kRoot / "analyzer/rules" / (stem + ".cpp")),
            ::testing::StartsWith("// " + std::string(rule->id) + " " + std::string(rule->name) + "\n"));
        EXPECT_TRUE(std::filesystem::exists(kRoot / "tests/analyzer/rules" / (stem + "_test.cpp"))) << stem;
    }
}

TEST(Registry, EveryHeadCommentHasItsFiveParts) {
    for (const Rule* rule : all_rules()) {
        const std::string text = read(kRoot / "analyzer/rules" / (file_stem(rule->name) + ".cpp"));
        for (const std::string part : {"// What ", "// Why ", "// Fix ", "// Silent ", "// Tests "})
            EXPECT_THAT(text, HasSubstr("\n" + part)) << rule->id;
    }
}

TEST(Registry, EveryRuleHasAPageWithEverySection) {
    for (const Rule* rule : all_rules()) {
        const std::string page(rule_page(rule->id));
        EXPECT_THAT(
            page, ::testing::StartsWith("# " + std::string(rule->id) + " " + std::string(rule->name) + "\n"));
        for (const std::string section : {"What", "Why", "Bad", "Good", "Not a bug", "Fix", "Suppress"})
            EXPECT_THAT(page, HasSubstr("\n## " + section + "\n")) << rule->id;
        EXPECT_THAT(page, HasSubstr(rule->on_by_default ? "on by" : "off by")) << rule->id;
        EXPECT_THAT(page, HasSubstr(" expect: " + std::string(rule->id))) << rule->id;
    }
}

TEST(Registry, EveryPageHasARule) {
    for (const auto& entry : std::filesystem::directory_iterator(kRoot / "testdata/lint"))
        EXPECT_NE(find_rule(entry.path().stem().string()), nullptr) << entry.path();
}

TEST(Registry, RulesAreFoundByIdAndByName) {
    ASSERT_NE(find_rule("MP401"), nullptr);
    EXPECT_EQ(find_rule("MP401"), find_rule("half-accumulator"));
    EXPECT_EQ(find_rule("MP999"), nullptr);
    EXPECT_EQ(find_rule(""), nullptr);
    EXPECT_TRUE(rule_page("MP999").empty());
}

TEST(Registry, EveryRuleDeclaresItsTriggers) {
    for (const Rule* rule : all_rules()) {
        const Triggers& triggers = rule->triggers;
        EXPECT_EQ(triggers.groups().empty(), triggers.is_cpp_only()) << rule->id;
        for (const TriggerWords group : triggers.groups())
            for (const std::string_view word : group)
                EXPECT_GE(word.size() - word.starts_with('<') - word.ends_with('>'), 2u)
                    << rule->id << " " << word;
        const bool page_has_python = rule_page(rule->id).find("\n```python") != std::string_view::npos;
        EXPECT_FALSE(triggers.is_cpp_only() && page_has_python) << rule->id;
    }
}

TEST(Registry, EmptyProgramGivesNothing) {
    for (const Rule* rule : all_rules()) EXPECT_THAT(lint(rule->id, {}), IsEmpty()) << rule->id;
}

}  // namespace mp::lint::test
