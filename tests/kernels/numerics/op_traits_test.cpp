#include "kernels/numerics/op_traits.hpp"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "kernels/numerics/op.hpp"
#include "kernels/numerics/op_table.hpp"
#include "tests/fakes/source_dir.hpp"

namespace mp {
namespace {

std::string table_text() {
    std::ifstream file(std::string(mp_source_dir()) + "/kernels/numerics/policies/ops.txt");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

TEST(OpTraits, ALineGivesItsTraitsToEverySpelling) {
    for (const char* name : {"mul", "multiply", "__imul__"}) {
        EXPECT_TRUE(traits_of(name).has(Trait::promotes)) << name;
        EXPECT_FALSE(traits_of(name).has(Trait::keeps)) << name;
    }
    EXPECT_TRUE(traits_of(op_from_spelling("torch.multiply")).has(Trait::promotes));
    EXPECT_FALSE(traits_of(Op()).has(Trait::keeps));
    EXPECT_FALSE(traits_of("no_such_op").has(Trait::keeps));
}

TEST(OpTraits, NamesOfTheDispatcherAreNoSpellings) {
    EXPECT_TRUE(traits_of("_foreach_add").has(Trait::sum_step));
    EXPECT_FALSE(op_from_spelling("torch._foreach_add").known());
    EXPECT_TRUE(traits_of("mkldnn_rnn_layer").has(Trait::own_integers));
}

TEST(OpTraits, OfSeveralResultsSomeHaveElementsOfTheInput) {
    for (const char* name : {"chunk", "split", "split_with_sizes", "tensor_split", "unbind"})
        EXPECT_TRUE(item_has_elements(traits_of(name), 0) && item_has_elements(traits_of(name), 1)) << name;
    for (const char* name :
         {"topk", "sort", "max", "min", "kthvalue", "median", "mode", "cummax", "cummin"}) {
        EXPECT_TRUE(item_has_elements(traits_of(name), 0)) << name;
        EXPECT_FALSE(item_has_elements(traits_of(name), 1)) << name << ": indices";
    }
    for (const char* name : {"var_mean", "svd", "unique", "argsort", "relu"})
        EXPECT_FALSE(item_has_elements(traits_of(name), 0)) << name;
}

TEST(OpTraits, KernelsThatPyTorchLacks) {
    for (const char* name : {"torch.linalg.inv", "torch.quantile", "torch.svd"})
        EXPECT_TRUE(traits_of(op_from_spelling(name)).has(Trait::no_half)) << name;
    for (const char* name : {"torch.fft.rfft", "torch.view_as_complex", "torch.complex"}) {
        EXPECT_TRUE(traits_of(op_from_spelling(name)).has(Trait::no_bf16)) << name;
        EXPECT_FALSE(traits_of(op_from_spelling(name)).has(Trait::no_half)) << name;
    }
}

TEST(OpTraits, CollectivesAreApart) {
    EXPECT_TRUE(traits_of_collective("allreduce_coalesced").has(Trait::in_place));
    EXPECT_TRUE(traits_of_collective("allgather_coalesced").has(Trait::copies));
    EXPECT_FALSE(traits_of_collective("reduce_scatter").has(Trait::copies));
    EXPECT_FALSE(traits_of("broadcast").has(Trait::in_place));
}

TEST(OpTraits, RecordedNamesShareTheTraitsOfTheirBase) {
    for (const char* op : {"aten::_foreach_add_", "aten::add_.Tensor", "aten::add"})
        EXPECT_TRUE(traits_of_recorded(op).has(Trait::sum_step)) << op;
    for (const char* op : {"aten::native_layer_norm", "aten::native_layer_norm_backward", "layer_norm"})
        EXPECT_TRUE(traits_of_recorded(op).has(Trait::norm)) << op;
    // base_name() drops "native_" and "_forward" of these, as it does where the table is read.
    for (const char* op : {"aten::_native_multi_head_attention", "aten::_flash_attention_forward"})
        EXPECT_TRUE(traits_of_recorded(op).has(Trait::fused)) << op;
    for (const char* op : {"aten::_transformer_encoder_layer_fwd", "aten::mkldnn_rnn_layer"})
        EXPECT_TRUE(traits_of_recorded(op).has(Trait::whole_layer)) << op;
    for (const char* op :
         {"aten::threshold_backward", "aten::max_pool2d_with_indices_backward", "aten::clamp_min"})
        EXPECT_TRUE(traits_of_recorded(op).has(Trait::chooses)) << op;
}

// Fails for a word after the bar that is not a trait, and for a trait that the head does not define.
TEST(OpTraits, TheTableHasOneWordForEachTrait) {
    const std::string text = table_text();
    std::set<std::string_view> used;
    for_each_op_line(text, [&](const OpLine& line) {
        std::string_view rest = line.traits;
        for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
            EXPECT_TRUE(trait_from_name(word).has_value()) << line.name << ": " << word;
            used.insert(word);
        }
    });
    for (unsigned i = 0; i <= static_cast<unsigned>(kLastTrait); ++i) {
        const std::string_view name = name_of(static_cast<Trait>(i));
        EXPECT_TRUE(used.contains(name)) << name << " is given to no op";
        EXPECT_NE(text.find("\n#   " + std::string(name) + " "), std::string::npos) << name;
    }
}

TEST(OpTraits, AnOpHasOneLine) {
    const std::string text = table_text();
    std::set<std::string> seen;
    for_each_op_line(text, [&](const OpLine& line) {
        if (line.section == "functions") return;  // a line for each library there
        EXPECT_TRUE(seen.insert(std::string(line.section) + " " + std::string(line.name)).second)
            << line.name;
        EXPECT_EQ(line.name.find(' '), std::string_view::npos) << line.name;
    });
}

TEST(OpTraits, FiniteTestsOfCppAreSpelledInMoreWays) {
    for (const char* name : {"isfinite", "isnan", "isinf", "__isnanf", "__hisinf", "finitef", "isinf_sign"})
        EXPECT_TRUE(spells_finite_test(name)) << name;
    for (const char* name : {"isnormal", "fmaf", "definite", ""})
        EXPECT_FALSE(spells_finite_test(name)) << name;
}

// The dtype of a result has one rule.
TEST(OpTraits, ResultsHaveOneDType) {
    constexpr Trait kResults[] = {Trait::keeps,   Trait::promotes, Trait::sums_integers, Trait::truths,
                                  Trait::indices, Trait::extremes, Trait::several};
    const std::string text = table_text();
    for_each_op_line(text, [&](const OpLine& line) {
        int rules = 0;
        for (const Trait trait : kResults) rules += traits_of(line.name).has(trait);
        EXPECT_LE(rules, 1) << line.name;
        const bool has_floats = traits_of(line.name).has(Trait::floats_integers);
        EXPECT_TRUE(!has_floats || rules == 1) << line.name;
    });
}

}  // namespace
}  // namespace mp
