// MP408 reduced-precision-reduction
//
// What   A matrix product may add its partial sums in fp16 or bf16:
//        `allow_fp16_accumulation = True`, `allow_fp16_reduced_precision_reduction = True`; or the
//        flag is left at its default, which is True, in a program that runs long products in fp16.
//        In C++, cuBLAS math modes without CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.
// Why    A long inner dimension is split, and the parts are then added in half: a few more bits are
//        lost, and in fp16 a partial sum above 65504 is inf although the result would fit.
// Fix    Set the flag to False for training.
// Silent The flag set to False, or to something that is not constant; defaults where no product is
//        proven to be both fp16 and long, and in the inference profile.
// Tests  testdata/lint/MP408.md, tests/analyzer/rules/reduced_precision_reduction_test.cpp

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

struct Flag {
    std::string_view setting;  // of Python
    std::string_view setter;   // of at::Context
    DType dtype = DType::unknown;
    bool accumulates = false;  // not only the parts of a split product, every product
};
constexpr std::array<Flag, 3> kFlags{{{"torch.backends.cuda.matmul.allow_fp16_accumulation",
                                       "setAllowFP16AccumulationCuBLAS", DType::fp16, true},
                                      {"torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
                                       "setAllowFP16ReductionCuBLAS", DType::fp16, false},
                                      {"torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
                                       "setAllowBF16ReductionCuBLAS", DType::bf16, false}}};

void report(const RuleContext& context, const Function& f, const Flag& flag, const SourceSpan& span,
            Findings& out) {
    const std::string dtype(label(flag.dtype));
    std::string message = "matrix products may ";
    message += flag.accumulates ? "accumulate in " + dtype : "join their partial sums in " + dtype;
    if (flag.dtype == DType::fp16)
        message += ": a partial sum above 65504 is inf although the result would fit";
    else
        message += ": every join rounds to its 8 bits";
    const bool warns = flag.accumulates && !context.inference;
    emit(context, f,
         {.rule = "MP408",
          .severity = warns ? Severity::warning : Severity::note,
          .span = span,
          .message = std::move(message),
          .fix = "set it to false while training",
          .notes = {},
          .function = {}},
         out);
}

// ---- defaults: one note for a program

// Products over so many terms are split, and their parts joined (pytorch issue 92599).
constexpr double kLongSum = 4096;

struct Place {
    const Function* function = nullptr;
    SourceSpan at;
    explicit operator bool() const { return function != nullptr; }
};

// The program sets the flag, to any value.
bool sets_flag(const Program& program, const Flag& flag) {
    bool found = std::ranges::any_of(program.functions(), [&](const Function* f) {
        return std::ranges::any_of(f->settings,
                                   [&](const Setting& setting) { return setting.key.str() == flag.setting; });
    });
    for_each_call(program, last_part_in({&flag.setter, 1}),
                  [&](const Function&, const Call&) { found = true; });
    return found;
}

// Where fp16 on CUDA is asked for: autocast regions and engines.
std::vector<Place> fp16_of(const RuleContext& context) {
    std::vector<Place> found;
    static constexpr std::array<std::string_view, 1> kAutocast{"autocast"};
    for_each_call(context.program, last_part_in(kAutocast), [&](const Function& f, const Call& call) {
        const auto region = autocast_call(call);
        if (region && region->device == "cuda" && !is_disabled(*region) &&
            region_dtype(*region) == DType::fp16)
            found.push_back({&f, call.span});
    });
    for (const Engine& engine : engines_of(context))
        if (engine.dtype == DType::fp16 && engine.function) found.push_back({engine.function, engine.at});
    return found;
}

std::vector<Place> long_products(const RuleContext& context) {
    std::vector<Place> found;
    static constexpr std::array<std::string_view, 1> kLinear{"torch.nn.Linear"};
    for_each_call(context.program, name_in(kLinear), [&](const Function& f, const Call& call) {
        const Operand* terms = argument(call, 0, "in_features");
        if (terms && number_of(*terms).value_or(0) >= kLongSum) found.push_back({&f, call.span});
    });
    return found;
}

// A product in the file where fp16 is asked for, or in one that calls connect with it.
const Place* product_near(const RuleContext& context, const Place& half, const std::vector<Place>& products) {
    const std::vector<Symbol>& near = protocol_of(context).files_near(*half.function);
    const auto found = std::ranges::find_if(products, [&](const Place& product) {
        const Symbol file = product.function->span.file;
        return file == half.function->span.file || std::ranges::find(near, file) != near.end();
    });
    return found == products.end() ? nullptr : &*found;
}

void check_defaults(const RuleContext& context, Findings& out) {
    const std::vector<Place> products = long_products(context);
    if (products.empty() || sets_flag(context.program, kFlags[1])) return;
    for (const Place& half : fp16_of(context)) {
        const Place* product = product_near(context, half, products);
        if (!product) continue;
        emit(context, *half.function,
             {.rule = "MP408",
              .severity = Severity::note,
              .span = half.at,
              .message = "matrix products in fp16 may join their partial sums in fp16, which is "
                         "torch's default: a partial sum above 65504 is inf although the result "
                         "would fit",
              .fix = "set torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = "
                     "False while training",
              .notes = {{product->at, "a product over " + std::to_string(static_cast<int>(kLongSum)) +
                                          " terms or more is made here"}},
              .function = {}},
             out);
        return;
    }
}

// ---- cuBLAS

bool mentions_any(const Call& call, std::string_view part) {
    return std::ranges::any_of(call.args, [&](const Operand& a) {
        return mentions(a.constant.str(), part) || mentions(a.text.str(), part);
    });
}

constexpr std::array<std::string_view, 1> kSetsMode{"cublasSetMathMode"};

bool is_product(std::string_view name) { return leaf(name).starts_with("cublasGemm"); }

// A product of half matrices that is summed in fp32: only joining its parts may round.
bool is_half_product(const Call& call) {
    const auto constant = [&](std::string_view value) {
        return std::ranges::any_of(call.args,
                                   [&](const Operand& a) { return leaf(a.constant.str()) == value; });
    };
    return (constant("CUDA_R_16F") || constant("CUDA_R_16BF")) &&
           (constant("CUBLAS_COMPUTE_32F") || constant("CUDA_R_32F"));
}

void check_cublas(const RuleContext& context, Findings& out) {
    Place mode, product;
    bool decided = false;
    for_each_call(context.program, last_part_in(kSetsMode), [&](const Function& f, const Call& call) {
        if (call.args.size() < 2) return;
        const bool is_option = call.args[1].constant.empty();  // of the program
        if (is_option || mentions_any(call, "DISALLOW_REDUCED_PRECISION")) decided = true;
        if (!mode) mode = {&f, call.span};
    });
    if (decided) return;
    for_each_call(context.program, is_product, [&](const Function& f, const Call& call) {
        if (!product && is_half_product(call)) product = {&f, call.span};
    });
    if (!product) return;
    const Place& at = mode ? mode : product;
    std::vector<Note> notes;
    if (mode) notes.push_back({product.at, "half matrices are multiplied here"});
    emit(context, *at.function,
         {.rule = "MP408",
          .severity = Severity::note,
          .span = at.at,
          .message = "cuBLAS may join the partial sums of half matrices in half, which its math mode "
                     "allows unless told otherwise",
          .fix = "set CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION with cublasSetMathMode",
          .notes = std::move(notes),
          .function = {}},
         out);
}

// ---- flags that are switched on

const Flag* flag_set_by(std::string_view name) {
    const auto* found = std::ranges::find(kFlags, leaf(name), &Flag::setter);
    return is_within(name, "at") && found != kFlags.end() ? found : nullptr;
}

void check_flags(const RuleContext& context, Findings& out) {
    for_each(context, &Function::settings, [&](const Function& f, const Setting& setting) {
        const auto* flag = std::ranges::find(kFlags, setting.key.str(), &Flag::setting);
        if (flag != kFlags.end() && is_true(&setting.value)) report(context, f, *flag, setting.span, out);
    });
    for_each_call(context.program, flag_set_by, [&](const Function& f, const Call& call) {
        if (is_true(argument(call, 0, "allow")))
            report(context, f, *flag_set_by(call.name.str()), call.span, out);
    });
}

void check(const RuleContext& context, Findings& out) {
    if (!context.inference) {
        check_defaults(context, out);
        check_cublas(context, out);
    }
    check_flags(context, out);
}

}  // namespace

extern constinit const Rule kReducedPrecisionReduction{.id = "MP408",
                                                       .name = "reduced-precision-reduction",
                                                       .severity = Severity::warning,
                                                       .on_by_default = true,
                                                       .confirmed_by = "MPT010",
                                                       .triggers = {kLowDtypes, kRegions, kEngines},
                                                       .check = check};

}  // namespace mp::lint
