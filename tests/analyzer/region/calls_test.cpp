#include "analyzer/region/calls.hpp"

#include <string>

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

TEST(LastName, IsWhatFollowsTheLastSeparator) {
    EXPECT_EQ(leaf(""), "");
    EXPECT_EQ(leaf("sum"), "sum");
    EXPECT_EQ(leaf("at::Tensor::sum"), "sum");
    EXPECT_EQ(leaf("torch.Tensor.sum"), "sum");
    EXPECT_EQ(leaf("torch.nn.functional.scaled_dot_product_attention"), "scaled_dot_product_attention");
    EXPECT_EQ(leaf("torch."), "");
    EXPECT_EQ(leaf("a_name_without_any_separator"), "a_name_without_any_separator");
}

// Separators at every position among eight characters, with various neighbours.
TEST(LastName, FindsEverySeparatorAtEveryPlace) {
    for (const char separator : {'.', ':'}) {
        for (const char filler : {'a', '/', '-', ';', '9', '\xae', '\xba', '\x7f', '\0'}) {
            for (std::size_t size = 1; size < 27; ++size) {
                for (std::size_t at = 0; at < size; ++at) {
                    std::string name(size, filler);
                    name[at] = separator;
                    name[at / 2] = separator;
                    EXPECT_EQ(leaf(name), std::string_view(name).substr(at + 1)) << size << " " << at;
                }
            }
        }
    }
}

}  // namespace
}  // namespace mp::lint
