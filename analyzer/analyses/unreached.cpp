#include "analyzer/analyses/unreached.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {
namespace {

// A USR of C++ says the parameters.
bool has_c_linkage(const Function& f) { return f.usr.str().find('#') == std::string_view::npos; }

}  // namespace

class NativeRoots {
public:
    explicit NativeRoots(const Program& program) {
        for (const Exported& e : program.exported()) taken_.insert(e.usr);
        has_entry_ = !taken_.empty();
        for (const Unit& unit : program.units()) {
            taken_.insert(unit.taken.begin(), unit.taken.end());
            is_whole_ = is_whole_ && (unit.language == Language::python || unit.state == UnitState::ok);
        }
        for (const Function* f : program.functions()) {
            has_entry_ = has_entry_ || (!is_python(*f) && f->name.str() == "main");
            for (const Call& call : f->calls)
                if (!program.definition(call.callee)) named_.insert(leaf(call.name.str()));
        }
    }

    // It has an entry, and no call is missing because of code that did not parse.
    bool is_whole() const { return has_entry_ && is_whole_; }

    bool is_root(const Function& f) const {
        const std::string_view name = leaf(f.name.str());
        return is_python(f) || name == "main" || !f.parent_class.empty() || name.starts_with("operator") ||
               has_c_linkage(f) || taken_.contains(f.usr) || named_.contains(name);
    }

private:
    std::unordered_set<Symbol> taken_;            // handed on, to Python or within the program
    std::unordered_set<std::string_view> named_;  // by calls whose function is not known
    bool has_entry_ = false, is_whole_ = true;
};

bool is_unused_class(const RuleContext& context, Symbol name) {
    const Classes& classes = classes_of(context);
    std::vector<std::string_view> names;
    for (const Symbol each : classes.all())
        classes.for_each_ancestor(each, [&](Symbol ancestor) {
            if (ancestor == name) names.push_back(leaf(each.str()));
        });
    const auto is_one = [&](std::string_view text) {
        return std::ranges::any_of(names, [&](std::string_view own) { return mentions(text, own); });
    };
    const auto hands_on = [&](const Operand& value) {
        return is_one(value.constant.str()) || is_one(leaf(value.refers.str())) ||
               is_one(leaf(value.name.str()));
    };
    const auto uses = [&](const Call& call) {
        if (call.result.name.str() == "__all__") return false;
        return is_one(leaf(call.name.str())) || std::ranges::any_of(call.args, hands_on);
    };
    for (const Unit& unit : context.program.units())
        if (unit.language == Language::python &&
            std::ranges::any_of(unit.taken, [&](Symbol taken) { return any_of(leaf(taken.str()), names); }))
            return false;
    return std::ranges::none_of(context.program.functions(), [&](const Function* f) {
        return is_python(*f) &&
               (std::ranges::any_of(f->calls, uses) || std::ranges::any_of(f->returned, hands_on) ||
                std::ranges::any_of(f->definitions, [&](const Definition& d) { return hands_on(d.value); }));
    });
}

bool is_unreached(const RuleContext& context, const Function& f) {
    const NativeRoots& roots =
        context.native_roots.get([&] { return std::make_shared<const NativeRoots>(context.program); });
    if (!roots.is_whole()) return false;
    const auto above = closure({&f}, [&](const Function& at, const auto& add) {
        add(context.program.definition(written_in(at)));
        for (const Call* call : context.program.callers(at.usr)) add(context.program.owner(*call));
    });
    return std::ranges::none_of(above, [&](const Function* at) { return roots.is_root(*at); });
}

}  // namespace mp::lint
