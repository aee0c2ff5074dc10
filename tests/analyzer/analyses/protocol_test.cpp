#include "analyzer/analyses/protocol.hpp"

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

// f<n> calls f<n+1> on both sides of many conditions, as a test suite does that runs every option in one loop. Each
// side steps an optimizer of its own, so that no two ways leave the same state.
std::string multiplying(int functions, int conditions) {
    std::string text = "unit t.py language=python\n";
    for (int n = 0; n < functions; ++n) {
        const std::string at = std::to_string(10 * n + 1), name = "f" + std::to_string(n);
        std::string blocks, calls;
        for (int i = 0; i < conditions; ++i) {
            const int b = 3 * i;
            const auto to = [](int k) { return std::to_string(k); };
            blocks += "    block to=[" + to(b + 1) + " " + to(b + 2) + "]\n    block to=[" + to(b + 3) +
                      "]\n    block to=[" + to(b + 3) + "]\n";
            for (const int side : {1, 2}) {
                const std::string in = " block=" + to(b + side) + "\n";
                calls += "    call " + at +
                         ":5 torch.amp.GradScaler.step kind=method args=[{name=s} {name=o" + to(n) + "_" +
                         to(b + side) + "}]" + in;
                if (n + 1 < functions)
                    calls += "    call " + at + ":9 t.f" + to(n + 1) + " callee=t.f" + to(n + 1) + in;
            }
        }
        text += "  func " + at + ":1 t." + name + " kind=python\n" + blocks + "    block leaves\n" + calls;
    }
    return text;
}

TEST(Protocol, TheWorkOfARootIsBoundedHoweverItsPathsMultiply) {
    for (const auto& [functions, conditions] : {std::pair{1, 12}, std::pair{3, 4}, std::pair{6, 8}}) {
        auto unit = parse_facts(multiplying(functions, conditions));
        ASSERT_TRUE(unit) << unit.error().message;
        const Program program = Program::link({std::move(*unit)});
        const Protocol protocol(program);
        EXPECT_GT(protocol.most_work(), 10u);
        EXPECT_LE(protocol.most_work(), 6000u);
    }
}

}  // namespace
}  // namespace mp::lint::test
