// MP407 mma-half-accumulator
//
// What   Tensor-core code accumulates in fp16: a wmma accumulator fragment of half, mma.sync or
//        wgmma with .f16 results, CUTLASS ElementAccumulator = half_t, a CuTe atom *_F16F16F16*. In Python
//        a Triton kernel with tl.dot(..., out_dtype=tl.float16), or with an fp16 accumulator.
// Why    The dot product over K is rounded to 11 bits after every instruction and ends at 65504;
//        the tensor cores would sum in fp32 at the same shape.
// Fix    An fp32 accumulator and a conversion in the epilogue.
// Silent Half operands with float accumulators; matrix_a and matrix_b fragments; integer
//        instructions; a class template that passes the type of its argument on; one mma.sync that adds to
//        zeros: its products are rounded once. A note in a method that nothing calls, beside a wide fragment,
//        for a fragment of at most one product, and for an instruction or a tl.dot that the file also offers with
//        fp32 sums.
// Tests  testdata/lint/MP407.md, tests/analyzer/rules/mma_half_accumulator_test.cpp

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// Where CUTLASS templates take ElementAccumulator.
struct Position {
    std::string_view suffix;
    std::size_t index;
};
constexpr std::array<Position, 6> kCutlass{{{"gemm::device::Gemm", 6},
                                            {"gemm::device::GemmUniversal", 6},
                                            {"gemm::device::GemmBatched", 6},
                                            {"gemm::device::GemmSplitKParallel", 6},
                                            {"conv::kernel::DefaultConv2dFprop", 6},
                                            {"gemm::collective::CollectiveBuilder", 8}}};

bool is_wmma_accumulator(const TypeUse& use) {
    return use.name.str().ends_with("wmma::fragment") && !use.args.empty() &&
           leaf(use.args[0].text.str()) == "accumulator";
}

DType wmma(const TypeUse& use) {
    if (!is_wmma_accumulator(use)) return DType::unknown;
    const auto low = std::ranges::find_if(use.args, is_low_precision, &TemplateArgument::dtype);
    return low == use.args.end() ? DType::unknown : low->dtype;
}

// `using ElementAccumulator = half` is CUTLASS's own word; with another word before "Accumulator"
// the type must be CUTLASS's.
bool names_accumulator(const TypeUse& use) {
    const std::string_view alias = leaf(use.alias.str());
    if (use.args.size() != 1) return false;
    return alias == "ElementAccumulator" || leaf(use.name.str()) == "ElementAccumulator" ||
           (alias.ends_with("Accumulator") && is_within(use.args[0].text.str(), "cutlass"));
}

// Such a name in a configuration, or the argument of a CUTLASS template.
DType cutlass(const TypeUse& use) {
    if (names_accumulator(use)) return use.args[0].dtype;
    if (!is_within(use.name.str(), "cutlass")) return DType::unknown;
    for (const Position& p : kCutlass)
        if (use.name.str().ends_with(p.suffix) && p.index < use.args.size()) return use.args[p.index].dtype;
    return DType::unknown;
}

// SM80_16x8x16_F16F16F16F16_TN lists the types of D, A, B (and C): all F16 means D is.
bool is_half_atom(std::string_view name) {
    name = leaf(name);
    return name.starts_with("SM") && name.find("_F16F16F16") != std::string_view::npos;
}

DType cute(const TypeUse& use) {
    const bool half =
        is_half_atom(use.name.str()) ||
        std::ranges::any_of(use.args, [](const TemplateArgument& a) { return is_half_atom(a.text.str()); });
    return half ? DType::fp16 : DType::unknown;
}

std::vector<std::string_view> split(std::string_view instruction) {
    std::vector<std::string_view> parts;
    for (std::size_t from = 0; from <= instruction.size();) {
        const std::size_t to = std::min(instruction.find('.', from), instruction.size());
        parts.push_back(instruction.substr(from, to - from));
        from = to + 1;
    }
    return parts;
}

bool is_type(std::string_view part) {
    constexpr std::array<std::string_view, 16> kTypes{"f16",  "bf16", "f32",  "f64", "tf32", "e4m3",
                                                      "e5m2", "s32",  "s8",   "u8",  "s4",   "u4",
                                                      "b1",   "e3m2", "e2m3", "e2m1"};
    return any_of(part, kTypes);
}

// Where the types at the end of an instruction begin.
std::size_t first_type(const std::vector<std::string_view>& parts) {
    std::size_t first = parts.size();
    while (first > 0 && is_type(parts[first - 1])) --first;
    return first;
}

// mma.sync...D.A.B.C: D and C are the accumulator. wgmma...D.A.B: D is. wmma.mma...D.C or
// ...D.A.B.C: D is.
bool accumulates_in_f16(std::string_view instruction) {
    const auto parts = split(instruction);
    const std::size_t first = first_type(parts);
    return first < parts.size() && parts.size() - first >= 2 && parts[first] == "f16";
}

bool is_instruction_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':';
}

// The first matrix instruction in the text of an asm statement that accumulates in fp16.
std::string_view half_instruction(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        if (!is_instruction_char(text[at])) {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < text.size() && is_instruction_char(text[end])) ++end;
        const std::string_view word = text.substr(at, end - at);
        const bool matrix =
            word.starts_with("mma.") || word.starts_with("wgmma.mma_async") || word.starts_with("wmma.mma");
        if (matrix && accumulates_in_f16(word)) return word;
        at = end;
    }
    return {};
}

// %7 of the template is args[8] of the call: outputs and inputs follow the text.
const Operand* numbered(const Call& assembly, std::string_view name) {
    if (!name.starts_with('%')) return nullptr;
    name.remove_prefix(1);
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool is_number = error == std::errc() && end == name.data() + name.size();
    return is_number && number + 1 < assembly.args.size() ? &assembly.args[number + 1] : nullptr;
}

// mma.sync ... {d}, {a}, {b}, {c}: every register of c is zero, so the instruction continues no sum.
bool starts_at_zero(const Call& assembly, std::string_view instruction) {
    const std::string_view text = assembly.args[0].constant.str();
    if (!instruction.starts_with("mma.sync")) return false;
    auto from = static_cast<std::size_t>(instruction.data() - text.data()) + instruction.size();
    std::string_view group;
    for (int i = 0; i < 4; ++i) {
        const std::size_t open = text.find('{', from);
        const std::size_t close = text.find('}', std::min(open, text.size()));
        if (close == std::string_view::npos) return false;
        group = text.substr(open + 1, close - open - 1);
        from = close;
    }
    const auto is_zero = [&](auto&& part) {
        std::string_view name(part.begin(), part.end());
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        const Operand* c = numbered(assembly, name);
        return c && c->constant.str() == "0";
    };
    return std::ranges::all_of(group | std::views::split(','), is_zero);
}

// The same instruction with fp32 sums: "mma...f32.f16.f16.f32" of "mma...f16.f16.f16.f16".
std::string with_wide_sums(std::string_view instruction) {
    std::vector<std::string_view> parts = split(instruction);
    const std::size_t first = first_type(parts);
    parts[first] = "f32";
    const std::size_t types = parts.size() - first;
    if (types != 3) parts.back() = "f32";  // three: the last one is B
    std::string out;
    for (const std::string_view part : parts) out += (out.empty() ? "" : ".") + std::string(part);
    return out;
}

// The instructions of each file's functions.
class Instructions {
public:
    explicit Instructions(const Program& program) {
        for_each_call(program, name_in(kAssembly), [this](const Function& f, const Call& call) {
            if (call.kind == CallKind::assembly && !call.args.empty())
                texts_[f.span.file.str()].push_back(call.args[0].constant.str());
        });
    }

    // A file that offers both leaves the choice to its callers.
    bool has_wide(const Function& f, std::string_view instruction) const {
        const auto at = texts_.find(f.span.file.str());
        const std::string wide = with_wide_sums(instruction);
        return at != texts_.end() && std::ranges::any_of(at->second, [&](std::string_view text) {
                   return text.find(wide) != std::string_view::npos;
               });
    }

    static constexpr std::array<std::string_view, 1> kAssembly{"asm"};

private:
    std::unordered_map<std::string_view, std::vector<std::string_view>> texts_;
};

// A method of a specialisation, Mma<half, half>::operator(), that nothing calls: a variant that is only offered.
bool is_only_offered(const RuleContext& context, const Function& f) {
    return f.kind != FunctionKind::kernel && !is_python(f) && !f.parent_class.empty() &&
           context.program.callers(f.usr).empty();
}

// Beside a wide accumulator: the half fragment is filled from it to be stored, or adds a few tiles before it does.
bool has_wide_accumulator(const Function& f) {
    return std::ranges::any_of(f.types, [](const TypeUse& use) {
        return is_wmma_accumulator(use) && std::ranges::any_of(use.args, is_wide, &TemplateArgument::dtype);
    });
}

// A function whose code is not known, and which is given an object: it may multiply.
bool may_multiply(const Call& call) {
    return !is_within(call.name.str(), "nvcuda") &&
           std::ranges::any_of(call.args, [](const Operand& o) { return o.shape == Shape::other; });
}

// How often tensor cores multiply in a function and in what it calls: 2 for more than once.
class MatrixProducts {
public:
    explicit MatrixProducts(const Program& program) : program_(program) {}

    std::size_t in(const Function& f) {
        const auto [entry, is_new] = known_.try_emplace(&f, 0);  // 0 while it is counted: of a recursion
        if (!is_new) return entry->second;
        std::size_t products = 0;
        for (const Call& call : f.calls) {
            products += call.loop_depth > 0 ? 2 * of(call) : of(call);
            if (products >= 2) break;
        }
        return known_[&f] = std::min<std::size_t>(products, 2);
    }

private:
    std::size_t of(const Call& call) {
        if (leaf(call.name.str()) == "mma_sync") return 1;
        if (const Function* callee = program_.definition(call.callee)) return in(*callee);
        return may_multiply(call) ? 2 : 0;
    }

    const Program& program_;
    std::unordered_map<const Function*, std::size_t> known_;
};

void report(const RuleContext& context, const Function& f, const SourceSpan& span, DType dtype,
            std::string what, Findings& out, Severity most = Severity::warning) {
    emit_sum(context, f,
             {.rule = "MP407",
              .severity = is_only_offered(context, f) ? Severity::note : most,
              .span = span,
              .message = std::move(what) + " accumulates in " + std::string(label(dtype)) +
                         ": the dot product rounds to " + std::to_string(significant_bits(dtype)) +
                         " bits after every instruction and overflows from " + shown(overflows_from(dtype)),
              .fix = "accumulate in float and convert in the epilogue",
              .notes = {},
              .function = {}},
             out);
}

// `using ElementAccumulator = ElementAccumulator_` of an epilogue: its template argument, which another place chooses.
bool is_passed_on(const Function& f, const TypeUse& use) {
    const bool is_class = f.usr.str().find("@F@") == std::string_view::npos;
    return names_accumulator(use) && is_class &&
           std::ranges::find(f.template_args, use.args[0].text, &TemplateArgument::text) !=
               f.template_args.end();
}

std::string spelled(const TypeUse& use) {
    if (is_wmma_accumulator(use)) return "wmma accumulator fragment";
    return std::string(use.alias.empty() ? use.name.str() : use.alias.str());
}

// tl.dot(a, b, acc, out_dtype=tl.float16): `acc` has the dtype of the result.
DType triton(const Call& call) {
    if (const Operand* asked = keyword_argument(call, "out_dtype"); asked && asked->dtype != DType::unknown)
        return asked->dtype;
    const Operand* total = argument(call, 2, "acc");
    return total ? total->dtype : DType::unknown;
}

// A kernel multiplies in several places with the accumulators of one decision: the first of them is the place.
class OncePerFunction {
public:
    bool is_first(const Function& f) { return seen_.insert(&f).second; }

private:
    std::unordered_set<const Function*> seen_;
};

void check(const RuleContext& context, Findings& out) {
    OncePerFunction fragments, atoms, instructions;
    MatrixProducts products(context.program);
    std::unordered_set<Symbol> wide_dots;  // files that ask tl.dot for fp32
    const auto asks_for_fp32 = [](const Call& call) {
        const Operand* asked = keyword_argument(call, "out_dtype");
        return asked && is_wide(asked->dtype);
    };
    static constexpr std::array<std::string_view, 1> kDot{"triton.language.dot"};
    for_each_call(context.program, name_in(kDot), [&](const Function& f, const Call& call) {
        if (asks_for_fp32(call)) wide_dots.insert(f.span.file);
    });
    for_each_call(context.program, name_in(kDot), [&](const Function& f, const Call& call) {
        if (const DType dtype = triton(call); is_low_precision(dtype))
            report(context, f, call.span, dtype, "tl.dot", out,
                   wide_dots.contains(f.span.file) ? Severity::note : Severity::warning);
    });
    for_each(context, &Function::types, [&](const Function& f, const TypeUse& use) {
        DType dtype = wmma(use);
        if (is_low_precision(dtype) && !fragments.is_first(f)) return;
        if (dtype == DType::unknown && !is_passed_on(f, use)) dtype = cutlass(use);
        if (dtype == DType::unknown) {
            dtype = cute(use);
            // Traits, atom and tiled product are further names of the first one.
            if (is_low_precision(dtype) && !atoms.is_first(f)) return;
        }
        if (!is_low_precision(dtype)) return;
        const bool adds_little = is_wmma_accumulator(use) && (has_wide_accumulator(f) || products.in(f) < 2);
        report(context, f, use.span, dtype, spelled(use), out,
               adds_little ? Severity::note : Severity::warning);
    });
    const Instructions known(context.program);
    for_each_call(context.program, name_in(Instructions::kAssembly),
                  [&](const Function& f, const Call& call) {
                      if (call.kind != CallKind::assembly || call.args.empty()) return;
                      const std::string_view instruction = half_instruction(call.args[0].constant.str());
                      if (instruction.empty() || starts_at_zero(call, instruction)) return;
                      if (instructions.is_first(f))
                          report(context, f, call.span, DType::fp16, std::string(instruction.substr(0, 72)),
                                 out, known.has_wide(f, instruction) ? Severity::note : Severity::warning);
                  });
}

}  // namespace

extern constinit const Rule kMmaHalfAccumulator{.id = "MP407",
                                                .name = "mma-half-accumulator",
                                                .severity = Severity::warning,
                                                .on_by_default = true,
                                                .confirmed_by = "MPT010",
                                                .triggers = {kLowDtypes},
                                                .check = check};

}  // namespace mp::lint
