#include "analyzer/python/data_files.hpp"

#include <gtest/gtest.h>

#include "analyzer/facts/text.hpp"
#include "analyzer/python/config_files.hpp"

namespace mp::lint::python {
namespace {

// "line:column name=constant" of each value. A mapping refers to itself and has no place.
std::string values(const std::string& path, std::string_view text) {
    Function file;
    add_data_values({.path = path, .module = "", .text = text}, file);
    std::string out;
    for (const Definition& d : file.definitions) {
        EXPECT_EQ(d.value.refers, d.value.constant.empty() ? d.name : Symbol{});
        out += std::to_string(d.span.line) + ":" + std::to_string(d.span.column) + " " +
               std::string(d.name.str());
        if (!d.value.constant.empty()) out += "=" + std::string(d.value.constant.str());
        out += "\n";
    }
    return out;
}

TEST(DataFiles, EachKeyIsAName) {
    const std::string expected =
        "2:10 /a/c.FMT.model.dtype='bfloat16'\n0:0 /a/c.FMT.model\n"
        "3:8 /a/c.FMT.eps=1e-08\n4:9 /a/c.FMT.half=true\n5:9 /a/c.FMT.seed=None\n0:0 /a/c.FMT\n";
    const auto of = [&](const std::string& format) {
        std::string text = expected;
        for (std::size_t at; (at = text.find("FMT")) != std::string::npos;) text.replace(at, 3, format);
        return text;
    };
    EXPECT_EQ(
        values("/a/c.yaml", "model:\n  dtype: bfloat16\neps:   0.00000001\nhalf:   yes\nseed:   null\n"),
        of("yaml"));
    EXPECT_EQ(
        values("/a/c.json",
               "{\"model\":{\n\"dtype\":\"bfloat16\"},\n\"eps\": 1e-8,\n\"half\": true,\n\"seed\": null}"),
        of("json"));
}

TEST(DataFiles, AmbiguousAndUnnamedValuesAreLeftOut) {
    EXPECT_EQ(values("c.yaml", "a.b: 1\nlist: [1, {c: 2}]\n'': 3\nd: 4\n"), "4:4 c.yaml.d=4\n0:0 c.yaml\n");
    EXPECT_EQ(values("c.yaml", "a: !make {b: 1}\nc: !path x\nd: 4\n"), "3:4 c.yaml.d=4\n0:0 c.yaml\n");
}

TEST(DataFiles, DefaultsOfHydraHaveNumbers) {
    EXPECT_EQ(
        values("/a/c.yaml",
               "# a comment\n# @package _global_\ndefaults:\n  - base\n  - model: net\n  - /a@b: [x, y]\n"
               "  - db: null\n  - {a: {b: c}}\nd: 4\n"),
        "4:5 /a/c.yaml.defaults.0='base'\n5:12 /a/c.yaml.defaults.1='model=net'\n"
        "6:12 /a/c.yaml.defaults.2='/a@b=x'\n6:15 /a/c.yaml.defaults.3='/a@b=y'\n"
        "0:0 /a/c.yaml@package='_global_'\n9:4 /a/c.yaml.d=4\n0:0 /a/c.yaml\n");
    EXPECT_EQ(values("c.yaml", "a: 1\n# @package _global_\ndefaults: {b: c}\n"),
              "1:4 c.yaml.a=1\n3:15 c.yaml.defaults.b='c'\n0:0 c.yaml.defaults\n0:0 c.yaml\n");
}

TEST(DataFiles, DataIsNotConfiguration) {
    EXPECT_EQ(values("c.json", "[1, 2]"), "");
    EXPECT_EQ(values("c.json", "{\"a\": 1"), "");
    EXPECT_EQ(values("c.yaml", "a: [1\n"), "");
    EXPECT_EQ(values("c.yaml", "just a text\n"), "");
    EXPECT_EQ(values("c.yaml", "text: " + std::string(100, 'x') + "\n"), "0:0 c.yaml\n");
    EXPECT_EQ(values("c.yaml", "a: 1\n#" + std::string(300'000, 'x') + "\n"), "");
    std::string many;
    for (int i = 0; i < 3000; ++i) many += "k" + std::to_string(i) + ": 1\n";
    EXPECT_EQ(values("c.yaml", many), "");
}

TEST(DataFiles, ValuesCanBePrintedAndReadBack) {
    const Unit unit = extract_config(
        {.path = "/a/c d.yml", .module = "", .text = "a b: {c: 'it''s', d: \"x\\ny\"}\n\"e=[\": 1\n"});
    ASSERT_EQ(unit.functions.size(), 1u);
    EXPECT_EQ(unit.functions[0].definitions.size(), 5u);
    const Result<Unit> back = parse_facts(print_facts(unit));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, unit);
}

}  // namespace
}  // namespace mp::lint::python
