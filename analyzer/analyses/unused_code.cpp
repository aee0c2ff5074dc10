#include "analyzer/analyses/unused_code.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"

namespace mp::lint {
namespace {

bool names(const Operand& value, std::string_view name) {
    return leaf(value.name.str()) == name || leaf(value.constant.str()) == name ||
           leaf(value.refers.str()) == name;
}

// What a framework calls by its name.
bool is_entry_point(std::string_view name) {
    constexpr std::array<std::string_view, 6> kEntries{"main",           "run", "init", "handler",
                                                       "lambda_handler", "cli"};
    return any_of(name, kEntries) || name.ends_with("_fn");
}

// "pkg" of pkg.train; empty without a dot.
std::string_view above(std::string_view dotted) {
    const std::size_t dot = dotted.rfind('.');
    return dotted.substr(0, dot == dotted.npos ? 0 : dot);
}

std::string_view module_of(const Function& f) {
    return above(f.parent_class.empty() ? f.name.str() : f.parent_class.str());
}

// Code can reach everything by strings that no fact shows: a registry of plug-ins, classes that a configuration names.
bool finds_anything_by_name(const Call& call) {
    constexpr std::array<std::string_view, 7> kFinds{
        "import_module", "__import__", "instantiate", "locate", "run_path", "LightningCLI", "__subclasses__"};
    return any_of(leaf(call.name.str()), kFinds);
}

// ... of the file that the call is in: globals()[name](), eval(text), Fire(). model.eval() is another one.
bool finds_own_by_name(const Call& call) {
    constexpr std::array<std::string_view, 5> kTables{"globals", "locals", "vars", "eval", "exec"};
    return any_of(call.name.str(), kTables) || leaf(call.name.str()) == "Fire";
}

// getattr(models, args.arch) of the module's name.
bool asks_module(const Call& call, std::string_view module) {
    return call.name.str() == "getattr" && !call.args.empty() && names(call.args[0], module);
}

bool may_be_found_by_name(const RuleContext& context, const Function& f) {
    const std::string_view module = leaf(module_of(f));
    return std::ranges::any_of(context.program.functions(), [&](const Function* other) {
        const bool is_here = other->span.file == f.span.file;
        return leaf(other->name.str()) == "__init_subclass__" ||
               std::ranges::any_of(other->calls, [&](const Call& call) {
                   return finds_anything_by_name(call) || (is_here && finds_own_by_name(call)) ||
                          asks_module(call, module);
               });
    });
}

bool is_imported_unread(const RuleContext& context, std::string_view name) {
    return context.project.is_imported_unread && context.project.is_imported_unread(name);
}

// A file without facts, or one that evaluates strings, may call what it imports: the function, its module, or a package
// that hands it on. One that imports by strings may call anything.
bool may_be_called_unread(const RuleContext& context, const Function& f, std::string_view name) {
    for (const std::string_view word :
         {name, std::string_view("importlib"), std::string_view("hydra"), std::string_view("LightningCLI")})
        if (is_imported_unread(context, word)) return true;
    for (std::string_view module = module_of(f); !module.empty(); module = above(module))
        if (is_imported_unread(context, leaf(module))) return true;
    return false;
}

bool is_handed_on(const Program& program, Symbol entity) {
    return is_handed_on(program, [&](Symbol taken) { return taken == entity; });
}

// Scale.apply(x), Config.read(path): code of others calls a method by the name of the class.
bool calls_through(const Function& f, Symbol cls) {
    return f.parent_class != cls && std::ranges::any_of(f.calls, [&](const Call& call) {
               return leaf(above(call.name.str())) == leaf(cls.str());
           });
}

bool is_registered(const Program& program, Symbol cls) {
    const Function* body = program.definition(Symbol(std::string(cls.str()) + ".<class>"));
    return body && !body->annotations.empty();
}

// The class has no decorator, which might register it, and nothing makes it, takes it or derives from it.
bool is_class_unused(const RuleContext& context, Symbol name) {
    const Program& program = context.program;
    if (is_registered(program, name) || is_handed_on(program, name)) return false;
    return !is_named(program, leaf(name.str())) &&
           std::ranges::none_of(program.functions(), [&](const Function* f) {
               return std::ranges::find(f->bases, name) != f->bases.end() || calls_through(*f, name);
           });
}

bool is_function_unused(const Program& program, const Function& f) {
    return program.callers(f.usr).empty() && !is_named(program, leaf(f.name.str()), f.usr) &&
           !is_handed_on(program, f.usr);
}

// A method that nothing calls by its name, of a class without bases, whose methods a framework could call.
bool is_method_unused(const Program& program, const Function& f) {
    const std::string_view name = leaf(f.name.str());
    const bool is_protocol = name.starts_with("__") || name == "forward" || name == "backward";
    if (!f.bases.empty() || is_protocol || is_entry_point(name)) return false;
    if (is_registered(program, f.parent_class)) return false;
    const bool asks_by_name = has_call(program, f.span.file, [](const Call& call) {
        return call.name.str() == "getattr" && call.args.size() > 1 && call.args[1].constant.empty();
    });
    return !asks_by_name && is_function_unused(program, f);
}

// `_helper` is not for users of a package.
bool is_private(const Function& f) { return leaf(f.name.str()).starts_with('_'); }

bool is_python_unused(const RuleContext& context, const Function& f) {
    if (context.project.is_package && !is_private(f)) return false;
    const bool is_method = !f.parent_class.empty();
    const Symbol entity = is_method ? f.parent_class : f.usr;
    const std::string_view name = leaf(entity.str());
    if (is_entry_point(name) || may_be_called_unread(context, f, name)) return false;
    // Others may make the classes of a package.
    const bool is_of_unused = is_method && !context.project.is_package && is_class_unused(context, entity);
    const bool is_unused = is_of_unused || (is_method ? is_method_unused(context.program, f)
                                                      : is_function_unused(context.program, f));
    return is_unused && !may_be_found_by_name(context, f);
}

// &f in the code of another file, which declares it itself.
bool is_spelled(const Program& program, std::string_view name) {
    return std::ranges::any_of(program.functions(), [&](const Function* f) {
        return std::ranges::any_of(f->calls, [&](const Call& call) {
            return std::ranges::any_of(call.args, [&](const Operand& value) {
                return value.text.str().find(name) != std::string_view::npos;
            });
        });
    });
}

bool is_native_unused(const RuleContext& context, const Function& f) {
    const std::string_view name = leaf(f.name.str());
    return f.is_unnamed && context.program.callers(f.usr).empty() && !is_named(context.program, name) &&
           !is_spelled(context.program, name);
}

}  // namespace

bool is_named(const Program& program, std::string_view name, Symbol entity) {
    return std::ranges::any_of(program.functions(), [&](const Function* f) {
        const auto is_it = [&](const Operand& value) { return names(value, name); };
        // A function or method of the same name, of another file or class.
        const auto calls_another = [&](const Call& call) {
            return !call.callee.empty() && call.callee != entity && !entity.empty() &&
                   program.definition(call.callee);
        };
        return std::ranges::any_of(f->calls,
                                   [&](const Call& call) {
                                       return (leaf(call.name.str()) == name && !calls_another(call)) ||
                                              std::ranges::any_of(call.args, is_it);
                                   }) ||
               std::ranges::any_of(f->returned, is_it) ||
               std::ranges::any_of(f->definitions, [&](const Definition& d) { return is_it(d.value); });
    });
}

bool is_taken(const Program& program, const Function& f) {
    return is_python(f) ? is_handed_on(program, f.usr) : is_spelled(program, leaf(f.name.str()));
}

bool is_never_called(const RuleContext& context, const Function& f) {
    const Project& project = context.project;
    if (!is_python(f)) return project.is_whole && is_native_unused(context, f);
    if (!f.annotations.empty() || is_statements(f)) return false;
    if (project.is_whole && is_python_unused(context, f)) return true;
    return f.parent_class.empty() && context.program.callers(f.usr).empty() &&
           is_script(context.program, f.span.file) && !is_named(context.program, leaf(f.name.str()), f.usr);
}

}  // namespace mp::lint
