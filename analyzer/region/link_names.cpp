#include "analyzer/region/link_names.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "analyzer/region/arguments.hpp"
#include "analyzer/region/names.hpp"
#include "analyzer/region/object_classes.hpp"

namespace mp::lint {
namespace {

// Each round lets what was found reach one call further.
constexpr int kRounds = 3;

// What a method's name begins with when it is not known whose it is.
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
    // A library's, as it turns out.
    call.callee = {};
    if (!call.op.known()) call.op = op_from_spelling(call.name.str());
}

class Linker {
public:
    explicit Linker(std::vector<Unit>& units) : units_(units), names_(units) {}

    void run() {
        for (Unit& unit : units_)
            if (unit.language == Language::python) resolve_names(unit);
        for_each_function([&](Function& f) {
            resolve_managers(f);
            collect_open(f);
        });
        for (int round = 0; round < kRounds; ++round)
            if (!resolve_objects()) break;
    }

private:
    template <class Visit>
    void for_each_function(Visit visit) {
        for (Unit& unit : units_)
            if (unit.language == Language::python)
                for (Function& f : unit.functions) visit(f);
    }

    void resolve_names(Unit& unit) {
        const Symbol package(package_of(module_of(unit)));
        for (Function& f : unit.functions) {
            for (Call& call : f.calls) {
                for (Symbol& lambda : call.lambdas)
                    if (const Function* body = names_.find(lambda, package).function)
                        lambda = body->usr;
                if (call.callee.empty() || names_.function(call.callee)) continue;
                const Symbol name = call.kind == CallKind::constructor ? call.name : call.callee;
                const Meaning m = names_.find(name, package);
                if (m.function || m.is_class || m.name != name) set_meaning(call, m, names_);
            }
        }
    }

    // `with self.amp():` where amp() returns a context manager: what it returns is entered.
    void resolve_managers(Function& f) {
        for (Call& call : f.calls) {
            if (call.callee.empty() || names_.function(call.callee) || !is_enter(call)) continue;
            const std::string_view text = call.callee.str();
            const Symbol maker(text.substr(0, text.rfind('.')));
            const Function* body = names_.function(maker);
            if (!body) body = names_.find(maker, {}).function;
            if (body) enter_returned(call, *body);
        }
    }

    static void enter_returned(Call& enter, const Function& maker) {
        const Call* made = nullptr;
        std::size_t others = 0;
        for (const Operand& o : maker.returned) {
            const bool known = o.call >= 0 && static_cast<std::size_t>(o.call) < maker.calls.size();
            const Call* c = known ? &maker.calls[static_cast<std::size_t>(o.call)] : nullptr;
            if (c && c->kind == CallKind::constructor && last_name(c->name.str()) != "nullcontext")
                made = c;
            else
                ++others;
        }
        if (!made) return;
        std::vector<Operand> args{enter.args.empty() ? Operand{} : enter.args[0]};
        for (Operand argument : made->args) {
            const Symbol keyword = argument.keyword;
            const Operand* passed =
                argument.param == kNone ? nullptr : argument_for(enter, maker, argument.param);
            if (passed) argument = *passed;
            else argument.param = argument.call = kNone;
            argument.keyword = keyword;
            args.push_back(argument);
        }
        if (others > 0 || maker.returned.size() > 1) {
            Operand when;
            when.keyword = Symbol("<when>");
            when.text = Symbol(std::string(maker.name.str()) + "()");
            args.push_back(when);
        }
        enter.args = std::move(args);
        enter.name = Symbol(std::string(made->name.str()) + ".__enter__");
        enter.callee = {};
    }

    // Methods, and calls, of objects whose class this file does not tell.
    void collect_open(Function& f) {
        for (Call& call : f.calls)
            if (call.kind == CallKind::method && !call.args.empty() &&
                call.name.str().starts_with(kUnknown))
                open_.push_back({&f, &call});
    }

    // Whether any of them was.
    bool resolve_objects() {
        ObjectClasses objects(units_, names_);
        const std::size_t resolved = std::erase_if(
            open_, [&](const Open& o) { return resolve_object(objects, *o.function, *o.call); });
        return resolved > 0;
    }

    bool resolve_object(ObjectClasses& objects, const Function& f, Call& call) {
        const Symbol in_class = objects.of(f, call.args[0]);
        if (in_class.empty()) return false;
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
        // What entering does depends on the arguments that made the object.
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

    struct Open {
        const Function* function = nullptr;
        Call* call = nullptr;
    };

    std::vector<Unit>& units_;
    Names names_;
    std::vector<Open> open_;
};

}  // namespace

void link_names(std::vector<Unit>& units) {
    const bool any = std::ranges::any_of(
        units, [](const Unit& u) { return u.language == Language::python; });
    if (any) Linker(units).run();
}

}  // namespace mp::lint
