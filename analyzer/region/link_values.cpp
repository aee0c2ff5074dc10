#include "analyzer/region/link_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyzer/python/library/library.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/is_leaf.hpp"
#include "analyzer/region/link_configured.hpp"
#include "analyzer/region/tables.hpp"
#include "analyzer/region/values.hpp"

namespace mp::lint {
namespace {

// A dtype that one function finds can decide what another one reads.
constexpr int kRounds = 2;

bool is_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && end == text.data() + text.size() && error != std::errc::invalid_argument;
}

bool is_open(const Operand& o) { return o.dtype == DType::unknown && o.constant.empty(); }

bool takes_dtype(const Call& call, std::size_t at) {
    static const std::array<Symbol, 5> kKeywords{Symbol("dtype"), Symbol("torch_dtype"),
                                                 Symbol("param_dtype"), Symbol("reduce_dtype"),
                                                 Symbol("buffer_dtype")};
    constexpr std::array<std::string_view, 4> kCasts{"to", "type", "astype", "autocast"};
    const Symbol keyword = call.args[at].keyword;
    if (!keyword.empty()) return std::ranges::find(kKeywords, keyword) != kKeywords.end();
    return at > 0 && std::ranges::any_of(kCasts, [name = call.name.str()](std::string_view cast) {
               return is_leaf(cast, name);
           });
}

// getattr(torch, name), TABLE[key]
bool reads_value(const Call& call) {
    const std::string_view name = call.name.str();
    if (is_leaf("getattr", name)) return true;
    return !call.args.empty() && (!call.args[0].refers.empty() || call.args[0].call != kNone) &&
           (is_leaf("__getitem__", name) || is_leaf("get", name) || name == "float");
}

class ValueLinker {
public:
    ValueLinker(std::vector<Unit>& units, const Names& names, GroupsBySymbol<ObjectClasses::Caller> callers,
                const LinkedCalls& calls)
        : units_(units),
          names_(names),
          calls_(calls),
          values_(units, names, std::move(callers), calls.stores, calls.options) {}

    void run() {
        for (const auto& [f, call] : calls_.of_partials) {
            unfold_held(*f, *call);
            unfold_partial(*f, *call);
        }
        for (const LinkedCalls::Open& open : calls_.open) fill(open);
        for (int round = 1; round < kRounds && any_change_; ++round) {
            values_.forget();
            any_change_ = false;
            const std::vector<Unsettled> before = std::exchange(all_unsettled_, {});
            for (const Unsettled& u : before)
                if (has_new_answer(u)) fill(*u.open);
        }
        if (!opened_.empty()) for_each_function([this](Function& f) { repeat_where_entered(f); });
        for (const auto& [f, call] : calls_.of_values) connect(*f, *call);
    }

private:
    // What one visit of a function did not settle.
    struct Unsettled {
        const LinkedCalls::Open* open = nullptr;
        std::vector<const Operand*> unknown;  // in the order in which they were asked for
        bool has_unwritten = false;           // a value that is known, but not well enough to be written
        bool has_unknown = false;             // also operands that lead nowhere
    };

    // Only then can another visit of the function change it.
    bool has_new_answer(const Unsettled& u) {
        return u.has_unwritten || std::ranges::any_of(u.unknown, [&](const Operand* o) {
                   return values_.of(*u.open->function, *o).is_known();
               });
    }

    bool may_be_read(const Function& f, const Call& call, std::size_t at) const {
        const Operand& o = call.args[at];
        if (!is_open(o)) return false;
        if (!o.refers.empty()) return true;
        if (o.param != kNone) return takes_dtype(call, at);
        const Call* made = call_of(f, o);
        return made && (reads_value(*made) || (names_.function(made->callee) && takes_dtype(call, at)));
    }

    static Symbol spelled_dtype(const Values::Known& known) {
        return known.constant.empty() ? Symbol(std::string("torch.").append(name_of(known.dtype)))
                                      : known.constant;
    }

    // What only a default decides is written where a region opens: its rules know that it can be another one.
    static bool write(const Call* call, Operand& o, const Values::Known& known) {
        const bool dtype = known.dtype != DType::unknown;
        if (!dtype && known.constant.empty()) {
            if (known.shape == Shape::dtype && o.alternative.empty()) o.alternative = known.alternative;
            return false;
        }
        const bool opens =
            call && ((mentions_autocast(*call) && is_low_precision(known.dtype)) || is_precision(o.keyword));
        if (known.assumed && !opens) {
            if (is_low_precision(known.dtype) && known.shape == Shape::dtype)
                o.alternative = spelled_dtype(known);
            return false;
        }
        const std::string_view constant = known.constant.str();
        const bool plain =
            is_number(constant) || constant.starts_with('\'') || constant == "true" || constant == "false";
        if (!dtype && !plain) return false;  // a function or a class
        o.dtype = known.dtype;
        if (dtype && known.shape != Shape::other) o.shape = known.shape;
        if (!dtype) o.shape = known.constant.str().starts_with('\'') ? Shape::object : Shape::scalar;
        if (known.shape == Shape::dtype || !dtype) o.constant = known.constant;
        o.assumed = known.assumed;
        return true;
    }

    // Of a trainer: Trainer(precision=args.precision)
    static bool is_precision(Symbol keyword) {
        static const Symbol kPrecision("precision"), kMixed("mixed_precision");
        return keyword == kPrecision || keyword == kMixed;
    }

    static bool take(Operand& o, const Operand& result) {
        if (!is_open(o) || result.dtype == DType::unknown) return false;
        o.dtype = result.dtype;
        if (o.shape == Shape::other) o.shape = result.shape;
        o.assumed |= result.assumed;
        return true;
    }

    template <class Visit>
    void for_each_function(const Visit& visit) {
        for (Unit& unit : units_)
            if (unit.language == Language::python)
                for (Function& f : unit.functions) visit(f);
    }

    // `with self.region:` repeats the arguments of the constructor, which another function evaluated.
    void repeat_where_entered(Function& f) const {
        for (Call& call : f.calls) {
            if (!is_enter(call) || !mentions_autocast(call)) continue;
            for (Operand& o : call.args) {
                if (!is_open(o) || o.call != kNone || o.param != kNone) continue;
                const auto known = opened_.find(place_of(f, o));
                if (known == opened_.end()) continue;
                o.dtype = known->second.dtype;
                o.shape = known->second.shape;
                o.constant = known->second.constant;
                o.assumed = known->second.assumed;
            }
        }
    }

    static bool mentions_autocast(const Call& call) {
        return call.name.str().find("autocast") != std::string_view::npos;
    }

    using Place = std::tuple<Symbol, std::uint32_t, std::uint32_t>;  // file, line, column
    static Place place_of(const Function& f, const Operand& o) {
        return {f.span.file, o.span.line, o.span.column};
    }

    // Writes what the operand stands for. True if that is known.
    bool answer(const Call* call, Operand& o) {
        const Function& f = *unsettled_.open->function;
        const bool nowhere = values_.leads_nowhere(f, o);
        const Values::Known known = nowhere ? Values::Known{} : values_.of(f, o);
        unsettled_.has_unknown |= !known.is_known();
        if (!nowhere && !known.is_known()) unsettled_.unknown.push_back(&o);
        const bool written = write(call, o, known);
        unsettled_.has_unwritten |= known.is_known() && !written;
        return written;
    }

    void fill(const LinkedCalls::Open& open) {
        Function& f = *open.function;
        unsettled_ = {.open = &open, .unknown = {}};
        std::vector<bool> changed;
        std::unordered_map<Symbol, const Operand*> made;  // results that a name holds
        const auto follow = [&](Operand& o) {
            const auto call = static_cast<std::size_t>(o.call);
            return o.call != kNone && !changed.empty() && changed[call] && take(o, f.calls[call].result);
        };
        bool any = false;
        auto next = open.calls.begin();
        for (std::size_t c = 0; c < f.calls.size(); ++c) {
            if (!any) {  // until an operand is written, the other calls stay as they are
                if (next == open.calls.end()) break;
                c = *next++;
            }
            Call& call = f.calls[c];
            bool now = false;
            for (std::size_t i = 0; i < call.args.size(); ++i) {
                now |= follow(call.args[i]);
                if (!may_be_read(f, call, i) || !answer(&call, call.args[i])) continue;
                now = true;
                if (call.kind == CallKind::constructor && mentions_autocast(call))
                    opened_[place_of(f, call.args[i])] = call.args[i];
            }
            // `total += x`, where `total` was made with such a dtype.
            if (call.in_place && !made.empty() && !call.args.empty() && call.args[0].call == kNone)
                if (const auto held = made.find(call.args[0].name); held != made.end() && held->second)
                    now |= take(call.args[0], *held->second);
            if (!now) continue;
            any = true;
            if (!infer(f, call)) continue;
            changed.resize(f.calls.size());
            changed[c] = true;
            if (call.result.name.empty() || call.in_place) continue;
            const auto [entry, is_new] = made.try_emplace(call.result.name, &call.result);
            if (!is_new && entry->second && entry->second->dtype != call.result.dtype)
                entry->second = nullptr;
        }
        for (Operand& o : f.returned) {
            any |= follow(o);
            if (is_open(o) && !o.refers.empty()) any |= answer(nullptr, o);
        }
        if (!changed.empty()) finish(f, follow);
        any_change_ |= any;
        if (!unsettled_.unknown.empty() || (unsettled_.has_unknown && unsettled_.has_unwritten))
            all_unsettled_.push_back(std::move(unsettled_));
    }

    // The result of a library's call from its operands.
    bool infer(const Function& f, Call& call) const {
        if (!call.callee.empty() || call.result.dtype != DType::unknown) return false;
        Call again = call;
        python::complete(again, f, DType::unknown);
        if (again.result.dtype == DType::unknown) return false;
        call.result.dtype = again.result.dtype;
        if (call.result.shape == Shape::other) call.result.shape = again.result.shape;
        call.result.assumed = std::ranges::any_of(
            call.args, [](const Operand& o) { return o.assumed && o.dtype != DType::unknown; });
        return true;
    }

    template <class Follow>
    void finish(Function& f, const Follow& follow) const {
        for (Setting& s : f.settings) follow(s.value);
        for (Accumulation& a : f.accumulations) {
            if (a.call == kNone) continue;
            const Call& added = f.calls[static_cast<std::size_t>(a.call)];
            if (added.args.size() != 2) continue;
            const std::size_t old = added.in_place || added.args[0].name == a.name ? 0 : 1;
            if (a.dtype == DType::unknown) a.dtype = added.args[old].dtype;
            if (a.element == DType::unknown) a.element = added.args[1 - old].dtype;
        }
    }

    // Puts the arguments of the partial where the call would have them. The call's own keywords win.
    static void add_fixed(Call& call, const Call& partial, std::ptrdiff_t first) {
        std::vector<Operand> positional;
        for (std::size_t i = 1; i < partial.args.size(); ++i) {
            Operand fixed = partial.args[i];
            fixed.call = fixed.param = kNone;
            const bool given = std::ranges::any_of(call.args, [&](const Operand& o) {
                return !o.keyword.empty() && o.keyword == fixed.keyword;
            });
            if (fixed.keyword.empty())
                positional.push_back(std::move(fixed));
            else if (!given)
                call.args.push_back(std::move(fixed));
        }
        call.args.insert(call.args.begin() + first, positional.begin(), positional.end());
    }

    // load = functools.partial(Model.from_pretrained, torch_dtype=torch.bfloat16), called in the same function, kept
    // in an attribute, or passed to another function
    void unfold_held(const Function& f, Call& call) {
        if (!call.callee.empty() || call.name.str() != "?.__call__" || call.args.empty()) return;
        const ObjectClasses::Caller partial = values_.partial_held(f, call.args[0]);
        const Call* const made = partial.call;
        const Symbol target = made ? values_.named_by(*partial.function, made->args[0]) : Symbol{};
        if (target.empty() || names_.function(target)) return;
        call.args.erase(call.args.begin());
        if (names_.classes().knows(target)) {
            construct(call, target, names_);
            return add_fixed(call, *made, 0);
        }
        call.name = target;
        call.kind = call.name.str().starts_with("torch.Tensor.") && !call.args.empty() ? CallKind::method
                                                                                       : CallKind::function;
        add_fixed(call, *made, 0);
        complete_as_made(f, call);
    }

    // A library's class makes an object.
    static void complete_as_made(const Function& f, Call& call) {
        python::complete(call, f, DType::unknown);
        if (call.result.shape == Shape::object && call.op == Op{}) call.kind = CallKind::constructor;
    }

    // half_region = functools.partial(torch.autocast, "cuda", dtype=torch.float16)
    void unfold_partial(const Function& f, Call& call) {
        if (call.callee.empty() || names_.function(call.callee)) return;
        std::string_view name = call.callee.str();
        const std::string_view method = is_enter(call) ? ".__enter__" : is_exit(call) ? ".__exit__" : "";
        name.remove_suffix(method.size());
        const auto [owner, made] = values_.partial_of(f, Symbol(name));
        const Symbol target = made ? values_.named_by(*owner, made->args[0]) : Symbol{};
        if (target.empty()) return;
        if (const Function* own = names_.function(target)) {
            if (!method.empty()) return;
            call.callee = own->usr;
            call.name = own->name;
            return add_fixed(call, *made, 0);
        }
        if (names_.classes().knows(target)) {
            if (method.empty()) construct(call, target, names_);
            return add_fixed(call, *made, 0);
        }
        call.callee = {};
        call.name = Symbol(std::string(target.str()).append(method));
        if (is_exit(call)) return;
        add_fixed(call, *made, method.empty() ? 0 : 1);
        if (method.empty()) complete_as_made(f, call);
    }

    // nn.Sequential(...)(x), checkpoint(block, x), DistributedDataParallel(net)(x): each of them may run.
    void connect_modules(const Function& f, Call& call) {
        for (const Values::Candidate& candidate : values_.callees(f, call.args[0])) {
            const Function* body = body_of(candidate);
            if (body && std::ranges::find(call.lambdas, body->usr) == call.lambdas.end())
                call.lambdas.push_back(body->usr);
        }
    }

    static bool calls_method_of_item(const Function& f, const Call& call) {
        const std::string_view name = call.name.str();
        if (call.kind != CallKind::method || call.args.empty() || name == "?.__call__") return false;
        const Call* const item = name.starts_with("?.") ? call_of(f, call.args[0]) : nullptr;
        return item && is_next(*item);
    }

    // for callback in callbacks: callback.after_backward(self)
    void connect_methods(const Function& f, Call& call) {
        const std::string_view method = leaf(call.name.str());
        for (const Values::Candidate& candidate : values_.callees(f, call.args[0]))
            if (candidate.is_object)
                if (const Function* body = names_.classes().method(candidate.name, method))
                    call.lambdas.push_back(body->usr);
    }

    // `loss_fn(x)`: of one known function or class the call is resolved; of several it may run each.
    void connect(const Function& f, Call& call) {
        if (runs_modules(call)) return connect_modules(f, call);
        if (calls_method_of_item(f, call)) return connect_methods(f, call);
        if (call.name.str() != "?.__call__" || call.args.empty() || !call.callee.empty()) return;
        const std::vector<Values::Candidate> all = values_.callees(f, call.args[0]);
        if (make_optimizer(call, all)) return;
        for (const Values::Candidate& candidate : all) {
            const Function* body = body_of(candidate);
            if (!body) continue;
            if (all.size() > 1 || candidate.is_open ||
                (!candidate.is_object && !body->parent_class.empty() && names_.function(candidate.name))) {
                call.lambdas.push_back(body->usr);
                continue;
            }
            call.callee = body->usr;
            if (candidate.is_object) {
                call.name = body->usr;
                continue;
            }
            const bool is_class = names_.classes().knows(candidate.name);
            call.kind = is_class ? CallKind::constructor : CallKind::function;
            call.name = candidate.name;
            if (is_class && call.result.shape == Shape::other) call.result.shape = Shape::object;
            call.args.erase(call.args.begin());
        }
    }

    // OPTIMIZERS[name](params, lr=lr): the class, or the base class of several.
    static bool make_optimizer(Call& call, const std::vector<Values::Candidate>& all) {
        const bool only = std::ranges::all_of(all, [](const Values::Candidate& candidate) {
            return !candidate.is_object && is_optimizer_class(candidate.name.str());
        });
        if (all.empty() || !only) return false;
        call.kind = CallKind::constructor;
        call.name = all.size() == 1 ? all.front().name : kAnyOptimizer;
        call.result.shape = Shape::object;
        call.args.erase(call.args.begin());
        return true;
    }

    const Function* body_of(const Values::Candidate& candidate) const {
        const Classes& classes = names_.classes();
        if (candidate.is_object) {
            const Function* own = classes.method(candidate.name, "__call__");
            return own ? own : classes.method(candidate.name, "forward");
        }
        if (const Function* f = names_.function(candidate.name)) return f;
        return classes.method(candidate.name, "__init__");
    }

    std::vector<Unit>& units_;
    const Names& names_;
    const LinkedCalls& calls_;
    Values values_;
    std::map<Place, Operand> opened_;  // arguments of regions, by where they are written
    bool any_change_ = false;          // in this round
    Unsettled unsettled_;              // by the visit that is going on
    std::vector<Unsettled> all_unsettled_;
};

}  // namespace

// DistributedDataParallel.forward
static bool runs_wrapped(std::string_view method) {
    constexpr std::string_view kForward = ".forward";
    return method.ends_with(kForward) &&
           python::wraps_module(method.substr(0, method.size() - kForward.size()));
}

bool runs_modules(const Call& call) {
    const std::string_view name = call.name.str();
    return !call.args.empty() && call.callee.empty() &&
           (name == "torch.nn.Sequential.forward" || name == "torch.nn.Module.forward" ||
            name == "torch.utils.checkpoint.checkpoint" || runs_wrapped(name));
}

bool may_write_operands(const Function& f, const Call& call) {
    for (std::size_t i = 0; i < call.args.size(); ++i) {
        const Operand& o = call.args[i];
        if (!is_open(o)) continue;
        if (!o.refers.empty()) return true;
        if ((o.param != kNone || o.call != kNone) && takes_dtype(call, i)) return true;
        if (const Call* made = call_of(f, o); made && reads_value(*made)) return true;
    }
    return false;
}

bool may_write_returned(const Function& f) {
    return std::ranges::any_of(f.returned, [](const Operand& o) { return is_open(o) && !o.refers.empty(); });
}

void link_values(std::vector<Unit>& units, const Names& names, GroupsBySymbol<ObjectClasses::Caller> callers,
                 const LinkedCalls& calls) {
    ValueLinker(units, names, std::move(callers), calls).run();
}

}  // namespace mp::lint
