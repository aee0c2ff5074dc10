// MP607 mixed-tf32-switches
//
// What   TF32 of matrix products, or of cuDNN, is set by an old switch (`allow_tf32`,
//        `set_float32_matmul_precision`) and by the new one (`fp32_precision`), to different values.
// Why    An old switch sets the new one too, but not the other way round. When they differ, PyTorch raises a
//        RuntimeError at whatever reads the old one next: torch.compile, a library, a context manager.
// Fix    Use one of the two everywhere.
// Silent Equal values are a note; the other branch of a test for the attribute or the version; values
//        that are not known.
// Tests  testdata/lint/MP607.md, tests/analyzer/rules/mixed_tf32_switches_test.cpp

#include <array>
#include <optional>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

enum class Part : std::uint8_t { matmul, cudnn };

// One place where TF32 is set.
struct Setter {
    const Function* function = nullptr;
    std::uint32_t block = 0;
    SourceSpan span;
    Part part = Part::matmul;
    bool is_new = false;
    bool on = false;
};

std::optional<bool> precision_of(const Operand& value) {
    const std::string_view named = spelled(value);
    if (named == "tf32") return true;
    if (named == "ieee" || named == "none") return false;
    return {};
}

std::optional<Setter> setter_of(const Function& f, const Setting& s) {
    const std::string_view key = s.key.str();
    Setter found{.function = &f, .block = s.block, .span = s.span};
    found.part = key.starts_with("torch.backends.cudnn.") ? Part::cudnn : Part::matmul;
    if (key == "torch.backends.cuda.matmul.allow_tf32" || key == "torch.backends.cudnn.allow_tf32") {
        found.on = is_true(&s.value);
        return found.on || is_false(&s.value) ? std::optional(found) : std::nullopt;
    }
    constexpr std::array<std::string_view, 3> kNew{"torch.backends.cuda.matmul.fp32_precision",
                                                   "torch.backends.cudnn.conv.fp32_precision",
                                                   "torch.backends.cudnn.rnn.fp32_precision"};
    const auto on = any_of(key, kNew) ? precision_of(s.value) : std::nullopt;
    if (!on) return {};
    found.is_new = true;
    found.on = *on;
    return found;
}

constexpr std::array<std::string_view, 1> kSetsPrecision{"torch.set_float32_matmul_precision"};

std::optional<Setter> setter_of(const Function& f, const Call& call) {
    const Operand* precision = argument(call, 0, "precision");
    const std::string_view value = precision ? spelled(*precision) : "";
    if (value != "highest" && value != "high" && value != "medium") return {};
    return Setter{.function = &f, .block = call.block, .span = call.span, .on = value != "highest"};
}

std::vector<Setter> setters_of(const Program& program) {
    std::vector<Setter> found;
    for (const Function* f : program.functions()) {
        if (!is_python(*f)) continue;
        for (const Setting& s : f->settings)
            if (const auto setter = setter_of(*f, s)) found.push_back(*setter);
    }
    for_each_call(program, name_in(kSetsPrecision), [&](const Function& f, const Call& call) {
        if (const auto setter = is_python(f) ? setter_of(f, call) : std::nullopt) found.push_back(*setter);
    });
    return found;
}

// Whether one run can reach both: both are in one function, or one function leads to the other.
class Runs {
public:
    explicit Runs(const Program& program) : program_(program) {}

    bool both(const Setter& a, const Setter& b) {
        if (a.function == b.function)
            return reaches(*a.function, a.block, b.block) || reaches(*a.function, b.block, a.block);
        return calls(*a.function, *b.function) || calls(*b.function, *a.function);
    }

private:
    bool calls(const Function& from, const Function& to) const {
        return functions_run_by(program_, {&from}).contains(&to);
    }

    const Program& program_;
};

void report(const RuleContext& context, const Setter& now, const Setter& old, Findings& out) {
    const bool differ = now.on != old.on;
    emit(context, *now.function,
         {.rule = "MP607",
          .severity = differ ? Severity::warning : Severity::note,
          .span = now.span,
          .message =
              std::string("TF32 is switched by two APIs") +
              (differ ? ", to different values: what reads the old one next, such as torch.compile, raises"
                      : ", which agree here"),
          .fix = "set fp32_precision everywhere, or the old switches everywhere",
          .notes = {{old.span, std::string("the old switch is set ") + (old.on ? "on" : "off") + " here"}},
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    const std::vector<Setter> setters = setters_of(context.program);
    Runs runs(context.program);
    for (const Setter& now : setters) {
        if (!now.is_new) continue;
        for (const Setter& old : setters) {
            if (old.is_new || old.part != now.part || !runs.both(now, old)) continue;
            report(context, now, old, out);
            break;
        }
    }
}

constexpr std::array<std::string_view, 3> kOwnTriggers{"fp32_precision", "allow_tf32", "matmul_precision"};

}  // namespace

extern constinit const Rule kMixedTf32Switches{.id = "MP607",
                                               .name = "mixed-tf32-switches",
                                               .severity = Severity::warning,
                                               .on_by_default = true,
                                               .confirmed_by = "",
                                               .triggers = {kOwnTriggers},
                                               .check = check};

}  // namespace mp::lint
