#include "kernels/numerics/source_span.hpp"

#include <gtest/gtest.h>

namespace mp {
namespace {

TEST(SourceSpan, PrintsAsEditorsAndCompilersDo) {
    const SourceSpan at{.file = Symbol("src/norm.cu"), .line = 12, .column = 5};
    EXPECT_EQ(to_string(at), "src/norm.cu:12:5");
}

TEST(SourceSpan, WithoutALineItIsUnknown) {
    EXPECT_FALSE(SourceSpan{}.known());
    EXPECT_EQ(to_string(SourceSpan{.file = Symbol("a.cpp")}), "<unknown>");
}

TEST(SourceSpan, OrderInAFileIsByLineThenColumn) {
    const Symbol file("order.cpp");
    const SourceSpan a{file, 2, 9}, b{file, 10, 1}, c{file, 10, 2};
    EXPECT_LT(a, b);
    EXPECT_LT(b, c);
    EXPECT_EQ(b, (SourceSpan{file, 10, 1}));
}

}  // namespace
}  // namespace mp
