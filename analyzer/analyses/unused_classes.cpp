#include "analyzer/analyses/unused_classes.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {

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
    const auto is_taken = [&](Symbol taken) { return any_of(leaf(taken.str()), names); };
    if (is_handed_on(context.program, is_taken)) return false;
    return std::ranges::none_of(context.program.functions(), [&](const Function* f) {
        return is_python(*f) &&
               (std::ranges::any_of(f->calls, uses) || std::ranges::any_of(f->returned, hands_on) ||
                std::ranges::any_of(f->definitions,
                                    [&](const Definition& d) { return hands_on(d.value); })) &&
               !only_tries_out(context, f->span.file);
    });
}

}  // namespace mp::lint
