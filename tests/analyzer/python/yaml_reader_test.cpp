#include "analyzer/python/yaml_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "analyzer/python/yaml_anchors.hpp"

namespace mp::lint::python {
namespace {

// "path=value" of each value, with quotes around texts, and "path{}" at the end of each mapping.
class Lines : public JsonVisitor {
public:
    void on_string(const JsonPath& path, std::string_view value, std::size_t begin, std::size_t) override {
        add(path, "='" + std::string(value) + "'@" + std::to_string(begin));
    }
    void on_scalar(const JsonPath& path, std::string_view value, std::size_t) override {
        add(path, "=" + std::string(value));
    }
    void on_object_end(const JsonPath& path) override { add({path.begin(), path.end() - 1}, "{}"); }

    std::string text;
    std::size_t longest_path = 0;

private:
    void add(const JsonPath& path, const std::string& value) {
        longest_path = std::max(longest_path, path.size());
        for (std::size_t i = 0; i < path.size(); ++i) text += (i > 0 ? "/" : "") + path[i];
        text += value + "\n";
    }
};

std::string read(std::string_view text) {
    Lines lines;
    const auto error = read_yaml(text, lines);
    return error ? "error at " + std::to_string(*error) : lines.text;
}

TEST(YamlReader, PathsLeadThroughMappings) {
    EXPECT_EQ(read("model:\n  dtype: bfloat16\n  sizes: [1, 2]\nlr: 3e-4\n"),
              "model/dtype='bfloat16'@16\nmodel/sizes/=1\nmodel/sizes/=2\nmodel{}\nlr=3e-4\n{}\n");
}

TEST(YamlReader, PlainScalarsAreWhatPyYamlMakesOfThem) {
    EXPECT_EQ(read("{a: yes, b: Off, c: ~, d: , e: 0x10, f: -.5, g: 1_000, h: 1.0e-8}"),
              "a=true\nb=false\nc=null\nd=null\ne=0x10\nf=-.5\ng=1_000\nh=1.0e-8\n{}\n");
    EXPECT_EQ(read("{a: inf, b: nan, c: 16-mixed, d: 2026-11-25, e: '1', f: \"no\"}"),
              "a='inf'@4\nb='nan'@12\nc='16-mixed'@20\nd='2026-11-25'@33\ne='1'@49\nf='no'@57\n{}\n");
}

TEST(YamlReader, PlacesAreBytes) {
    EXPECT_EQ(read("\xc3\xa4: \xc3\xb6\nb: x\n"), "\xc3\xa4='\xc3\xb6'@4\nb='x'@10\n{}\n");
}

TEST(YamlReader, OnlyTheFirstDocumentCounts) { EXPECT_EQ(read("a: 1\n---\nb: 2\n"), "a=1\n{}\n"); }

TEST(YamlReader, ValuesBehindTagsAreLeftOut) {
    EXPECT_EQ(read("d: !!python/object/apply:os.system [ls]\ne: !path f\n"), "./='ls'@36\n{}\n");
    EXPECT_EQ(read("a: &x !path {b: 1}\nc: *x\nd: &y !path e\nf: *y\n"), "./b=1\n.{}\n{}\n");
}

TEST(YamlReader, AnAliasRepeatsTheValuesBehindItsAnchor) {
    EXPECT_EQ(read("a: &x {b: {c: d}}\ne: *x\nf: &y g\nh: *y\ni: [*y]\n"),
              "a/b/c='d'@14\na/b{}\na{}\ne/b/c='d'@14\ne/b{}\ne{}\nf='g'@27\nh='g'@27\ni/='g'@27\n{}\n");
    EXPECT_EQ(read("a: &x 1\nb: &x 2\nc: *x\nd: *z\n").substr(0, 12), "a=1\nb=2\nc=2\n");
    EXPECT_EQ(read("a: &x {b: 1, c: *x}\n"), "a/b=1\na{}\n{}\n");
}

TEST(YamlReader, AMergeKeyAddsTheKeysThatTheMappingDoesNotWrite) {
    EXPECT_EQ(read("a: &x {b: 1, c: 2, n: {o: 3}}\nd: {<<: *x, c: 4, e: 5}\n"),
              "a/b=1\na/c=2\na/n/o=3\na/n{}\na{}\nd/c=4\nd/e=5\nd/b=1\nd/n/o=3\nd/n{}\nd{}\n{}\n");
    EXPECT_EQ(read("a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}\n"),
              "a/b=1\na{}\nc/b=2\nc/d=3\nc{}\ne/b=1\ne/d=3\ne{}\n{}\n");
    EXPECT_EQ(read("a: &x 1\nb: {<<: *x}\n"), "a=1\nb{}\n{}\n");
}

TEST(YamlReader, TextThatIsNotYamlIsAnError) {
    EXPECT_EQ(read("a: [1, 2").substr(0, 5), "error");
    EXPECT_EQ(read("a: 1\n\tb: 2\n").substr(0, 5), "error");
    EXPECT_EQ(read("? [a, b]\n: 1\n").substr(0, 5), "error");
    EXPECT_EQ(read("a: \xff\xfe").substr(0, 5), "error");
    EXPECT_EQ(read(""), "");
}

// An alias bomb has 10^9 values when it is expanded.
TEST(YamlReader, AliasesDoNotGrow) {
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 9; ++i) {
        const std::string last = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
        bomb += name + ": &" + name + " [";
        for (int k = 0; k < 10; ++k) bomb += (k > 0 ? ", " : "") + last;
        bomb += "]\n";
    }
    const std::string lines = read(bomb);
    EXPECT_LE(std::ranges::count(lines, '\n'), 11 + static_cast<std::ptrdiff_t>(YamlAnchors::kMostCopies));
}

TEST(YamlReader, DeepTextIsAnError) {
    for (const std::string_view open : {"[", "{a: ", "- ", "? "}) {
        std::string deep;
        while (deep.size() < 100'000) deep += open;
        EXPECT_EQ(read(deep).substr(0, 5), "error") << open;
    }
}

}  // namespace
}  // namespace mp::lint::python
