#include "analyzer/facts/text.hpp"

#include <chrono>
#include <random>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/facts/fields.hpp"
#include "tests/analyzer/facts/full_unit.hpp"

namespace mp::lint {
namespace {

using testing::HasSubstr;

Unit parsed(std::string_view text) {
    auto unit = parse_facts(text);
    if (!unit) {
        ADD_FAILURE() << unit.error().message << "\n" << text;
        return {};
    }
    return *std::move(unit);
}

std::string error_of(std::string_view text) {
    const auto unit = parse_facts(text);
    return unit ? "parsed" : unit.error().message;
}

TEST(FactsText, ReadsBackEveryFieldItPrints) {
    const Unit unit = full_unit();
    const std::string text = print_facts(unit);
    EXPECT_EQ(parsed(text), unit) << text;
    EXPECT_EQ(print_facts(parsed(text)), text);
}

TEST(FactsText, ReadsBackAnEmptyUnit) { EXPECT_EQ(parsed(print_facts(Unit{})), Unit{}); }

// Counts a struct's fields from how many initialisers it takes.
struct Anything {
    template <class T>
    operator T() const;  // never defined: only counted
};
template <class T, class... Args>
consteval std::size_t arity() {
    if constexpr (requires { T{Args{}..., Anything{}}; })
        return arity<T, Args..., Anything>();
    else
        return sizeof...(Args);
}

// Counts the fields its list names.
struct Counter {
    std::size_t count = 0;
    void place(SourceSpan&) { ++count; }
    void title(Symbol&) { ++count; }
    void dtypes(DType&, DType&) { count += 2; }
    void bare(std::string_view, auto&, auto) { ++count; }
    void operator()(std::string_view, auto&) { ++count; }
    void operator()(std::string_view, auto&, auto) { ++count; }
    void or_title(std::string_view, Symbol&, Symbol) { ++count; }
    void nested(std::string_view, Operand&) { ++count; }
};
template <class T>
std::size_t listed() {
    T fact;
    Counter counter;
    fields(counter, fact);
    return counter.count;
}

TEST(FactsText, NoFieldIsMissingFromItsList) {
    EXPECT_EQ(listed<Operand>(), arity<Operand>());
    EXPECT_EQ(listed<TemplateArgument>(), arity<TemplateArgument>());
    EXPECT_EQ(listed<Parameter>(), arity<Parameter>());
    EXPECT_EQ(listed<Edge>(), arity<Edge>());
    EXPECT_EQ(listed<Block>(), arity<Block>());
    EXPECT_EQ(listed<Call>(), arity<Call>());
    EXPECT_EQ(listed<Cast>(), arity<Cast>());
    EXPECT_EQ(listed<Accumulation>(), arity<Accumulation>());
    EXPECT_EQ(listed<Update>(), arity<Update>());
    EXPECT_EQ(listed<Scaling>(), arity<Scaling>());
    EXPECT_EQ(listed<TypeUse>(), arity<TypeUse>());
    EXPECT_EQ(listed<Setting>(), arity<Setting>());
    EXPECT_EQ(listed<Definition>(), arity<Definition>());
    EXPECT_EQ(listed<Alias>(), arity<Alias>());
    EXPECT_EQ(listed<Coverage>(), arity<Coverage>());
    EXPECT_EQ(listed<Dependency>(), arity<Dependency>());
    EXPECT_EQ(listed<Unit>() + 3, arity<Unit>()) << "coverage, functions and dependencies are lines";
    EXPECT_EQ(listed<Function>() + 10, arity<Function>()) << "ten kinds of facts are lines";
}

// A field at its default is neither printed nor stored, so a test that reads a unit back does not see it.
struct DiffersFromDefault {
    void place(const SourceSpan& span) { EXPECT_NE(span, SourceSpan{}); }
    void title(Symbol text) { EXPECT_FALSE(text.empty()); }
    void dtypes(DType from, DType to) {
        (*this)("from", from);
        (*this)("to", to);
    }
    template <class T>
    void operator()(std::string_view key, const T& field, const std::type_identity_t<T>& fallback = {}) {
        EXPECT_FALSE(field == fallback) << key;
    }
    template <class T>
    void bare(std::string_view key, const T& field, const std::type_identity_t<T>& fallback) {
        (*this)(key, field, fallback);
    }
    void or_title(std::string_view key, Symbol text, Symbol title) { (*this)(key, text, title); }
    void nested(std::string_view key, const Operand& field) { (*this)(key, field); }
};
template <class... Facts>
void expect_no_default(const Facts&... facts) {
    DiffersFromDefault visitor;
    (fields(visitor, facts), ...);
}

TEST(FactsText, TheFullUnitHasEveryFieldAwayFromItsDefault) {
    const Unit u = full_unit();
    const Function& f = u.functions[0];
    expect_no_default(u, u.coverage, u.dependencies[0], f, f.template_args[0], f.params[0], f.aliases[0],
                      f.flow[0], f.flow[0].to[0], f.calls[0], f.calls[0].args[0], f.casts[0],
                      f.accumulations[0], f.updates[0], f.scalings[0], f.types[0], f.settings[0],
                      f.definitions[0]);
}

TEST(FactsText, IsPleasantToWriteByHand) {
    const Unit unit = parsed(R"(
        # A comment, and no version line.
        unit norm.cu
        func 3:6 layer_norm params=[{fp16 pointer name=out} {int32 name=n}] kind=kernel
       cast 12:7 fp32->fp16 form=intrinsic purpose=store source.text="q / n" source.stat=variance target="v[b]"
            call 14:3 helper callee=helper args=[{fp16 name=x param=0} constant=true fp32] result.dtype=fp16 in_place
            block to=[1 {2 condition=amp when=false}]
            block
            block leaves
        func main
    )");
    EXPECT_EQ(unit.path, Symbol("norm.cu"));
    ASSERT_EQ(unit.functions.size(), 2u);
    const Function& f = unit.functions[0];
    EXPECT_EQ(f.usr, Symbol("layer_norm")) << "the name stands in for what is not written";
    EXPECT_EQ(f.display, Symbol("layer_norm"));
    EXPECT_EQ(f.span, (SourceSpan{Symbol("norm.cu"), 3, 6, 0, 0}));
    EXPECT_EQ(f.params[0], (Parameter{Symbol("out"), DType::fp16, Shape::pointer}));
    EXPECT_EQ(f.params[1].dtype, DType::int32);
    EXPECT_EQ(f.casts[0].source.stat, Stat::variance);
    EXPECT_EQ(f.casts[0].target, Symbol("v[b]"));
    EXPECT_EQ(f.casts[0].span.file, Symbol("norm.cu"));
    ASSERT_EQ(f.calls[0].args.size(), 3u);
    EXPECT_EQ(f.calls[0].args[0].param, 0);
    EXPECT_EQ(f.calls[0].args[1].constant, Symbol("true"));
    EXPECT_EQ(f.calls[0].args[2].dtype, DType::fp32);
    EXPECT_EQ(f.calls[0].result.dtype, DType::fp16);
    EXPECT_TRUE(f.calls[0].in_place);
    ASSERT_EQ(f.flow.size(), 3u);
    EXPECT_EQ(f.flow[0].to[1], (Edge{2, Symbol("amp"), false}));
    EXPECT_TRUE(f.flow[2].leaves);
}

TEST(FactsText, AcceptsFieldsInAnyOrderAndWindowsLineEnds) {
    const Unit unit =
        parsed("unit a.cu\r\nfunc f\r\n  cast 1:2 fp32->fp16 output source.name=b purpose=store\r\n");
    const Unit same = parsed("unit a.cu\nfunc f\n  cast 1:2 fp32->fp16 purpose=store source.name=b output");
    EXPECT_EQ(unit, same);
}

TEST(FactsText, NamesTheLineAndWhatWasExpected) {
    EXPECT_EQ(error_of(""), "facts:1: expected a line that starts with 'unit'");
    EXPECT_EQ(error_of("facts 999\nunit a"), "facts:1: expected version 2 of the facts format");
    EXPECT_EQ(error_of("unit a\nunit b"), "facts:2: expected one unit only, found a second");
    EXPECT_THAT(error_of("unit a\ncall 1:1 f"), HasSubstr("facts:2: expected func, call,"));
    EXPECT_EQ(error_of("unit a\nfunc f\ncall 1:1 g op"), "facts:3: unexpected 'op'");
    EXPECT_EQ(error_of("unit a\nfunc f\ncall 1:1 g kind=methd"),
              "facts:3: expected one of function method constructor destructor kernel op assembly "
              "after 'kind=', found 'methd'");
    EXPECT_EQ(error_of("unit a\nfunc f\ncall 1:1 g block=-1"),
              "facts:3: expected a number that is not negative after 'block=', found '-1'");
    EXPECT_EQ(error_of("unit a\nfunc f\ncall 1:1 g colour=red"), "facts:3: no field 'colour' here");
    EXPECT_EQ(error_of("unit a\nfunc f\ncall 1:1 \"g"),
              "facts:3: expected a closing quote, found the end of the line");
    EXPECT_EQ(error_of("unit a\nfunc f\ncast 1:1 fp32->fp17"),
              "facts:3: expected a pair of dtypes like fp32->fp16, found 'fp32->fp17'");
    EXPECT_THAT(error_of("unit a\nfunc f params=[{fp16"), HasSubstr("expected a closing }"));
    EXPECT_THAT(error_of("unit a\nfunc f params=[fp16"), HasSubstr("expected a closing ]"));
    EXPECT_THAT(error_of("unit a\nfunc f returns="), HasSubstr("expected a dtype after 'returns='"));
}

TEST(FactsText, RefusesAnIndexThatNothingHas) {
    EXPECT_THAT(error_of("unit a\nfunc f\nreturn call=0"), HasSubstr("facts:2: a returned value"));
    EXPECT_THAT(error_of("unit a\nfunc f\ncall g block=1"), HasSubstr("a call in a block"));
    EXPECT_THAT(error_of("unit a\nfunc f\nblock to=[1]"), HasSubstr("an edge"));
    EXPECT_THAT(error_of("unit a\nfunc f\ncall g args=[{param=0}]"), HasSubstr("an argument"));
    EXPECT_EQ(error_of("unit a\nfunc f params=[fp16]\ncall g args=[{param=0}]\nreturn call=0"), "parsed");
}

TEST(FactsText, SurvivesDamage) {
    const std::string valid = print_facts(full_unit());
    std::mt19937 random(20240611);
    int read = 0, refused = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string text = valid;
        for (unsigned edits = random() % 4 + 1; edits > 0; --edits) {
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
                case 0:
                    text[at] = static_cast<char>(random());
                    break;
                case 1:
                    text.erase(at, random() % 9);
                    break;
                case 2:
                    text.insert(at, 1, " =[]{}\"\\\n:-0x"[random() % 13]);
                    break;
                default:
                    text.insert(at, text.substr(random() % text.size(), random() % 40));
                    break;
            }
            if (text.empty()) text = "x";
        }
        if (const auto unit = parse_facts(text)) {
            ++read;
            ASSERT_EQ(parsed(print_facts(*unit)), *unit) << text;
        } else {
            ++refused;
            ASSERT_THAT(unit.error().message, testing::StartsWith("facts:"));
        }
    }
    EXPECT_GT(read, 100);
    EXPECT_GT(refused, 100);
}

TEST(FactsText, SurvivesALineWithoutEnd) {
    const std::string head = "unit a\nfunc f\ncall 1:1 g ";
    for (const std::string& piece : {"args=[", "args=[{", "x ", "[", "a=", "{"}) {
        std::string text = head;
        while (text.size() < 1'000'000) text += piece;
        EXPECT_FALSE(parse_facts(text)) << piece;
    }
}

// The cache reads this format on every run. The bound is loose: debug builds and sanitizers pass
// too.
TEST(FactsText, ReadsAtCacheSpeed) {
    Unit unit = full_unit();
    for (int i = 0; i < 2000; ++i) {
        unit.functions.push_back(full_function());
        unit.functions.back().usr = Symbol("c:@F@f" + std::to_string(i));
    }
    const std::string text = print_facts(unit);
    const auto start = std::chrono::steady_clock::now();
    const Unit back = parsed(text);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(back, unit);
    RecordProperty("megabytes_per_second",
                   static_cast<int>(static_cast<double>(text.size()) / 1e6 / seconds.count()));
    EXPECT_LT(seconds.count(), 5.0) << text.size() << " bytes";
}

}  // namespace
}  // namespace mp::lint
