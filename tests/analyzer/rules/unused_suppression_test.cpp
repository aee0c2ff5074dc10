// Its findings are tested where comments are read: tests/analyzer/suppress/suppress_test.cpp.

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {

TEST(UnusedSuppression, IsANoteThatFactsNeverGive) {
    const Rule* rule = find_rule("MP001");
    ASSERT_NE(rule, nullptr);
    EXPECT_EQ(rule->severity, Severity::note) << "comments fail no build";
    EXPECT_THAT(lint("MP001", {kernel("cast 5:9 fp32->fp16 form=implicit")}), IsEmpty());
}

}  // namespace mp::lint::test
