#include "analyzer/analyses/autograd_classes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 1> kApply{"torch::autograd::Function::apply"};

// In C++ a class is one when torch::autograd::Function<Class>::apply is called.
std::set<Symbol> applied_in_cpp(const Program& program) {
    std::set<Symbol> classes;
    for_each_call(program, name_in(kApply), [&](const Function&, const Call& call) {
        if (!call.template_args.empty()) classes.insert(call.template_args.back().text);
    });
    return classes;
}

}  // namespace

bool is_of_autograd_function(const Function& f) {
    return std::ranges::any_of(f.bases, [](Symbol base) {
        const std::string_view name = base.str();
        return name == "torch.autograd.Function" || name == "torch.autograd.function.Function";
    });
}

std::vector<AutogradClass> autograd_classes(const Program& program) {
    const std::set<Symbol> in_cpp = applied_in_cpp(program);
    std::map<Symbol, AutogradClass> classes;
    for (const Function* f : program.functions()) {
        if (f->parent_class.empty()) continue;
        if (!is_of_autograd_function(*f) && !in_cpp.contains(f->parent_class)) continue;
        AutogradClass& made = classes[f->parent_class];
        made.name = f->parent_class;
        const std::string_view method = leaf(f->name.str());
        if (method == "forward") made.forward = f;
        if (method == "backward") made.backward = f;
        if (method == "setup_context") made.has_setup_context = true;
    }
    std::vector<AutogradClass> list;
    for (const auto& [name, made] : classes)
        if (made.forward || made.backward) list.push_back(made);
    return list;
}

bool has_decorator(const Function& f, std::string_view name) {
    return std::ranges::any_of(f.annotations, [&](Symbol annotation) {
        const std::string_view text = annotation.str();
        return leaf(text.substr(0, text.find('('))) == name;
    });
}

}  // namespace mp::lint
