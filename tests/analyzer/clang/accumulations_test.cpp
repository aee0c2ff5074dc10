#include <gtest/gtest.h>

#include "tests/analyzer/clang/flow_fixture.hpp"

namespace mp::lint::test {
namespace {

Accumulation only(const Parsed& p, const std::string& function = "f") {
    const auto found = p.accumulations(function);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Accumulation{} : found.front();
}

bool none(const std::string& code) { return Parsed(code).accumulations("f").empty(); }

TEST(Accumulations, EveryWayToWriteASumIsOne) {
    for (const char* update :
         {"acc += x[i];", "acc = acc + x[i];", "acc = x[i] + acc;", "acc = __hadd(acc, x[i]);",
          "acc = __hfma(x[i], x[i + 1], acc);", "acc = x[i] * x[i + 1] + acc;",
          "acc = __float2half(__half2float(acc) + __half2float(x[i]));",
          "half next = acc + x[i]; acc = next;"}) {
        const Parsed p(
            "void f(const half* x, int n, half* out) { half acc = 0.f; for (int i = 0; i < n; ++i) "
            "{ " +
            std::string(update) + " } *out = acc; }");
        const Accumulation a = only(p);
        EXPECT_EQ(a.dtype, DType::fp16) << update;
        EXPECT_EQ(a.name.str(), "acc") << update;
        EXPECT_EQ(a.storage, Storage::local) << update;
        EXPECT_EQ(a.loop_depth, 1) << update;
    }
}

// The counts of a sum over 64 rounds with this body.
std::pair<std::uint64_t, std::uint64_t> counts(const std::string& body) {
    const Parsed p(
        "void put(half& t, half v) { t += v; }\n"
        "void maybe(half& t, half v, int k) { if (k) t += v; }\n"
        "half f(const half* x, int k) { half acc = 0.f; for (int i = 0; i < 64; ++i) { " +
        body + " } return acc; }");
    const auto found = p.accumulations("f");
    if (found.empty()) return {};
    return {found.front().trips, found.front().at_least};
}

TEST(Accumulations, EveryRoundCountsUnlessItMayAddNothing) {
    for (const char* body : {"acc += x[i];", "if (k) x += 64; acc += x[i];", "put(acc, x[i]);",
                             "acc += x[i]; acc = __hadd(acc, x[i + 64]);", "if constexpr (true) acc += x[i];",
                             "for (int j = 0; j < 4; ++j) if (j == k) break; acc += x[i];"})
        EXPECT_EQ(counts(body), std::pair(std::uint64_t{64}, std::uint64_t{64})) << body;
    for (const char* body :
         {"if (i < k) acc += x[i];", "if (i > k) continue; acc += x[i];", "acc += x[i]; if (i == k) break;",
          "acc += x[i]; if (i == k) return acc;", "acc = acc * half(0.9f); acc += x[i];",
          "if (i % k == 0) acc = 0.f; acc += x[i];", "maybe(acc, x[i], k);"})
        EXPECT_EQ(counts(body), std::pair(std::uint64_t{64}, std::uint64_t{0})) << body;
}

TEST(Accumulations, AFloatAccumulatorIsNoFact) {
    EXPECT_TRUE(
        none("void f(const half* x, int n, half* out) { float acc = 0; for (int i = 0; i < n; ++i) "
             "acc += __half2float(x[i]); *out = __float2half(acc); }"));
}

TEST(Accumulations, ATemplateCountsOnlyWhereItIsHalf) {
    const Parsed p(R"(template <typename T> void f(const T* x, int n, T* out) {
        T acc = T(0.f); for (int i = 0; i < n; ++i) acc += x[i]; *out = acc; }
        template void f<float>(const float*, int, float*);
        template void f<__nv_bfloat16>(const __nv_bfloat16*, int, __nv_bfloat16*);)");
    std::size_t facts = 0;
    for (const clang::FunctionDecl* f : p.functions("f")) {
        Function out;
        LocalFlow(*f, p.context()).add_accumulations(out);
        facts += out.accumulations.size();
        for (const Accumulation& a : out.accumulations) EXPECT_EQ(a.dtype, DType::bf16);
    }
    EXPECT_EQ(facts, 1u);
}

TEST(Accumulations, ElementwiseUpdatesAreNotSums) {
    EXPECT_TRUE(none("void f(half* y, const half* x, int n) { for (int i = 0; i < n; ++i) y[i] += x[i]; }"));
    EXPECT_TRUE(
        none("void f(half* y, const half* x, int n) { for (int i = 0; i < n; ++i) { half* p = y + "
             "i; *p += x[i]; } }"));
    EXPECT_TRUE(
        none("void f(half* y, const half* x, int n) { for (int i = 0; i < n; ++i) { half v = x[i]; "
             "v += y[i]; y[i] = v; } }"));
    EXPECT_TRUE(none("void f(half s, int n) { for (int i = 0; i < n; ++i) s = s * s; }"));
}

TEST(Accumulations, PointersMoveButDoNotGather) {
    EXPECT_TRUE(
        none("void f(const half* x, half* y, int n) { for (int i = 0; i < n; ++i) { x += n; y += "
             "2; } }"));
}

TEST(Accumulations, RegistersLoadedAgainStartAgain) {
    const char* const load =
        "template <typename T> void load(T* to, const T* from, int i) { to[0] = from[i]; }\n";
    const std::string loop =
        "void f(const half* x, int n) { half r[1]; r[0] = 0.f; for (int i = 0; i < n; ++i) { ";
    EXPECT_TRUE(none(load + loop + "load(r, x, i); r[0] = r[0] - x[i]; } }"));
    EXPECT_FALSE(none(load + loop + "half s[1]; load(s, x, i); r[0] = r[0] - s[0]; } }"));
}

TEST(Accumulations, OnlyLoopsSinceTheStartValueCount) {
    const Parsed p(R"(void f(const half* x, half* out, int n) {
        for (int row = 0; row < n; ++row) {
            half acc = 0.f;
            for (int k = 0; k < 8; ++k) acc += x[row * 8 + k];
            out[row] = acc; } })");
    EXPECT_EQ(only(p).trips, 8u);
    const Parsed again(R"(void f(const half* x, half* out, int n) {
        half acc;
        for (int row = 0; row < n; ++row) {
            acc = 0.f;
            for (int k = 0; k < 8; ++k) acc += x[row * 8 + k];
            out[row] = acc; } })");
    EXPECT_EQ(only(again).trips, 8u);
    const Parsed kept(R"(void f(const half* x, half* out, int n) {
        half acc = 0.f;
        for (int row = 0; row < n; ++row) for (int k = 0; k < 8; ++k) acc += x[row * 8 + k];
        *out = acc; })");
    EXPECT_EQ(only(kept).trips, 0u);
    EXPECT_EQ(only(kept).loop_depth, 2);
}

TEST(Accumulations, AnElementGathersOverTheLoopsThatDoNotChooseIt) {
    const Parsed p(R"(void f(const half* x, half* out) {
        half results[4];
        for (int i = 0; i < 16; ++i) for (int c = 0; c < 4; ++c) results[c] += x[i * 4 + c];
        out[0] = results[0]; })");
    const Accumulation a = only(p);
    EXPECT_EQ(a.trips, 16u);
    EXPECT_EQ(a.storage, Storage::array);
}

TEST(Accumulations, PackedStorageReadAsHalvesIsHalf) {
    const Parsed p(R"(void f(const int4* in, int4* out, int ranks) {
        int4 sum = in[0];
        half2* s = reinterpret_cast<half2*>(&sum);
        for (int r = 1; r < ranks; ++r) {
            const half2* v = reinterpret_cast<const half2*>(&in[r]);
            for (int k = 0; k < 4; ++k) s[k] = __hadd2(s[k], v[k]);
        }
        *out = sum; })");
    const Accumulation a = only(p);
    EXPECT_EQ(a.dtype, DType::fp16);
    EXPECT_EQ(a.shape, Shape::vec);
    EXPECT_EQ(a.loop_depth, 1);
}

TEST(Accumulations, HelpersThatAddAreFollowed) {
    const Parsed p(R"(inline half2 inner(half2 a, half2 b) { return __hadd2(a, b); }
        template <typename T> inline T join(T a, T b) { return inner(a, b); }
        void f(const half2* x, int n, half2* out) {
            half2 acc; for (int i = 0; i < n; ++i) acc = join(acc, x[i]); *out = acc; })");
    const Accumulation a = only(p);
    EXPECT_EQ(a.form, AccumulateForm::assign);
    EXPECT_EQ(a.through.str(), "join");
    EXPECT_TRUE(a.through_span.known());
    EXPECT_TRUE(none(R"(inline half join(half a, half b) { return a * b; }
        void f(const half* x, int n) { half acc = 1.f; for (int i = 0; i < n; ++i) acc = join(acc, x[i]); })"));
}

const char* const kReducer = R"(enum Kind { SUM, MAX };
    template <typename T, Kind K> struct Reducer { static void update(T* val, T next) {
        if (K == SUM) *val = *val + next; else if (next > *val) *val = next; } };
    template <typename T, Kind K> void f(const T* x, int n, T* out) {
        T val = T(0.f); for (int i = 0; i < n; ++i) Reducer<T, K>::update(&val, x[i]); *out = val; })";

TEST(Accumulations, AHelperThatAddsThroughAPointerCountsWhereItIsCalled) {
    const Parsed p(kReducer + std::string("template void f<half, SUM>(const half*, int, half*);"));
    const Accumulation a = only(p);
    EXPECT_EQ(a.form, AccumulateForm::call);
    EXPECT_EQ(a.op, AccumulateOp::add);
    EXPECT_EQ(a.name.str(), "val");
    EXPECT_EQ(a.through.str(), "Reducer::update");
}

TEST(Accumulations, TheBranchAnInstantiationDoesNotTakeIsDead) {
    const Parsed p(kReducer + std::string("template void f<half, MAX>(const half*, int, half*);"));
    EXPECT_EQ(only(p).op, AccumulateOp::max);
}

TEST(Accumulations, ReferencesObjectsAndLambdasAreSeenThrough) {
    for (const char* body : {"half v = 0.f; for (int i = 0; i < n; ++i) add(v, x[i]);",
                             "Sum s; for (int i = 0; i < n; ++i) s.add(x[i]);",
                             "half v = 0.f; auto more = [&](half y) { v += y; }; for (int i = 0; i "
                             "< n; ++i) more(x[i]);"}) {
        const Parsed p(
            "inline void add(half& to, half x) { to += x; }\n"
            "struct Sum { half total; void add(half x) { total += x; } };\n"
            "void f(const half* x, int n) { " +
            std::string(body) + " }");
        EXPECT_EQ(only(p).dtype, DType::fp16) << body;
        EXPECT_EQ(only(p).op, AccumulateOp::add) << body;
    }
}

TEST(Accumulations, AHelperWithItsOwnLoopIsReportedThere) {
    const Parsed p(R"(
        void gather(half* to, const half* x, int n) { for (int i = 0; i < n; ++i) *to += x[i]; }
        void f(const half* x, int n) { half v = 0.f; for (int i = 0; i < n; ++i) gather(&v, x, n); })");
    EXPECT_TRUE(p.accumulations("f").empty());
    EXPECT_EQ(only(p, "gather").storage, Storage::global);
}

TEST(Accumulations, AMemberThatAMethodAddsToIsOne) {
    const Parsed p(
        "struct Mean { half sum_; void f(half x) { sum_ += x; } Mean& operator+=(half x) { sum_ += "
        "x; return *this; } };");
    const Accumulation a = only(p);
    EXPECT_EQ(a.form, AccumulateForm::member);
    EXPECT_EQ(a.storage, Storage::member);
    EXPECT_TRUE(p.accumulations("operator+=").empty());
}

TEST(Accumulations, ShuffleLoopsAreTrees) {
    const Parsed p(
        "half f(half v) { for (int m = 16; m > 0; m >>= 1) v += __shfl_xor_sync(~0u, v, m); return "
        "v; }");
    const Accumulation a = only(p);
    EXPECT_EQ(a.form, AccumulateForm::tree);
    EXPECT_EQ(a.trips, 5u);
    EXPECT_EQ(a.storage, Storage::parameter);
}

TEST(Accumulations, ATreeOfOneLaneHasNoSteps) {
    const std::string tree =
        "template <int N> half f(half v) { for (int i = N / 2; i > 0; i /= 2) "
        "v += __shfl_down_sync(~0u, v, i); return v; }\n";
    EXPECT_TRUE(none(tree + "template half f<1>(half);"));
    EXPECT_EQ(only(Parsed(tree + "template half f<8>(half);")).trips, 3u);
}

TEST(Accumulations, UnrolledShufflesAreOneTree) {
    const Parsed p(
        "half f(half v) { v += __shfl_down_sync(~0u, v, 1u); v += __shfl_down_sync(~0u, v, 2u); "
        "return v; }");
    EXPECT_EQ(only(p).trips, 2u);
}

TEST(Accumulations, SharedMemoryTreesAreTrees) {
    const Parsed p(
        R"(void f(half* s, int t) {
            for (int stride = 64; stride > 0; stride >>= 1) if (t < stride) s[t] += s[t + stride]; })");
    EXPECT_EQ(only(p).form, AccumulateForm::tree);
    EXPECT_EQ(only(p).trips, 7u);
    // The same shape over elements that the loop chooses is a shift, not a sum.
    EXPECT_TRUE(none("void f(half* s, int n) { for (int t = 0; t < n; ++t) s[t] += s[t + 1]; }"));
}

TEST(Accumulations, MaximaAreFactsOfTheirOwn) {
    for (const char* update :
         {"m = __hmax(m, x[i]);", "if (x[i] > m) m = x[i];", "m = x[i] > m ? x[i] : m;"}) {
        const Parsed p("void f(const half* x, int n) { half m = -1e4f; for (int i = 0; i < n; ++i) { " +
                       std::string(update) + " } }");
        EXPECT_EQ(only(p).op, AccumulateOp::max) << update;
    }
}

TEST(Accumulations, SquaresMakeASumOfSquares) {
    const Parsed p(
        "void f(const half* x, half m, int n) { half v = 0.f; for (int i = 0; i < n; ++i) { half d "
        "= x[i] - m; v += d * d; } }");
    EXPECT_EQ(only(p).stat, Stat::sum_of_squares);
    const Parsed dot(
        "void f(const half* x, const half* y, int n) { half v = 0.f; for (int i = 0; i < n; ++i) v "
        "+= x[i] * y[i]; }");
    EXPECT_EQ(only(dot).stat, Stat::sum);
}

TEST(Accumulations, TheElementIsWhatIsAddedBeforeTheCast) {
    const Parsed p(
        "void f(const float* x, int n) { half v = 0.f; for (int i = 0; i < n; ++i) v += "
        "half(x[i]); }");
    EXPECT_EQ(only(p).element, DType::fp32);
}

}  // namespace
}  // namespace mp::lint::test
