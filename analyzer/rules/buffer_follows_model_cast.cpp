// MP503 buffer-follows-model-cast
//
// What   A table of frequencies or slopes, computed from positions by division, powers or exponentials,
//        is registered as a buffer of a module.
// Why    `.half()`, `.bfloat16()`, `.to(dtype)` and engines cast floating buffers with the parameters.
//        In bf16 the table has 8 bits: positions above 256 turn by wrong angles. Switching autocast
//        off does not bring the bits back.
// Fix    Keep the table as a plain attribute, or recompute it in fp32 where it is used.
// Silent Buffers of integers and masks; finished sines and cosines; modules that override
//        `_apply`, `to` or `half`; tables that are
//        made again in the method that uses them. A use that upcasts first (`self.t.float()`) is a note:
//        the bits are gone, but the author knew that the buffer may be half.
// Tests  testdata/lint/MP503.md, tests/analyzer/rules/buffer_follows_model_cast_test.cpp

#include <array>
#include <unordered_map>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 2> kPositions{"arange", "linspace"};
constexpr std::array<std::string_view, 13> kCurves{
    "pow",  "exp",   "reciprocal",  "div",          "true_divide", "outer",   "logspace",
    "exp2", "rsqrt", "__truediv__", "__rtruediv__", "__pow__",     "__rpow__"};
constexpr std::array<std::string_view, 4> kOverrides{"_apply", "to", "half", "bfloat16"};

bool is_curve(const Call& call) {
    return any_of(call.op.name(), kCurves) || any_of(leaf(call.name.str()), kCurves);
}

bool is_position(const Call& call) { return any_of(leaf(call.name.str()), kPositions); }

// A sine keeps what its angle had: rounding it afterwards costs no more than any value in half.
bool is_wave(const Call& call) { return call.op.name() == "sin" || call.op.name() == "cos"; }

// Positions that went through a curve: what rounding to few bits destroys.
bool is_table(const Function& f, const Operand& value) {
    const Call* curve = origin(f, value, [](const Call& c) { return is_curve(c) || is_wave(c); });
    if (!curve || is_wave(*curve)) return false;
    for (const Operand& input : curve->args)
        if (origin(f, input, is_position)) return true;
    return false;
}

bool is_integer_or_low(const Operand& value) {
    return value.dtype != DType::unknown && !is_wide(value.dtype);
}

// What the other methods of a class do with a buffer.
struct Uses {
    const Call* upcast = nullptr;
    bool remade = false;  // another method registers or assigns it
};

class Classes {
public:
    explicit Classes(const Program& program) {
        for (const Function* f : program.functions())
            if (!f->parent_class.empty()) methods_[f->parent_class].push_back(f);
    }

    bool overrides_casts(Symbol name) const {
        const auto found = methods_.find(name);
        if (found == methods_.end()) return false;
        for (const Function* f : found->second)
            if (any_of(leaf(f->name.str()), kOverrides)) return true;
        return false;
    }

    Uses uses(const Function& made_in, std::string_view attribute) const {
        Uses out;
        const auto found = methods_.find(made_in.parent_class);
        if (found == methods_.end()) return out;
        for (const Function* f : found->second) {
            for (const Call& c : f->calls) {
                if (f != &made_in && c.result.name.str() == attribute) out.remade = true;
                if (c.args.empty() || c.args[0].name.str() != attribute) continue;
                const std::string_view name = leaf(c.name.str());
                const bool widens =
                    name == "float" || name == "double" || (name == "to" && is_wide(c.result.dtype));
                if (widens && f != &made_in) out.upcast = &c;
            }
        }
        return out;
    }

private:
    std::unordered_map<Symbol, std::vector<const Function*>> methods_;
};

std::string attribute_of(const Operand& name) { return "self." + std::string(spelled(name)); }

void check_buffer(const RuleContext& context, const Classes& classes, const Function& f, const Call& call,
                  Findings& out) {
    const Operand* name = argument(call, 0, "name");
    const Operand* value = argument(call, 1, "tensor");
    if (!name || !value || spelled(*name).empty() || is_integer_or_low(*value)) return;
    if (!is_table(f, *value) || classes.overrides_casts(f.parent_class)) return;
    const Uses uses = classes.uses(f, attribute_of(*name));
    if (uses.remade) return;
    std::vector<Note> notes;
    if (uses.upcast) notes.push_back({uses.upcast->span, "widening it here does not bring the bits back"});
    emit(context, f,
         {.rule = "MP503",
          .severity = uses.upcast ? Severity::note : Severity::warning,
          .span = call.span,
          .message = "buffer '" + std::string(spelled(*name)) +
                     "' is computed from positions and loses its bits when the module is cast to half",
          .fix = "keep it as a plain attribute, or recompute it in fp32 where it is used",
          .notes = std::move(notes),
          .function = {}},
         out);
}

bool registers_buffer(std::string_view name) { return leaf(name) == "register_buffer"; }

void check(const RuleContext& context, Findings& out) {
    std::vector<std::pair<const Function*, const Call*>> buffers;
    for_each_call(context.program, registers_buffer,
                  [&](const Function& f, const Call& call) { buffers.emplace_back(&f, &call); });
    if (buffers.empty()) return;
    const Classes classes(context.program);
    for (const auto& [f, call] : buffers) check_buffer(context, classes, *f, *call, out);
}

constexpr std::array<std::string_view, 1> kOwnTriggers{"register_buffer"};

}  // namespace

extern constinit const Rule kBufferFollowsModelCast{.id = "MP503",
                                                    .name = "buffer-follows-model-cast",
                                                    .severity = Severity::warning,
                                                    .on_by_default = true,
                                                    .confirmed_by = "",
                                                    .triggers = {kOwnTriggers},
                                                    .check = check};

}  // namespace mp::lint
