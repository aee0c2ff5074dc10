#include "analyzer/analyses/native_callers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analyzer/analyses/autograd_classes.hpp"
#include "analyzer/analyses/excluded_code.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kMostFunctions = 64;  // on the way from a kernel to what Python calls

bool has_dtype(const Function& f, bool (*is)(DType)) {
    return std::ranges::any_of(f.template_args, [&](const TemplateArgument& arg) { return is(arg.dtype); });
}

bool is_wide_variant(const Function& f) { return has_dtype(f, is_wide) && !has_dtype(f, is_low_precision); }

// The same parameters, with a wide dtype where the other has half.
bool takes_wider(const Function& f, const Function& other) {
    bool wider = false;
    const auto fits = [&](const Parameter& a, const Parameter& b) {
        const bool is_wider = is_wide(a.dtype) && is_low_precision(b.dtype);
        wider = wider || is_wider;
        return a.shape == b.shape && (is_wider || a.dtype == b.dtype);
    };
    return std::ranges::equal(f.params, other.params, fits) && wider;
}

// custom_fwd(cast_inputs=...): the dtype that an autograd function's inputs get.
std::string_view cast_inputs(const Function& f) {
    constexpr std::string_view kKey = "cast_inputs=";
    for (const Symbol annotation : f.annotations) {
        const std::string_view text = annotation.str();
        if (leaf(text.substr(0, text.find('('))) != "custom_fwd") continue;
        const std::size_t at = text.find(kKey);
        if (at == std::string_view::npos) continue;
        const std::string_view dtype = text.substr(at + kKey.size());
        return leaf(dtype.substr(0, dtype.find_first_of(",) \n\t")));
    }
    return {};
}

}  // namespace

class NativeCode {
public:
    explicit NativeCode(const RuleContext& context) {
        for (const Function* f : context.program.functions()) {
            if (is_python(*f)) {
                has_python_ = true;
                for (const Definition& d : f->definitions)
                    if (leaf(d.value.refers.str()) == "apply")
                        applied_as_[d.value.refers].push_back(d.name.str());
            } else {
                variants_[place_of(*f)].push_back(f);
                named_[f->name].push_back(f);
                if (!f->template_args.empty()) specialised_[f->name].push_back(f);
            }
        }
    }

    // The body is compiled for a wider dtype too, or another specialisation of the template is. A dispatch macro writes
    // its lambda once for each dtype.
    bool has_wide_variant(const Function& f) const {
        if (is_python(f)) return false;
        if (f.kind != FunctionKind::lambda) return wide_variant(f, [](const Function&) { return true; });
        return std::ranges::any_of(variants_.at(place_of(f)), [&](const Function* other) {
            return other->usr != f.usr && written_in(*other) == written_in(f);
        });
    }

    // One for which the test holds.
    template <typename Test>
    const Function* wide_variant(const Function& f, Test test) const {
        const auto is_it = [&](const Function* other) {
            return other->usr != f.usr && is_wide_variant(*other) && test(*other);
        };
        const auto& here = variants_.at(place_of(f));
        if (const auto found = std::ranges::find_if(here, is_it); found != here.end()) return *found;
        const auto named = specialised_.find(f.name);
        if (named == specialised_.end()) return nullptr;
        const auto found = std::ranges::find_if(named->second, is_it);
        return found == named->second.end() ? nullptr : *found;
    }

    // The overload that the program calls, where nothing calls this one: sum(float) beside sum(half).
    const Function* called_overload(const Program& program, const Function& f) const {
        const auto named = named_.find(f.name);
        if (named == named_.end() || !program.callers(f.usr).empty()) return nullptr;
        const auto is_called = [&](const Function* other) {
            return other->usr != f.usr && !program.callers(other->usr).empty() && takes_wider(*other, f);
        };
        const auto found = std::ranges::find_if(named->second, is_called);
        return found == named->second.end() ? nullptr : *found;
    }

    // One of several functions of a name in a file, of which the program calls none: gemm(half) beside gemm(float).
    bool is_unused_overload(const Program& program, const Function& f) const {
        const auto named = named_.find(f.name);
        // What holds the constants of a class is no function that something could call.
        const bool is_function = f.usr.str().find("@F@") != std::string_view::npos;
        if (named == named_.end() || f.kind == FunctionKind::kernel || !is_function) return false;
        const auto is_beside = [&](const Function* other) {
            return other->span.file == f.span.file && place_of(*other) != place_of(f);
        };
        const auto is_unused = [&](const Function* other) { return program.callers(other->usr).empty(); };
        return std::ranges::any_of(named->second, is_beside) && std::ranges::all_of(named->second, is_unused);
    }

    bool are_variants(const Function& a, const Function& b) const {
        return place_of(a) == place_of(b) || (a.name == b.name && !a.template_args.empty());
    }
    // What the program calls X.apply of this class: `pool = X.apply` in a module.
    std::vector<std::string_view> names_of_apply(Symbol apply) const {
        std::vector<std::string_view> names{apply.str()};
        if (const auto known = applied_as_.find(apply); known != applied_as_.end())
            names.insert(names.end(), known->second.begin(), known->second.end());
        return names;
    }
    bool has_python() const { return has_python_; }

private:
    using Place = std::tuple<std::string_view, std::uint32_t, std::uint32_t>;
    struct PlaceHash {
        std::size_t operator()(const Place& p) const {
            return std::hash<std::string_view>()(std::get<0>(p)) ^
                   (std::get<1>(p) * 1000003u + std::get<2>(p));
        }
    };
    static Place place_of(const Function& f) { return {f.span.file.str(), f.span.line, f.span.column}; }

    std::unordered_map<Place, std::vector<const Function*>, PlaceHash> variants_;
    std::unordered_map<Symbol, std::vector<const Function*>> specialised_;
    std::unordered_map<Symbol, std::vector<const Function*>> named_;
    std::unordered_map<Symbol, std::vector<std::string_view>> applied_as_;
    bool has_python_ = false;
};

namespace {

const NativeCode& native_code_of(const RuleContext& context) {
    return context.native_code.get([&] { return std::make_shared<const NativeCode>(context); });
}

// Whether every way through the function comes through the block: nothing chooses that it runs.
bool always_runs(const Function& f, std::uint32_t block) { return !is_behind_branch(f, block); }

// How the body gets its dtype, looked for upwards from `f`.
class Choice {
public:
    Choice(const RuleContext& context, const Function& f)
        : context_(context), program_(context.program), code_(native_code_of(context)), open_{&f} {
        for (std::size_t next = 0; next < open_.size() && !is_fixed_; ++next) {
            if (open_.size() > kMostFunctions) return;
            follow(*open_[next]);
        }
    }

    // Some caller takes the half variant alone, or every time.
    bool is_fixed() const { return is_fixed_; }
    // No caller does, but a test does.
    bool is_tried() const { return is_tried_ && !is_fixed_ && !made_; }
    // Nothing calls it, while the wide variant has callers.
    const Function* called_instead() const {
        return is_fixed_ || is_tried_ || made_ ? nullptr : called_instead_;
    }
    const std::optional<Note>& made() const { return made_; }

private:
    void follow(const Function& variant) {
        if (variant.kind == FunctionKind::lambda) {
            const Function* around = program_.definition(written_in(variant));
            if (around && code_.has_wide_variant(*around)) push(*around);
            if (around && !made_) made_ = Note{variant.span, "the dtype is chosen here, at run time"};
            return;
        }
        if (program_.callers(variant.usr).empty() && !called_instead_)
            called_instead_ = code_.wide_variant(
                variant, [&](const Function& wide) { return !program_.callers(wide.usr).empty(); });
        for (const Call* call : program_.callers(variant.usr)) {
            const Function* caller = program_.owner(*call);
            if (!caller) continue;
            if (code_.has_wide_variant(*caller))
                push(*caller);
            else if (is_trial(context_, *caller, *call))
                is_tried_ = true;
            else if (always_runs(*caller, call->block) || !calls_wide_variant(*caller, variant))
                is_fixed_ = true;
            else if (!made_)
                made_ = Note{call->span, "the dtype is chosen here, at run time"};
        }
    }

    bool calls_wide_variant(const Function& caller, const Function& variant) const {
        return std::ranges::any_of(caller.calls, [&](const Call& call) {
            const Function* other = program_.definition(call.callee);
            return other && other->usr != variant.usr && code_.are_variants(*other, variant) &&
                   is_wide_variant(*other);
        });
    }

    void push(const Function& f) {
        if (std::ranges::find(open_, &f) == open_.end()) open_.push_back(&f);
    }

    const RuleContext& context_;
    const Program& program_;
    const NativeCode& code_;
    std::vector<const Function*> open_;
    bool is_fixed_ = false;
    bool is_tried_ = false;
    const Function* called_instead_ = nullptr;
    std::optional<Note> made_;
};

// A call of Python to a function of C++, with the Python function that makes it.
struct PythonCaller {
    const Function* function;
    const Call* call;
};

// The calls of Python to a function of this name: a module that is compiled from C++ has no Python body. Where
// autograd functions call it, the other calls are to an apply() that has the name of the op it wraps.
std::vector<PythonCaller> python_calls(const Program& program, std::string_view name) {
    const std::array<std::string_view, 1> names{name};
    std::vector<PythonCaller> calls;
    for_each_call(program, last_part_in(names), [&](const Function& f, const Call& call) {
        if (is_python(f) && !program.definition(call.callee)) calls.push_back({&f, &call});
    });
    const auto is_wrapped = [](const PythonCaller& c) { return is_of_autograd_function(*c.function); };
    if (std::ranges::any_of(calls, is_wrapped)) std::erase_if(calls, std::not_fn(is_wrapped));
    return calls;
}

// The calls of Python that lead to the function, and whether other ways to it begin in C++.
struct Callers {
    std::vector<PythonCaller> python;
    bool has_others = false;
};

Callers callers_of(const Program& program, const Function& f) {
    Callers found;
    std::vector<Symbol> open{f.usr};
    for (std::size_t next = 0; next < open.size() && open.size() <= kMostFunctions; ++next) {
        const Function* at = program.definition(open[next]);
        if (!at) continue;
        const std::vector<PythonCaller> calls = python_calls(program, leaf(at->name.str()));
        found.python.insert(found.python.end(), calls.begin(), calls.end());
        // How a kernel is launched may not be seen; it is by host code.
        const bool is_start =
            at->kind == FunctionKind::host && calls.empty() && program.callers(at->usr).empty();
        found.has_others = found.has_others || is_start;
        for (const Call* caller : program.callers(at->usr)) {
            const Function* owner = program.owner(*caller);
            if (!owner) continue;
            if (is_python(*owner)) {  // of a function that the module registers
                found.python.push_back({owner, caller});
                continue;
            }
            const Symbol from = written_in(*owner);
            if (std::ranges::find(open, from) == open.end()) open.push_back(from);
        }
    }
    return found;
}

// forward of an autograd function: the tensors that backward gets have its dtypes.
const Function* forward_of(const RuleContext& context, const Function* f) {
    if (leaf(f->name.str()) != "backward" || f->parent_class.empty()) return f;
    const Function* forward = classes_of(context).method(f->parent_class, "forward");
    return forward ? forward : f;
}

// Who passes half: the program, or only code that tries it out.
enum class Passes : std::uint8_t { nobody, trials, program };

Passes by(const RuleContext& context, const Function& f, const Call& call) {
    if (exclusion_of(context, f, call.span)) return Passes::nobody;
    return is_trial(context, f, call) ? Passes::trials : Passes::program;
}

template <typename Visit>
void for_each_apply(const RuleContext& context, const Function& forward, Visit visit) {
    if (forward.parent_class.empty()) return;
    const Symbol apply(std::string(forward.parent_class.str()) + ".apply");
    const std::vector<std::string_view> names = native_code_of(context).names_of_apply(apply);
    for_each_call(context.program, name_in(names), visit);
}

// Who passes a tensor of half to the call, or to an apply() of the autograd function that makes it.
Passes tensors_passed(const RuleContext& context, const PythonCaller& caller, const Function& forward) {
    TensorDTypes dtypes(context);
    Passes found = Passes::nobody;
    const auto look_at = [&](const Function& f, const Call& call) {
        const bool takes_half = std::ranges::any_of(call.args, [&](const Operand& value) {
            const TensorDType is = dtypes.of(f, value);
            return is.proven && is_low_precision(is.dtype);
        });
        if (takes_half) found = std::max(found, by(context, f, call));
    };
    look_at(*caller.function, *caller.call);
    for_each_apply(context, forward, look_at);
    return found;
}

Passes half_passed(const RuleContext& context, const PythonCaller& caller) {
    constexpr std::array<std::string_view, 3> kHalves{"half", "float16", "bfloat16"};
    const Function& forward = *forward_of(context, caller.function);
    const Passes casts = by(context, *caller.function, *caller.call);
    if (const std::string_view cast = cast_inputs(forward); !cast.empty())
        return any_of(cast, kHalves) ? casts : Passes::nobody;
    const auto is_cast = [](const Call& call) { return is_low_precision(call.result.dtype); };
    return std::max(std::ranges::any_of(forward.calls, is_cast) ? casts : Passes::nobody,
                    tensors_passed(context, caller, forward));
}

}  // namespace

HalfEvidence half_evidence(const RuleContext& context, const Function& f) {
    if (is_python(f)) return {};
    const NativeCode& code = native_code_of(context);
    if (const Function* wide = code.called_overload(context.program, f))
        return {HalfRuns::unshown, Note{wide->span, "the program calls this overload, which is wide, alone"}};
    if (code.is_unused_overload(context.program, f))
        return {HalfRuns::unshown, Note{f.span, "the program calls no function of this name"}};
    const Callers found = callers_of(context.program, f);
    const std::vector<PythonCaller>& callers = found.python;
    const auto tries_out = [&](const PythonCaller& caller) {
        return by(context, *caller.function, *caller.call) != Passes::program;
    };
    if (!callers.empty() && !found.has_others && std::ranges::all_of(callers, tries_out))
        return {HalfRuns::unshown,
                Note{callers.front().call->span, "only a test, a benchmark or a try-out calls it"}};
    if (!code.has_wide_variant(f)) return {};
    const Choice choice(context, f);
    if (choice.is_fixed()) return {};
    Passes half = Passes::nobody;
    for (const PythonCaller& caller : callers) half = std::max(half, half_passed(context, caller));
    if (half == Passes::program) return {};
    if (half == Passes::trials || (callers.empty() && choice.is_tried()))
        return {HalfRuns::unshown, Note{f.span, "only a test, a benchmark or a try-out passes half"}};
    if (const Function* wide = choice.called_instead(); wide && callers.empty())
        return {HalfRuns::unshown, Note{wide->span, "the program calls this variant, which is wide, alone"}};
    if (!code.has_python()) return {HalfRuns::possible, choice.made()};
    const SourceSpan& called = callers.empty() ? f.span : callers.front().call->span;
    return {HalfRuns::unshown, Note{called, "no Python of this program is known to pass half"}};
}

}  // namespace mp::lint
