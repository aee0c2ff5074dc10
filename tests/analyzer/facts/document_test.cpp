// Checks that the worked example of docs/facts_format.md is valid and has the described meaning, and that
// the page names every field that the parser accepts.

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "analyzer/facts/fields.hpp"
#include "analyzer/facts/text.hpp"
#include "tests/fakes/source_dir.hpp"

namespace mp::lint {
namespace {

std::string page() {
    std::ifstream file(std::string(mp_source_dir()) + "/docs/facts_format.md");
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string example() {
    const std::string text = page(), fence = "```facts\n";
    const std::size_t start = text.find(fence);
    if (start == std::string::npos) return {};
    return text.substr(start + fence.size(), text.find("```", start + fence.size()) - start - fence.size());
}

TEST(FactsDocument, ExampleIsReadAndPrintedUnchanged) {
    const auto unit = parse_facts(example(), "facts_format.md");
    ASSERT_TRUE(unit) << unit.error().message;
    EXPECT_EQ(print_facts(*unit), example());
    ASSERT_EQ(unit->functions.size(), 2u);
    EXPECT_EQ(unit->functions[0].accumulations.at(0).dtype, DType::fp16);
    EXPECT_EQ(unit->functions[0].casts.at(0).source.stat, Stat::rstd);
    EXPECT_EQ(unit->functions[1].calls.at(1).callee, unit->functions[0].usr);
    EXPECT_EQ(unit->functions[1].flow.size(), 3u);
}

struct KeyCollector {
    std::vector<std::string_view> keys;
    void place(SourceSpan&) {}
    void title(Symbol&) {}
    void dtypes(DType&, DType&) {}
    void bare(std::string_view key, auto&, auto) { keys.push_back(key); }
    void operator()(std::string_view key, auto&) { keys.push_back(key); }
    void operator()(std::string_view key, auto&, auto) { keys.push_back(key); }
    void or_title(std::string_view key, Symbol&, Symbol) { keys.push_back(key); }
    void nested(std::string_view key, Operand&) { keys.push_back(key); }
};

template <class... Facts>
std::vector<std::string_view> keys_of() {
    KeyCollector collector;
    (
        [&] {
            Facts fact;
            fields(collector, fact);
        }(),
        ...);
    return collector.keys;
}

TEST(FactsDocument, NamesEveryField) {
    const std::string text = page();
    const std::string reference = text.substr(text.find("## Lines and fields"));
    for (const std::string_view key :
         keys_of<Unit, Coverage, Dependency, Function, TemplateArgument, Parameter, Operand, Edge, Block,
                 Call, Cast, Accumulation, Update, Scaling, TypeUse, Setting, Definition, Alias>())
        EXPECT_NE(reference.find(key), std::string::npos) << key;
}

}  // namespace
}  // namespace mp::lint
