#include <gtest/gtest.h>

#include "analyzer/python/extract.hpp"

namespace mp::lint::python {
namespace {

Unit extract_as(const std::string& path, std::string_view text) {
    return extract_file({.path = path, .module = "nb", .text = text});
}

const Call* find_call(const Unit& unit, std::string_view name) {
    for (const Function& f : unit.functions)
        for (const Call& call : f.calls)
            if (call.name.str() == name) return &call;
    return nullptr;
}

TEST(SourceFile, SpansOfANotebookArePlacesInTheFile) {
    const Unit unit = extract_as("nb.ipynb",
                                 "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\n"
                                 "   \"import torch\\n\",\n"
                                 "   \"y = torch.zeros(2).half()\"]}]}\n");
    EXPECT_EQ(unit.state, UnitState::ok);
    const Call* half = find_call(unit, "torch.Tensor.half");
    ASSERT_TRUE(half);
    EXPECT_EQ(half->span, (SourceSpan{Symbol("nb.ipynb"), 3, 9, 3, 30}));
    ASSERT_FALSE(half->args.empty());
    EXPECT_EQ(half->args[0].span.column, 9u);
    EXPECT_EQ(half->result.dtype, DType::fp16);
}

TEST(SourceFile, ABrokenNotebookIsAFailedUnit) {
    const Unit unit = extract_as("nb.ipynb", "{\"cells\": [");
    EXPECT_EQ(unit.state, UnitState::failed);
    EXPECT_TRUE(unit.functions.empty());
    ASSERT_EQ(unit.coverage.messages.size(), 1u);
    EXPECT_EQ(unit.coverage.messages[0].str(), "nb.ipynb:1:12: not JSON from here on");
}

TEST(SourceFile, EachKindOfFileHasItsReader) {
    EXPECT_TRUE(find_call(extract_as("a.py", "import torch\nx = torch.zeros(2)\n"), "torch.zeros"));
    EXPECT_EQ(extract_as("ds.json", "{\"fp16\": {\"enabled\": true}}").functions.size(), 1u);
    EXPECT_EQ(extract_as("ops_bf16.txt", "softmax\n").functions.size(), 1u);
    EXPECT_TRUE(extract_as("README.txt", "import torch\n").functions.empty());
}

}  // namespace
}  // namespace mp::lint::python
