#include "analyzer/config/config.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Rule kSum{.id = "MP401", .name = "half-accumulator", .confirmed_by = ""};
constexpr const Rule* kAll[] = {&kSum};

Result<Config> parse(std::string_view text) { return parse_config(text, "dir/mp-lint.toml", kAll); }

std::string error_of(std::string_view text) {
    const Result<Config> config = parse(text);
    return config ? "no error" : config.error().message + " | " + config.error().hint;
}

TEST(Config, EveryKeyIsRead) {
    const Result<Config> c = parse(R"(
select = ["MP4"]
ignore = ["MP401"]
exclude = ["third_party/**"]
cuda = "stubs"
torch = "2.4"
device = "hpu"
assume = "bf16"
policies = ["ops.txt"]
profile = "inference"
extra-args = ["-DX"]
timeout = 2.5
jobs = 3
[regions]
guards = ["G"]
enter = ["on"]
leave = ["off"]
functions = ["f"]
dtype = "bf16"
[hmp]
bf16 = "ops_bf16.txt"
fp32 = "ops_fp32.txt"
[per-file-ignores]
"tests/**" = ["half-accumulator"]
)");
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_THAT(c->select, ElementsAre("MP4"));
    EXPECT_THAT(c->ignore, ElementsAre("MP401"));
    EXPECT_THAT(c->exclude, ElementsAre("third_party/**"));
    EXPECT_EQ(c->cuda + c->torch + c->profile, "stubs2.4inference");
    EXPECT_EQ(c->device, "hpu");
    EXPECT_EQ(c->assume, DType::bf16);
    EXPECT_THAT(c->policies, ElementsAre("ops.txt"));
    EXPECT_THAT(c->extra_args, ElementsAre("-DX"));
    EXPECT_EQ(c->timeout, 2.5);
    EXPECT_EQ(c->jobs, 3);
    EXPECT_THAT(c->regions.guards, ElementsAre("G"));
    EXPECT_THAT(c->regions.enter, ElementsAre("on"));
    EXPECT_THAT(c->regions.leave, ElementsAre("off"));
    EXPECT_THAT(c->regions.functions, ElementsAre("f"));
    EXPECT_EQ(c->regions.dtype, DType::bf16);
    EXPECT_EQ(c->hmp.bf16 + " " + c->hmp.fp32, "ops_bf16.txt ops_fp32.txt");
    ASSERT_EQ(c->per_file_ignores.size(), 1u);
    EXPECT_EQ(c->per_file_ignores[0].pattern, "tests/**");
    EXPECT_EQ(c->directory, "dir");
}

TEST(Config, AnUnknownKeyIsAnErrorWithLineAndSuggestion) {
    EXPECT_EQ(error_of("\nselct = []"), "dir/mp-lint.toml:2: unknown key 'selct' | did you mean 'select'?");
    EXPECT_EQ(error_of("[regions]\nguard = []"),
              "dir/mp-lint.toml:2: unknown key 'regions.guard' | did you mean 'guards'?");
}

TEST(Config, AWrongTypeIsAnErrorWithLine) {
    EXPECT_THAT(error_of("select = 3"), HasSubstr("mp-lint.toml:1: 'select' must be a list of strings"));
    EXPECT_THAT(error_of("select = [3]"), HasSubstr("must be a list of strings"));
    EXPECT_THAT(error_of("timeout = 'x'"), HasSubstr("must be a number of seconds"));
    EXPECT_THAT(error_of("timeout = 0"), HasSubstr("must be a number of seconds"));
    EXPECT_THAT(error_of("jobs = 1.5"), HasSubstr("must be a whole number"));
    EXPECT_THAT(error_of("profile = 'x'"), HasSubstr("\"training\" or \"inference\""));
    EXPECT_THAT(error_of("device = 'gpu'"), HasSubstr("one of cuda, cpu"));
    EXPECT_THAT(error_of("assume = 'fp32'"), HasSubstr("\"fp16\" or \"bf16\""));
    EXPECT_THAT(error_of("[hmp]\nbf32 = 'a'"), HasSubstr("unknown key 'hmp.bf32'"));
    EXPECT_THAT(error_of("hmp = 'a'"), HasSubstr("must be a table"));
    EXPECT_THAT(error_of("regions = 1"), HasSubstr("must be a table"));
    EXPECT_THAT(error_of("[regions]\ndtype = 'fp32'"), HasSubstr("\"fp16\" or \"bf16\""));
}

TEST(Config, AnUnknownRuleIsAnError) {
    EXPECT_THAT(error_of("select = ['half-acumulator']"), HasSubstr("did you mean 'half-accumulator'?"));
    EXPECT_THAT(error_of("[per-file-ignores]\n'a' = ['MP40l']"), HasSubstr("mp-lint.toml:2"));
}

TEST(Config, WhatIsNotTomlIsAnErrorAndNotACrash) {
    EXPECT_THAT(error_of("= ="), HasSubstr("mp-lint.toml:1:"));
    EXPECT_THAT(error_of("a = " + std::string(5000, '[')), HasSubstr("mp-lint.toml:1:"));
    EXPECT_THAT(error_of(std::string(10000, '[')), HasSubstr("mp-lint.toml:1:"));
    EXPECT_THAT(error_of(std::string("\0\xff", 2)), HasSubstr("mp-lint.toml:1:"));
}

class ConfigFiles : public testing::Test {
protected:
    void SetUp() override {
        root_ = fs::temp_directory_path() / ("mp-config-" + std::to_string(::getpid()));
        fs::create_directories(root_ / "a/b");
    }
    void TearDown() override { fs::remove_all(root_); }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(root_ / name) << text;
    }
    std::string found_from(const std::string& at) const {
        const Result<Config> c = find_config((root_ / at).string(), kAll);
        if (!c) return c.error().message;
        return c->path.empty() ? "" : fs::path(c->path).lexically_relative(root_).string();
    }
    fs::path root_;
};

TEST_F(ConfigFiles, TheNearestFileWins) {
    write("mp-lint.toml", "");
    EXPECT_EQ(found_from("a/b"), "mp-lint.toml");
    write("a/.mp-lint.toml", "");
    EXPECT_EQ(found_from("a/b"), "a/.mp-lint.toml");
    write("a/mp-lint.toml", "");
    EXPECT_EQ(found_from("a/b"), "a/mp-lint.toml");
}

TEST_F(ConfigFiles, PyprojectCountsOnlyWithOurTable) {
    write("mp-lint.toml", "");
    write("a/pyproject.toml", "[tool.black]\nline-length = 3");
    EXPECT_EQ(found_from("a/b"), "mp-lint.toml");
    write("a/pyproject.toml", "[tool.mp-lint]\nselect = ['MP4']");
    EXPECT_EQ(found_from("a/b"), "a/pyproject.toml");
    write("a/pyproject.toml", "[tool.mp-lint]\nselct = ['MP4']");
    EXPECT_THAT(found_from("a/b"), HasSubstr("pyproject.toml:2: unknown key 'selct'"));
}

}  // namespace
}  // namespace mp::lint
