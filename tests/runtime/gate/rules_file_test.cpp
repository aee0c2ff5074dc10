#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/gate/dates.hpp"
#include "runtime/gate/gate.hpp"

namespace mp::trace {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

Error error_of(std::string_view text) {
    const auto rules = parse_rules(text, "mp-gate.toml");
    return rules ? Error{"it was read", ""} : rules.error();
}

TEST(RuleFile, EverythingItMayHold) {
    const auto rules = parse_rules(R"(
disable = ["MPT031"]
policies = ["fsdp:param=bf16,reduce=fp32"]

[limits]
loc-fail-phi = 3
skips-per-1000 = 2.5
consecutive-skips = 5
absorbed = 0.2

[suppressions]
require-expiry = true

[[suppress]]
rule = "MPT010"
layer = "blocks.*"
op = "aten::mm"
phase = "backward"
reason = "waits for a newer kernel"
expires = 2027-01-31

[[suppress]]
rule = "*"
layer = "head"
reason = "being replaced"
expires = "2027-02-28"
)",
                                   "mp-gate.toml");
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_EQ(rules->limits.loc_fail_phi, 3);
    EXPECT_EQ(rules->limits.skips_per_1000, 2.5);
    EXPECT_EQ(rules->limits.consecutive_skips, 5);
    EXPECT_EQ(rules->limits.absorbed, 0.2);
    EXPECT_EQ(rules->limits.loc_warn_phi, Limits{}.loc_warn_phi);
    EXPECT_EQ(rules->disabled, std::vector<std::string>{"MPT031"});
    EXPECT_EQ(rules->policies.size(), 1u);
    ASSERT_EQ(rules->suppressions.size(), 2u);
    EXPECT_EQ(rules->suppressions[0].expires, "2027-01-31");
    EXPECT_EQ(rules->suppressions[0].phase, "backward");
    EXPECT_EQ(rules->suppressions[0].line, 14);
    EXPECT_EQ(rules->suppressions[0].file, "mp-gate.toml");
    EXPECT_EQ(rules->suppressions[1].expires, "2027-02-28");
    EXPECT_EQ(rules->suppressions[1].op, "*");
}

TEST(RuleFile, AnEmptyOneIsTheDefaults) {
    const auto rules = parse_rules("", "mp-gate.toml");
    ASSERT_TRUE(rules);
    EXPECT_EQ(rules->limits.loc_fail_phi, 2);
    EXPECT_TRUE(rules->suppressions.empty());
}

TEST(RuleFile, ErrorsSayWhereAndWhatIsAllowed) {
    EXPECT_EQ(error_of("\n[limits]\nloc-wran-phi = 2\n").message,
              "mp-gate.toml:3: unknown key \"limits.loc-wran-phi\"");
    EXPECT_EQ(error_of("[limits]\nloc-wran-phi = 2\n").hint, "did you mean 'loc-warn-phi'?");
    EXPECT_THAT(error_of("[zzzzzzzz]\n").hint, HasSubstr("limits, disable"));
    EXPECT_EQ(error_of("disable = [\"MPT01\"]").hint, "did you mean 'MPT001'?");
    EXPECT_THAT(error_of("[[suppress]]\nrule = \"MPT010\"\n").message, HasSubstr("needs a reason"));
    EXPECT_THAT(
        error_of("[[suppress]]\nrule = \"MPT010\"\nreason = \"x\"\n[suppressions]\nrequire-expiry = true")
            .message,
        HasSubstr("wants an expiry"));
    EXPECT_THAT(error_of("[limits]\nabsorbed = 2").message, HasSubstr("a share from 0 to 1"));
    EXPECT_THAT(error_of("policies = [\"fsdp:parm=bf16\"]").message, HasSubstr("mp-gate.toml:1: policy"));
}

std::string nested(std::size_t depth) { return "x = " + std::string(depth, '[') + std::string(depth, ']'); }

// Forty files that no honest user writes. Each is an error that is one short line without control characters.
TEST(RuleFile, HostileFiles) {
    const std::string esc = "\x1b]0;owned\x07";
    const std::string suppress = "[[suppress]]\nrule = \"MPT010\"\nreason = \"x\"\n";
    const std::vector<std::string> files = {"[limits",
                                            "[limits]\nabsorbed =",
                                            "[[suppress]]\nrule = \"MPT010",
                                            "disable = [\"MPT010\"",
                                            "\"",
                                            "=",
                                            "[",
                                            std::string(1 << 20, 'k') + " = 1",
                                            "[limits]\n" + std::string(1 << 20, 'k') + " = 1",
                                            "[" + std::string(1 << 18, 'a') + "]",
                                            "a." + std::string(1 << 16, 'b') + " = 1",
                                            nested(5000),
                                            nested(200),
                                            "x" + std::string(3000, '.') + " = 1",
                                            "limits = 1",
                                            "limits = [1]",
                                            "disable = \"MPT010\"",
                                            "disable = [1]",
                                            "disable = [[\"MPT010\"]]",
                                            "policies = {a = 1}",
                                            "suppress = 1",
                                            "suppress = [1]",
                                            "suppress = {rule = \"MPT010\"}",
                                            "[limits]\nabsorbed = nan",
                                            "[limits]\nabsorbed = inf",
                                            "[limits]\nabsorbed = -0.1",
                                            "[limits]\nabsorbed = \"0.1\"",
                                            "[limits]\nconsecutive-skips = 1.5",
                                            "[limits]\nconsecutive-skips = 99999999999",
                                            "[limits]\nloc-fail-phi = 1e308",
                                            "[limits]\nloc-warn-phi = 5",
                                            "[limits]\nstagnation-warn = 0.9",
                                            "[limits]\namplified-warn = 0.5",
                                            suppress + "expires = \"2027-02-30\"",
                                            suppress + "expires = \"soon\"",
                                            suppress + "expires = 2027-02-28T10:00:00Z",
                                            suppress + "expires = 99999-01-01",
                                            suppress + "expires = \"2027-1-1\"",
                                            suppress + "layer = \"" + std::string(300, 'a') + "\"",
                                            suppress + "layer = \"" + std::string(30, '*') + "\"",
                                            "[[suppress]]\nrule = \"MPT010\"\nreason = \" \"",
                                            "[[suppress]]\nreason = \"x\"",
                                            "\"" + esc + "\" = 1",
                                            "disable = [\"" + esc + "\"]",
                                            "\"\\u001b[31m\" = 1",
                                            "disable = [\"\\u001b[31m\"]",
                                            std::string("a\0b = 1", 7),
                                            "\xff\xfe = 1",
                                            "a = 1\na = 2",
                                            "[limits]\n[limits]\n",
                                            "policies = [\"" + std::string(5000, 'p') + "\"]",
                                            "policies = [\"\\u0000\"]"};
    EXPECT_GE(files.size(), 40u);
    for (const std::string& text : files) {
        const auto rules = parse_rules(text, "mp-gate.toml");
        ASSERT_FALSE(rules) << text.substr(0, 60);
        const Error& error = rules.error();
        EXPECT_THAT(error.message, testing::StartsWith("mp-gate.toml:")) << text.substr(0, 60);
        for (const std::string& said : {error.message, error.hint}) {
            EXPECT_LT(said.size(), 800u) << text.substr(0, 60);
            for (const char c : said) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text.substr(0, 60);
        }
    }
}

TEST(RuleFile, ItsNameIsEscaped) {
    EXPECT_THAT(parse_rules("x = 1", "a\x1b[31m.toml").error().message,
                testing::StartsWith("a\\x1b[31m.toml:1:"));
}

TEST(RuleFile, FilesThatAreNone) {
    const fs::path folder = fs::temp_directory_path() / ("mp-rules-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    EXPECT_FALSE(read_rules(folder.string()));
    EXPECT_FALSE(read_rules((folder / "none.toml").string()));
    EXPECT_FALSE(read_rules("/dev/zero"));
    std::ofstream(folder / "big.toml") << std::string((1 << 20) + 1, '#');
    EXPECT_THAT(read_rules((folder / "big.toml").string()).error().message, HasSubstr("1 MiB"));
    std::ofstream(folder / "good.toml") << "disable = [\"MPT031\"]\n";
    EXPECT_TRUE(read_rules((folder / "good.toml").string()));
    fs::remove_all(folder);
}

TEST(Dates, AreDaysThatExist) {
    for (const char* good : {"2027-01-31", "2028-02-29", "1970-01-01"}) EXPECT_TRUE(is_date(good)) << good;
    for (const char* bad :
         {"", "2027-02-29", "2027-13-01", "2027-00-10", "2027-01-32", "27-01-31", "2027/01/31", "2027-01-3x"})
        EXPECT_FALSE(is_date(bad)) << bad;
    EXPECT_EQ(date_text(2027, 1, 5), "2027-01-05");
}

}  // namespace
}  // namespace mp::trace
