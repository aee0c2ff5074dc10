#include "kernels/base/symbol.hpp"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace mp {
namespace {

TEST(Symbol, EqualTextsAreOneSymbol) {
    const Symbol a("softmax"), b(std::string("soft") + "max"), c("Softmax");
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
    EXPECT_EQ(a.str().data(), b.str().data());
    EXPECT_EQ(std::hash<Symbol>{}(a), std::hash<Symbol>{}(b));
}

TEST(Symbol, TheEmptyTextIsIdZero) {
    EXPECT_EQ(Symbol("").id(), 0u);
    EXPECT_EQ(Symbol(), Symbol(std::string_view{}));
    EXPECT_TRUE(Symbol().empty() && Symbol().str().empty());
    EXPECT_FALSE(Symbol("x").empty());
}

TEST(Symbol, AnyBytesAreKept) {
    const std::string text("a\0b\xFF\n", 5);
    EXPECT_EQ(Symbol(text).str(), text);
    EXPECT_NE(Symbol(text), Symbol("a"));
}

TEST(Symbol, TextsStayWhereTheyAreWhenManyMoreCome) {
    const Symbol first("the first of many");
    const std::string_view before = first.str();
    for (int i = 0; i < 20000; ++i) Symbol(std::string("many ") + std::to_string(i));
    EXPECT_EQ(first.str().data(), before.data());
    EXPECT_EQ(Symbol("many 19999").str(), "many 19999");
}

// All threads intern the same texts in different orders while reading those of the others.
TEST(Symbol, ThreadsAgreeOnEverySymbol) {
    constexpr int kThreads = 8, kTexts = 4000;
    std::vector<std::vector<Symbol>> seen(kThreads, std::vector<Symbol>(kTexts));
    const auto work = [&](int t) {
        for (int i = 0; i < kTexts; ++i) {
            const int k = (i * 7 + t * 501) % kTexts;
            const std::string text = "concurrent " + std::to_string(k);
            seen[t][k] = Symbol(text);
            if (seen[t][k].str() != text) seen[t][k] = Symbol();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
    }
    for (int t = 0; t < kThreads; ++t)
        for (int k = 0; k < kTexts; ++k) {
            ASSERT_EQ(seen[t][k], seen[0][k]) << k;
            ASSERT_EQ(seen[t][k].str(), "concurrent " + std::to_string(k));
        }
}

TEST(Symbol, ManyAtOnceAreWhatTheyAreOneByOne) {
    std::vector<std::string> texts{"", "many known"};
    const Symbol known(texts[1]);
    for (int i = 0; i < 1000; ++i) texts.push_back("many " + std::to_string(i % 700));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    std::vector<Symbol> out(views.size());
    Symbol::intern(views, out);
    EXPECT_EQ(out[0], Symbol());
    EXPECT_EQ(out[1], known);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(out[i].str(), texts[i]);
        EXPECT_EQ(out[i], Symbol(texts[i]));
        EXPECT_LT(out[i].id(), Symbol::count());
    }
}

}  // namespace
}  // namespace mp
