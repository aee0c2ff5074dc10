#pragma once

// A unit in which every field of every struct is away from its default, and one of each is at it.

#include <cstdint>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

inline Operand full_operand() {
    return {.dtype = DType::fp16,
            .shape = Shape::vec,
            .stat = Stat::variance,
            .assumed = true,
            .param = 1,
            .call = 0,
            .name = Symbol("this->scale"),
            .constant = Symbol("1e-08"),
            .text = Symbol("q / n, [0]"),
            .keyword = Symbol("dtype"),
            .span = {Symbol("other.py"), 2, 3, 2, 9},
            .alternative = Symbol("1"),
            .refers = Symbol("pkg.settings.EPS")};
}

inline Operand of_dtype(DType dtype) {
    Operand operand;
    operand.dtype = dtype;
    return operand;
}

inline Call named_call(std::string_view name) {
    Call call;
    call.name = Symbol(name);
    return call;
}

inline SourceSpan span(std::string_view file, std::uint32_t line) {
    return {.file = Symbol(file), .line = line, .column = 7, .end_line = line + 1, .end_column = 3};
}

// Every field of every struct away from its default.
inline Function full_function() {
    const Operand operand = full_operand();
    const TemplateArgument argument{Symbol("nvcuda::wmma::accumulator"), DType::bf16, Shape::scalar};
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
    f.params = {{Symbol("x"), DType::fp16, Shape::pointer, Symbol("1e-08"), Symbol("pkg.EPS")},
                {},
                {Symbol(""), DType::unknown, Shape::array}};
    f.returns = DType::e4m3;
    f.annotations = {Symbol("mp::low_precision"), Symbol(""), Symbol("with \"quotes\"\\ and\nnewline\x01")};
    f.is_virtual = true;
    f.overrides = {Symbol("c:@B")};
    f.is_unnamed = true;
    f.aliases = {{Symbol("scaler"), Symbol("self.scaler"), true}, {}};
    f.flow = {{.span = span("other.h", 8),
               .to = {{1, Symbol("amp && x"), false, true}, {0, Symbol("amp"), false}, {1, {}, false}},
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
                .unused = true,
                .by_version = true,
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
                        .at_least = 32,
                        .shared = true,
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
                  .adds_a_square = true,
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
    f.definitions = {{.span = span("other.py", 9), .name = Symbol("pkg.settings.EPS"), .value = operand}, {}};
    f.returned = {operand, {}};
    return f;
}

inline Unit full_unit() {
    Unit u;
    u.path = Symbol("src/a.cu");
    u.language = Language::cuda;
    u.state = UnitState::partial;
    u.headers = Symbol("toolkit 13.0");
    u.passes = {Symbol("host"), Symbol("device sm_80")};
    u.flags = {Symbol("--use_fast_math"), Symbol("-ftz=true")};
    u.taken = {Symbol("ext.run")};
    u.coverage = {1, 2, 3, 4, 5, 6, {Symbol("x.h")}, {Symbol("a.cu:1:2: no such \xc3\xa9")}};
    u.functions = {full_function(), Function{}};
    u.dependencies = {{Symbol("src/a.cu"), 12, -3, ~std::uint64_t{0}}, {}};
    return u;
}

}  // namespace mp::lint
