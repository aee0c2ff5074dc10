#include "runtime/launch/words.hpp"

#include <array>

#include <gtest/gtest.h>

#include "tests/kernels/base/unsafe_text.hpp"

namespace mp::launch {
namespace {

constexpr std::array<std::string_view, 4> kWords{"run", "report", "doctor", "--mode"};

TEST(DidYouMean, NamesTheWordThatIsOneSlipAway) {
    EXPECT_EQ(did_you_mean("rnu", kWords), "did you mean 'run'?");
    EXPECT_EQ(did_you_mean("reprot", kWords), "did you mean 'report'?");
    EXPECT_EQ(did_you_mean("docter", kWords), "did you mean 'doctor'?");
    EXPECT_EQ(did_you_mean("--mdoe", kWords), "did you mean '--mode'?");
}

TEST(DidYouMean, IsSilentAboutAnythingElse) {
    EXPECT_EQ(did_you_mean("python", kWords), "");
    EXPECT_EQ(did_you_mean("", kWords), "");
    EXPECT_EQ(did_you_mean(std::string(1 << 20, 'r'), kWords), "");
    EXPECT_EQ(did_you_mean("run", {}), "");
}

TEST(Printable, EscapesWhatMovesACursor) {
    EXPECT_EQ(printable("a\033[2Jb\nc\r\x7f"), "a\\x1b[2Jb\\x0ac\\x0d\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "C1's CSI, as UTF-8";
}

TEST(Printable, EscapesTheSameCharactersAsReports) {
    for (const std::string_view unsafe : kUnsafeCharacters) {
        EXPECT_TRUE(printable(unsafe).starts_with("\\x")) << unsafe;
        EXPECT_EQ(printable(unsafe).size(), 4 * unsafe.size()) << unsafe;
    }
    for (const std::string_view safe : kSafeCharacters) EXPECT_EQ(printable(safe), safe);
    EXPECT_EQ(printable("a\xff"), "a\\xff") << "not UTF-8";
}

TEST(Printable, KeepsNamesAsTheyAre) {
    EXPECT_EQ(printable("größe → x"), "größe → x");
    EXPECT_EQ(printable(printable("\n")), printable("\n"));
}

}  // namespace
}  // namespace mp::launch
