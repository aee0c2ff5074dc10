#include "kernels/base/cli/command_line.hpp"

#include <gtest/gtest.h>

namespace mp::cli {
namespace {

constexpr Option kOptions[] = {{"output,o", "FILE", "where it goes"},
                               {"lint", "FILE", "may be given again", true},
                               {"strict", nullptr, "a switch"},
                               {"hidden", nullptr, nullptr}};

Command command() {
    return {.heading = "Options of gate",
            .options = kOptions,
            .help_command = "mp gate --help",
            .prefix = "gate: "};
}

TEST(CommandLine, ValuesListsSwitchesAndWordsAreKeptApart) {
    const auto values = parse(command(), {"run", "-o", "x", "--lint=a", "--strict", "--lint", "b", "more"});
    ASSERT_TRUE(values) << values.error().message;
    EXPECT_EQ(values->text("output"), "x");
    EXPECT_EQ(values->list("lint"), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(values->has("strict"));
    EXPECT_TRUE(parse(command(), {"--hidden"})->has("hidden")) << "accepted, though not in the help";
    EXPECT_EQ(values->words(), (std::vector<std::string>{"run", "more"}));
    const auto none = parse(command(), {});
    ASSERT_TRUE(none);
    EXPECT_FALSE(none->has("strict") || none->has("output"));
    EXPECT_EQ(none->text("output"), "");
    EXPECT_TRUE(none->list("lint").empty() && none->words().empty());
}

TEST(CommandLine, AReportGoesToItsFileOrToStandardOutput) {
    static constexpr std::string_view kFormats[] = {"text", "json", "sarif"};
    const auto of = [](const std::vector<std::string>& values) {
        return destinations("--output", values, kFormats);
    };
    const auto both = of({"json", "sarif=a=b.sarif"});
    ASSERT_TRUE(both) << both.error().message;
    EXPECT_EQ((*both)[0].format, 1u);
    EXPECT_EQ((*both)[0].file, "");
    EXPECT_EQ((*both)[1].format, 2u);
    EXPECT_EQ((*both)[1].file, "a=b.sarif");
    EXPECT_EQ(of({"text=-"})->at(0).file, "") << "standard output";
    ASSERT_EQ(of({})->size(), 1u);
    EXPECT_EQ(of({})->at(0).format, 0u);
    EXPECT_EQ(of({"sarf"}).error().message, "--output: 'sarf' is none of text, json, sarif");
    EXPECT_EQ(of({"sarf"}).error().hint, "did you mean 'sarif'?");
    EXPECT_EQ(of({"sarif="}).error().message, "--output: 'sarif=' names no file");
    EXPECT_EQ(of({"sarif="}).error().hint, "--output sarif=FILE");
    EXPECT_EQ(of({"text", "json=-"}).error().message, "--output: two reports go to standard output");
    EXPECT_EQ(of({"text=a", "json=a"}).error().message, "--output: two reports go to 'a'");
}

TEST(CommandLine, AnUnknownOptionIsAnErrorWithTheNearestName) {
    const auto near = parse(command(), {"--stict"});
    ASSERT_FALSE(near);
    EXPECT_EQ(near.error().message, "gate: unknown option --stict");
    EXPECT_EQ(near.error().hint, "did you mean '--strict'?");
    EXPECT_EQ(parse(command(), {"--xyzzy"}).error().hint, "'mp gate --help' lists the options");
    EXPECT_FALSE(parse(command(), {"--stri"})) << "an abbreviation";
    EXPECT_FALSE(parse(command(), {"-o", "x", "-o", "y"})) << "given twice";
    EXPECT_FALSE(parse(command(), {"--output"})) << "without its value";
    Command without = command();
    without.takes_words = false;
    EXPECT_FALSE(parse(without, {"word"}));
}

TEST(CommandLine, HelpIsTheTable) {
    EXPECT_EQ(help_of(command()),
              "Options of gate:\n"
              "  -o [ --output ] FILE  where it goes\n"
              "  --lint FILE           may be given again\n"
              "  --strict              a switch\n");
}

TEST(CommandLine, TheWordBehindAnOptionMayBeItsValue) {
    EXPECT_TRUE(takes_next_word(kOptions, "-o"));
    EXPECT_TRUE(takes_next_word(kOptions, "--lint"));
    EXPECT_FALSE(takes_next_word(kOptions, "--lint=a"));
    EXPECT_FALSE(takes_next_word(kOptions, "--strict"));
    EXPECT_FALSE(takes_next_word(kOptions, "-x"));
}

TEST(CommandLine, NumbersHaveARangeAndWordsAChoice) {
    EXPECT_EQ(*number<int>("-j", "8", 1, 1024), 8);
    EXPECT_EQ(number<int>("-j", "0", 1, 1024).error().message, "-j: '0' is not a number from 1 to 1024");
    EXPECT_FALSE(number<int>("-j", "8x", 1, 1024));
    EXPECT_FALSE(number<int>("-j", "", 1, 1024));
    constexpr std::string_view kColors[] = {"auto", "always"};
    EXPECT_TRUE(one_of("--color", "auto", kColors));
    const Status wrong = one_of("--color", "alwys", kColors);
    EXPECT_EQ(wrong.error().message, "--color: 'alwys' is none of auto, always");
    EXPECT_EQ(wrong.error().hint, "did you mean 'always'?");
    EXPECT_EQ(split_commas({"a,,b", "c"}), (std::vector<std::string>{"a", "b", "c"}));
}

}  // namespace
}  // namespace mp::cli
