#include "analyzer/facts/text.hpp"

#include <chrono>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/facts/fields.hpp"

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

Operand full_operand() {
    return {.dtype = DType::fp16,
            .shape = Shape::vec,
            .stat = Stat::variance,
            .param = 1,
            .call = 0,
            .name = Symbol("this->scale"),
            .constant = Symbol("1e-08"),
            .text = Symbol("q / n, [0]"),
            .keyword = Symbol("dtype"),
            .span = {Symbol("other.py"), 2, 3, 2, 9},
            .alternative = Symbol("1")};
}

Operand of_dtype(DType dtype) {
    Operand operand;
    operand.dtype = dtype;
    return operand;
}

Call named_call(std::string_view name) {
    Call call;
    call.name = Symbol(name);
    return call;
}

SourceSpan span(std::string_view file, std::uint32_t line) {
    return {.file = Symbol(file), .line = line, .column = 7, .end_line = line + 1, .end_column = 3};
}

// Every field of every struct away from its default.
Function full_function() {
    const Operand operand = full_operand();
    const TemplateArgument argument{Symbol("nvcuda::wmma::accumulator"), DType::bf16,
                                    Shape::scalar};
    Function f;
    f.usr = Symbol("c:@F@f#&1{x=2}");
    f.name = Symbol("ns::f");
    f.display = Symbol("ns::f<__half, 16>");
    f.kind = FunctionKind::kernel;
    f.span = span("dir with blank/a.cuh", 3);
    f.instantiated = span("b:1.cu", 9);
    f.parent_class = Symbol("ns::C");
    f.bases = {Symbol("torch.nn.Module"), Symbol("")};
    f.template_args = {argument, {}};
    f.params = {
        {Symbol("x"), DType::fp16, Shape::pointer}, {}, {Symbol(""), DType::unknown, Shape::array}};
    f.returns = DType::e4m3;
    f.annotations = {Symbol("mp::low_precision"), Symbol(""),
                     Symbol("with \"quotes\"\\ and\nnewline\x01")};
    f.is_virtual = true;
    f.overrides = {Symbol("c:@B")};
    f.flow = {{.span = span("other.h", 8),
               .to = {{1, Symbol("amp && x"), true}, {0, Symbol("amp"), false}, {1, {}, false}},
               .leaves = true},
              {}};
    f.calls = {{.span = span("dir with blank/a.cuh", 4),
                .kind = CallKind::kernel,
                .callee = Symbol("c:@g"),
                .name = Symbol("operator=="),
                .op = Op("softmax"),
                .template_args = {argument},
                .args = {operand, {}, of_dtype(DType::fp32)},
                .result = operand,
                .macro = Symbol("ON"),
                .block = 1,
                .loop_depth = 2,
                .in_place = true,
                .lambdas = {Symbol("c:@L")}},
               named_call("12:7"),
               {}};
    f.casts = {{.span = span("other.h", 5),
                .from = DType::fp32,
                .to = DType::e5m2,
                .form = CastForm::explicit_,
                .purpose = Purpose::store,
                .role = Role::added,
                .source = operand,
                .target = Symbol("var[blockIdx.x]"),
                .function = Symbol("g"),
                .inner = 0,
                .in_loop = true,
                .loop_index = true,
                .output = true,
                .bound = ~std::uint64_t{0},
                .macro = Symbol("M(x)"),
                .unsaturated = true},
               {}};
    f.accumulations = {{.span = span("", 6),
                        .declared = span("other.h", 1),
                        .name = Symbol("acc"),
                        .dtype = DType::fp16,
                        .element = DType::fp32,
                        .shape = Shape::vec,
                        .op = AccumulateOp::fma,
                        .form = AccumulateForm::tree,
                        .storage = Storage::shared,
                        .stat = Stat::none,
                        .trips = 64,
                        .loop_depth = 3,
                        .through = Symbol("hadd2"),
                        .through_span = span("other.h", 2),
                        .call = 1},
                       {}};
    f.updates = {{.span = {Symbol("dir with blank/a.cuh"), 0, 0, 0, 0},
                  .target = Symbol("p[i]"),
                  .param = 2,
                  .dtype = DType::bf16,
                  .computed = DType::fp32,
                  .subtracts = true,
                  .interpolates = true,
                  .has_master = true,
                  .master_optional = true,
                  .compensated = true,
                  .through = Symbol("round"),
                  .through_usr = Symbol("c:@r")},
                 {}};
    f.scalings = {{.span = span("other.h", 7),
                   .target = Symbol("g[i]"),
                   .param = 2,
                   .dtype = DType::fp16,
                   .factor = operand,
                   .divides = true,
                   .stored = true,
                   .averages = true,
                   .subtracts = true},
                  {}};
    f.types = {{.span = {{}, 1, 1, 1, 9},
                .name = Symbol("cub::BlockReduce"),
                .args = {argument, {}},
                .alias = Symbol("Reduce")},
               {}};
    f.settings = {{.span = span("other.py", 7),
                   .key = Symbol("torch.backends.cudnn.allow_tf32"),
                   .value = operand,
                   .block = 1},
                  {}};
    f.returned = {operand, {}};
    return f;
}

Unit full_unit() {
    Unit u;
    u.path = Symbol("src/a.cu");
    u.language = Language::cuda;
    u.state = UnitState::partial;
    u.headers = Symbol("toolkit 13.0");
    u.passes = {Symbol("host"), Symbol("device sm_80")};
    u.flags = {Symbol("--use_fast_math"), Symbol("-ftz=true")};
    u.coverage = {1, 2, 3, 4, 5, 6, {Symbol("x.h")}, {Symbol("a.cu:1:2: no such \xc3\xa9")}};
    u.functions = {full_function(), Function{}};
    u.dependencies = {{Symbol("src/a.cu"), 12, -3, ~std::uint64_t{0}}, {}};
    return u;
}

TEST(FactsText, ReadsBackEveryFieldItPrints) {
    const Unit unit = full_unit();
    const std::string text = print_facts(unit);
    EXPECT_EQ(parsed(text), unit) << text;
    EXPECT_EQ(print_facts(parsed(text)), text);
}

TEST(FactsText, ReadsBackAnEmptyUnit) {
    EXPECT_EQ(parsed(print_facts(Unit{})), Unit{});
}

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
    EXPECT_EQ(listed<Coverage>(), arity<Coverage>());
    EXPECT_EQ(listed<Dependency>(), arity<Dependency>());
    EXPECT_EQ(listed<Unit>() + 3, arity<Unit>())
        << "coverage, functions and dependencies are lines";
    EXPECT_EQ(listed<Function>() + 9, arity<Function>()) << "nine kinds of facts are lines";
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
    const Unit unit = parsed(
        "unit a.cu\r\nfunc f\r\n  cast 1:2 fp32->fp16 output source.name=b purpose=store\r\n");
    const Unit same =
        parsed("unit a.cu\nfunc f\n  cast 1:2 fp32->fp16 purpose=store source.name=b output");
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
    EXPECT_THAT(error_of("unit a\nfunc f returns="),
                HasSubstr("expected a dtype after 'returns='"));
}

TEST(FactsText, RefusesAnIndexThatNothingHas) {
    EXPECT_THAT(error_of("unit a\nfunc f\nreturn call=0"), HasSubstr("facts:2: a returned value"));
    EXPECT_THAT(error_of("unit a\nfunc f\ncall g block=1"), HasSubstr("a call in a block"));
    EXPECT_THAT(error_of("unit a\nfunc f\nblock to=[1]"), HasSubstr("an edge"));
    EXPECT_THAT(error_of("unit a\nfunc f\ncall g args=[{param=0}]"), HasSubstr("an argument"));
    EXPECT_EQ(error_of("unit a\nfunc f params=[fp16]\ncall g args=[{param=0}]\nreturn call=0"),
              "parsed");
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
            case 0: text[at] = static_cast<char>(random()); break;
            case 1: text.erase(at, random() % 9); break;
            case 2: text.insert(at, 1, " =[]{}\"\\\n:-0x"[random() % 13]); break;
            default: text.insert(at, text.substr(random() % text.size(), random() % 40)); break;
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
