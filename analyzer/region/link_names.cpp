#include "analyzer/region/link_names.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analyzer/python/library/library.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/is_leaf.hpp"
#include "analyzer/region/link_configured.hpp"
#include "analyzer/region/link_values.hpp"
#include "analyzer/region/names.hpp"
#include "analyzer/region/object_classes.hpp"
#include "analyzer/region/python_regions.hpp"
#include "kernels/base/parallel.hpp"

namespace mp::lint {
namespace {

// Each round resolves one more call along a chain of calls.
constexpr int kRounds = 3;

// Neighbouring units are mostly of one package and look up the same names.
constexpr std::size_t kUnitsAtATime = 64;

// The keyword of the condition on which a manager is entered.
const Symbol kWhen("<when>");

// Prefix of a method's name when the class of its receiver is unknown.
constexpr std::string_view kUnknown = "?.";

void set_meaning(Call& call, const Meaning& meaning, const Names& names) {
    if (meaning.is_class) {
        call.kind = CallKind::constructor;
        call.name = meaning.name;
        const Meaning init = names.find_method(meaning.name, "__init__");
        call.callee = init.function ? init.function->usr : Symbol{};
        if (call.result.shape == Shape::other) call.result.shape = Shape::object;
        return;
    }
    call.name = meaning.name;
    if (meaning.function) {
        call.callee = meaning.function->usr;
        return;
    }
    // The name turned out to be a library's.
    call.callee = {};
    if (!call.op.known()) call.op = op_from_spelling(call.name.str());
}

// What an object of another file's class is, once the class is known to be a module: what extraction says of a class of
// the same file. Calls are in evaluation order, so one pass completes what reads their results.
class ModulesOfOthers {
public:
    ModulesOfOthers(Function& f, const Names& names) : f_(f), names_(names) {}

    void look_at(std::size_t at, Symbol written) {
        Call& call = f_.calls[at];
        for (Operand& o : call.args) follow(o);
        const Operand before = call.result;
        const bool makes = call.kind == CallKind::constructor && before.shape == Shape::object;
        if (makes && names_.is_module(call.name)) {
            call.result.shape = Shape::module;
        } else if (call.name.str().starts_with(kModule) && (call.name != written || any_)) {
            if (call.name != written && !call.args.empty()) call.args[0].shape = Shape::module;
            if (before.dtype == DType::unknown) python::complete(call, f_, DType::unknown);
        }
        if (call.result == before) return;
        changed_.resize(f_.calls.size());
        changed_[at] = any_ = true;
    }

    void finish() {
        if (!any_) return;
        for (Operand& o : f_.returned) follow(o);
        for (Setting& s : f_.settings) follow(s.value);
        for (Definition& d : f_.definitions) follow(d.value);
    }

private:
    static constexpr std::string_view kModule = "torch.nn.Module.";

    void follow(Operand& o) const {
        if (!any_ || o.call == kNone || !changed_[static_cast<std::size_t>(o.call)]) return;
        const Operand& result = f_.calls[static_cast<std::size_t>(o.call)].result;
        if (o.shape == Shape::object || o.shape == Shape::other) o.shape = result.shape;
        if (o.dtype == DType::unknown) o.dtype = result.dtype;
    }

    Function& f_;
    const Names& names_;
    std::vector<bool> changed_;
    bool any_ = false;
};

// The calls of a large program do not fit in a cache, so everything needed from a call is read in
// one pass.
class Linker {
public:
    Linker(std::vector<Unit>& units, int threads) : units_(units), names_(units), threads_(threads) {}

    void run() {
        resolve_names();
        NameFinder finder(names_);
        for (Call* const call : enters_) resolve_manager(finder, *call);
        if (!chosen_.empty()) enter_chosen();
        std::erase_if(open_,
                      [](const Open& o) { return !is_open(*o.call) && !calls_item(*o.function, *o.call); });
        if (!calls_.of_configured.empty())
            for (const Caller& made : link_configured(units_, names_, GroupsBySymbol(callers_), calls_))
                callers_.emplace_back(made.call->callee, made);
        for (int round = 0; round < kRounds; ++round)
            if (!resolve_objects()) break;
        for (const Open& o : open_) calls_.of_values.emplace_back(o.function, o.call);
        link_values(units_, names_, GroupsBySymbol(callers_), calls_);
    }

private:
    void enter_chosen() {
        const GroupsBySymbol callers(callers_);
        for (const auto& [function, call] : chosen_) enter_chosen(*function, *call, callers);
    }

    using Caller = ObjectClasses::Caller;
    using Callers = std::vector<std::pair<Symbol, Caller>>;

    // A call that may still be resolved further, and its index among the callers.
    struct Open {
        const Function* function = nullptr;
        Call* call = nullptr;
        std::size_t at = 0;
    };

    // Calls of some units that have a callee, or may get one.
    struct Seen {
        Callers callers;
        std::vector<Open> open;  // methods and calls of objects whose class their own file does not show
        std::vector<Call*> enters;
        std::vector<std::pair<const Function*, Call*>> chosen;  // with autocast(), of a variable
        LinkedCalls calls;
    };

    template <class T>
    static void append(std::vector<T>& to, const std::vector<T>& more) {
        to.insert(to.end(), more.begin(), more.end());
    }

    static bool is_open(const Call& call) {
        if (call.kind != CallKind::method || call.args.empty()) return false;
        const Operand& receiver = call.args[0];
        if (!call.name.str().starts_with(kUnknown)) return false;
        return receiver.call != kNone || receiver.param != kNone || is_attribute_of_self(receiver) ||
               (!receiver.refers.empty() && !call.op.known());
    }

    // block(x), for block in self.blocks.values()
    static bool calls_item(const Function& f, const Call& call) {
        if (call.name.str() != "?.__call__" || call.args.empty() || call.args[0].name.empty()) return false;
        return std::ranges::any_of(f.aliases,
                                   [&](const Alias& a) { return a.item && a.name == call.args[0].name; });
    }

    void resolve_names() {
        std::vector<Seen> seen((units_.size() + kUnitsAtATime - 1) / kUnitsAtATime);
        in_parallel(seen.size(), threads_, [&](std::size_t i) {
            NameFinder finder(names_);
            const std::size_t end = std::min((i + 1) * kUnitsAtATime, units_.size());
            for (std::size_t unit = i * kUnitsAtATime; unit < end; ++unit)
                if (units_[unit].language == Language::python) resolve_names(units_[unit], finder, seen[i]);
        });
        for (Seen& s : seen) {
            const std::size_t first = callers_.size();
            append(callers_, s.callers);
            for (const Open& o : s.open) open_.push_back({o.function, o.call, first + o.at});
            append(enters_, s.enters);
            append(chosen_, s.chosen);
            append(calls_.open, s.calls.open);
            append(calls_.of_partials, s.calls.of_partials);
            append(calls_.of_configured, s.calls.of_configured);
            append(calls_.of_values, s.calls.of_values);
            append(calls_.stores, s.calls.stores);
            append(calls_.options, s.calls.options);
        }
    }

    void resolve_names(Unit& unit, NameFinder& finder, Seen& seen) const {
        const Symbol package(package_of(module_of(unit)));
        for (Function& f : unit.functions) {
            LinkedCalls::Open values{.function = &f, .calls = {}};
            bool rewritten = false;  // a call may become one that reads a value
            ModulesOfOthers modules(f, names_);
            for (std::size_t i = 0; i < f.calls.size(); ++i) {
                Call& call = f.calls[i];
                const Symbol written = call.name;
                resolve_name(call, package, finder);
                modules.look_at(i, written);
                const Open o{&f, &call, seen.callers.size()};
                const bool open = is_open(call) || calls_item(f, call);
                if (open) seen.open.push_back(o);
                const bool of_unknown = !call.callee.empty() && !names_.function(call.callee);
                if (of_unknown && is_enter(call)) seen.enters.push_back(&call);
                if (call.name.str() == "?.__call__.__enter__") seen.chosen.emplace_back(&f, &call);
                if (of_unknown || (open && call.name.str() == "?.__call__")) {
                    seen.calls.of_partials.emplace_back(&f, &call);
                    rewritten = true;
                }
                if (may_write_operands(f, call)) values.calls.push_back(static_cast<std::uint32_t>(i));
                if (may_be_configured(call)) seen.calls.of_configured.emplace_back(&f, &call);
                if (runs_modules(call)) seen.calls.of_values.emplace_back(&f, &call);
                if (is_leaf("__setitem__", call.name.str())) seen.calls.stores.push_back({&f, &call});
                if (is_leaf("add_argument", call.name.str())) seen.calls.options.push_back({&f, &call});
                if (open || !call.callee.empty()) seen.callers.push_back({call.callee, {&f, &call}});
            }
            modules.finish();
            if (rewritten) {
                values.calls.resize(f.calls.size());
                std::iota(values.calls.begin(), values.calls.end(), 0);
            }
            if (!values.calls.empty() || may_write_returned(f)) seen.calls.open.push_back(std::move(values));
        }
    }

    void resolve_name(Call& call, Symbol package, NameFinder& finder) const {
        for (Symbol& lambda : call.lambdas)
            if (const Function* body = finder.find(lambda, package).function) lambda = body->usr;
        for (const Operand& o : call.args) {
            if (o.refers.empty() || !is_qualified(o.refers)) continue;
            if (const Function* body = finder.find(o.refers, package).function;
                body && body->parent_class.empty())
                call.lambdas.push_back(body->usr);
        }
        if (call.callee.empty() || names_.function(call.callee)) return;
        const Symbol name = call.kind == CallKind::constructor ? call.name : call.callee;
        Meaning m = finder.find(name, package);
        if (!m.function && call.kind == CallKind::method) m = called(name, m, package, finder);
        if (m.function || m.is_class || m.name != name) set_meaning(call, m, names_);
    }

    // "#2.dtype" and "@3.dtype" are about a parameter and a call of the function.
    static bool is_qualified(Symbol refers) {
        const char first = refers.str().front();
        return first != '#' && first != '@';
    }

    // `clip()` of an object of another file's class is taken for a call of its forward(), until the class is known.
    static Meaning called(Symbol name, const Meaning& otherwise, Symbol package, NameFinder& finder) {
        constexpr std::string_view kForward = ".forward";
        std::string_view owner = name.str();
        if (!owner.ends_with(kForward)) return otherwise;
        owner.remove_suffix(kForward.size());
        const Meaning own = finder.find(Symbol(std::string(owner) + ".__call__"), package);
        return own.function ? own : otherwise;
    }

    // `with self.amp():`, where amp() returns a context manager: the returned object is entered.
    void resolve_manager(NameFinder& finder, Call& call) const {
        const std::string_view text = call.callee.str();
        const Symbol maker(text.substr(0, text.rfind('.')));
        const Function* body = names_.function(maker);
        if (!body) body = finder.find(maker, {}).function;
        if (body) enter_returned(call, *body);
    }

    static void enter_returned(Call& enter, const Function& maker) {
        const Call* made = nullptr;
        std::size_t others = 0;
        for (const Operand& o : maker.returned) {
            const bool known = o.call >= 0 && static_cast<std::size_t>(o.call) < maker.calls.size();
            const Call* c = known ? &maker.calls[static_cast<std::size_t>(o.call)] : nullptr;
            if (c && c->kind == CallKind::constructor && leaf(c->name.str()) != "nullcontext")
                made = c;
            else
                ++others;
        }
        if (!made) return;
        const bool always = others == 0 && maker.returned.size() == 1;
        enter_made(enter, *made, always ? Symbol{} : Symbol(std::string(maker.name.str()) + "()"),
                   [&](std::int32_t param) { return argument_for(enter, maker, param); });
    }

    // A function that makes an autocast region, what functools.partial has fixed of its arguments, and the condition
    // on which it is that function.
    struct MakesRegion {
        Symbol name{};
        const Call* fixed = nullptr;
        Symbol when{};
    };

    static bool is_autocast(Symbol name) {
        return leaf(name.str()) == "autocast" && python_manager(name.str());
    }

    // get_autocast(precision), where the function returns torch.autocast on some way.
    static MakesRegion returned_by(const Function& maker) {
        for (const Operand& o : maker.returned)
            if (is_autocast(o.constant))
                return {o.constant, nullptr, Symbol(std::string(maker.name.str()) + "()")};
        return {};
    }

    // torch.autocast, `autocast if amp else nullcontext`, partial(torch.autocast, dtype=...), get_autocast(precision).
    MakesRegion region_maker(const Function& f, const Operand& o,
                             const GroupsBySymbol<Caller>& callers) const {
        if (is_autocast(o.constant)) return {o.constant};
        if (!o.refers.empty() && is_qualified(o.refers)) {
            const auto [module, held] = NameFinder(names_).read(o.refers, {}).bound;
            return held && held->value.refers.empty() ? region_maker(*module, held->value, callers)
                                                      : MakesRegion{};
        }
        const Call* const made = call_of(f, o);
        const bool is_partial = made && made->name.str() == "functools.partial" && !made->args.empty();
        if (is_autocast(o.alternative)) return {o.alternative, is_partial ? made : nullptr, o.name};
        if (is_partial && is_autocast(made->args[0].constant)) return {made->args[0].constant, made};
        const Function* const body = made ? names_.function(made->callee) : nullptr;
        if (body) return returned_by(*body);
        return o.param == kNone ? MakesRegion{} : region_passed(f, o, callers);
    }

    // What some caller passes: train(net, amp_autocast=partial(torch.autocast, "cuda"))
    MakesRegion region_passed(const Function& f, const Operand& o,
                              const GroupsBySymbol<Caller>& callers) const {
        for (const Caller& caller : callers.get(f.usr)) {
            const Operand* const given = argument_for(*caller.call, f, o.param);
            if (!given || given->param != kNone) continue;
            MakesRegion found = region_maker(*caller.function, *given, callers);
            if (found.name.empty()) continue;
            found.when = o.name;
            return found;
        }
        return {};
    }

    // autocast = get_autocast(precision), and then `with autocast():`: that region is entered.
    void enter_chosen(const Function& f, Call& enter, const GroupsBySymbol<Caller>& callers) const {
        const Call* const made = call_of(f, enter.args[0]);
        if (!made || made->args.empty()) return;
        const Function* holder = &f;
        const Operand* chosen = &made->args[0];
        if (is_attribute_of_self(*chosen) && !f.parent_class.empty()) {
            const auto [init, value] = names_.classes().kept(f.parent_class, chosen->name);
            if (!value) return;
            holder = init, chosen = value;
        }
        const MakesRegion maker = region_maker(*holder, *chosen, callers);
        if (maker.name.empty()) return;
        Call region = *made;
        region.name = maker.name;
        region.args.erase(region.args.begin());
        if (maker.fixed)
            region.args.insert(region.args.begin(), maker.fixed->args.begin() + 1, maker.fixed->args.end());
        const auto is_when = [](const Operand& o) { return o.keyword == kWhen; };
        const auto written = std::ranges::find_if(enter.args, is_when);
        const std::optional<Operand> when =
            written == enter.args.end() ? std::nullopt : std::optional(*written);
        enter_made(enter, region, when ? Symbol{} : maker.when,
                   [](std::int32_t) { return static_cast<const Operand*>(nullptr); });
        if (when) enter.args.push_back(*when);
    }

    // `passed` finds the argument for a parameter of the function that makes the manager; `when` is the condition on
    // which that is this one.
    template <typename Passed>
    static void enter_made(Call& enter, const Call& made, Symbol when, Passed passed) {
        std::vector<Operand> args{enter.args.empty() ? Operand{} : enter.args[0]};
        for (Operand argument : made.args) {
            const Symbol keyword = argument.keyword;
            if (const Operand* given = argument.param == kNone ? nullptr : passed(argument.param))
                argument = *given;
            else
                argument.param = argument.call = kNone;
            argument.keyword = keyword;
            args.push_back(argument);
        }
        if (!when.empty()) {
            args.emplace_back();
            args.back().keyword = kWhen;
            args.back().text = when;
        }
        enter.args = std::move(args);
        enter.name = Symbol(std::string(made.name.str()) + ".__enter__");
        enter.callee = {};
    }

    // `with self.ctx:`, which methods of the class make an autocast region or, for some device, nothing: of several
    // regions that of CUDA is entered.
    bool enter_kept(const Function& f, Call& enter) const {
        const Symbol attribute = enter.args[0].name;
        if (!is_attribute_of_self(enter.args[0]) || f.parent_class.empty()) return false;
        std::vector<const Call*> made;
        bool is_known = true, is_one = true;
        names_.classes().for_each_ancestor(f.parent_class, [&](Symbol cls) {
            for (const Function* method : names_.classes().methods(cls))
                for (const Call& call : method->calls) {
                    if (call.kind != CallKind::constructor || call.result.name != attribute) continue;
                    const std::string_view name = leaf(call.name.str());
                    is_one = is_one && made.empty() && name != "nullcontext";
                    is_known = is_known && (name == "nullcontext" || name == "autocast");
                    if (name == "autocast") made.push_back(&call);
                }
        });
        if (!is_known || made.empty()) return false;
        const auto is_cuda = [](const Call* call) {
            return call->name.str() != "torch.cpu.amp.autocast" &&
                   std::ranges::any_of(call->args,
                                       [](const Operand& o) { return o.constant.str() == "'cuda'"; });
        };
        const auto cuda = std::ranges::find_if(made, is_cuda);
        enter_made(enter, cuda == made.end() ? *made.front() : **cuda, is_one ? Symbol{} : attribute,
                   [](std::int32_t) { return static_cast<const Operand*>(nullptr); });
        return true;
    }

    // True if any open call was resolved.
    bool resolve_objects() {
        ObjectClasses objects(GroupsBySymbol(callers_), names_);
        const std::size_t resolved = std::erase_if(open_, [&](const Open& o) {
            if (!resolve_object(objects, *o.function, *o.call)) return false;
            if (runs_modules(*o.call)) calls_.of_values.emplace_back(o.function, o.call);
            callers_[o.at].first = o.call->callee;
            return true;
        });
        return resolved > 0;
    }

    bool resolve_object(ObjectClasses& objects, const Function& f, Call& call) {
        const Symbol in_class = objects.of(f, call.args[0]);
        if (in_class.empty()) return is_enter(call) && enter_kept(f, call);
        std::string_view method = call.name.str().substr(kUnknown.size());
        if (!names_.classes().knows(in_class)) return name_library_method(call, in_class, method);
        const bool called = method == "__call__";
        if (called && !names_.classes().method(in_class, "__call__")) method = "forward";
        const Meaning meaning = names_.find_method(in_class, method);
        set_meaning(call, meaning, names_);
        if (!meaning.function && call.name.str().starts_with("torch.nn.Module.")) {
            call.args[0].shape = Shape::module;
            if (passes_itself_on(method)) call.result.shape = Shape::module;
        }
        return true;
    }

    static bool name_library_method(Call& call, Symbol in_class, std::string_view method) {
        const std::string_view made = in_class.str();
        if (made.starts_with("torch.nn.") && !made.starts_with("torch.nn.utils."))
            return name_module_method(call, made, method);
        // The effect of __enter__ depends on the arguments that made the object.
        if (method.starts_with("__")) return false;
        call.name = Symbol(std::string(made) + "." + std::string(method));
        return true;
    }

    static bool name_module_method(Call& call, std::string_view made, std::string_view method) {
        call.args[0].shape = Shape::module;
        if (method == "__call__") {
            call.name = Symbol(std::string(made) + ".forward");
            return true;
        }
        call.name = Symbol("torch.nn.Module." + std::string(method));
        if (passes_itself_on(method)) call.result.shape = Shape::module;
        return true;
    }

    std::vector<Unit>& units_;
    Names names_;
    int threads_;
    Callers callers_;
    std::vector<Open> open_;
    std::vector<Call*> enters_;
    std::vector<std::pair<const Function*, Call*>> chosen_;
    LinkedCalls calls_;
};

}  // namespace

void link_names(std::vector<Unit>& units, int threads) {
    const bool any = std::ranges::any_of(units, [](const Unit& u) { return u.language == Language::python; });
    if (any) Linker(units, threads).run();
}

}  // namespace mp::lint
