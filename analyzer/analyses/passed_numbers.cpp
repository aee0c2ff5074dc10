#include "analyzer/analyses/passed_numbers.hpp"

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/region/object_classes.hpp"

namespace mp::lint {
namespace {

constexpr int kFarthest = 4;              // parameters and attributes on the way to a number
constexpr std::size_t kMostCallers = 32;  // of one function; each is followed, and so are theirs

class Finder {
public:
    explicit Finder(const RuleContext& context) : context_(context), classes_(classes_of(context)) {}

    PassedNumber of(const Function& f, const Operand& operand, int left) const {
        if (const auto value = number_of(operand)) return {value, operand.assumed};
        if (left == 0 || !is_python(f) || operand.call != kNone) return {};
        if (is_attribute_of_self(operand) && !f.parent_class.empty()) {
            const auto [init, value] = classes_.kept(f.parent_class, operand.name);
            return value ? of(*init, *value, left - 1) : PassedNumber{};
        }
        const bool is_parameter =
            operand.param != kNone && static_cast<std::size_t>(operand.param) < f.params.size();
        return is_parameter ? of_parameter(f, operand.param, left) : PassedNumber{};
    }

private:
    PassedNumber of_parameter(const Function& f, std::int32_t param, int left) const {
        Operand standard;
        standard.constant = f.params[static_cast<std::size_t>(param)].constant;
        const auto callers = context_.program.callers(f.usr);
        if (callers.size() > kMostCallers) return {};
        PassedNumber common{.value = number_of(standard), .assumed = true};
        bool first = true;
        for (const Call* call : callers) {
            const Function* caller = context_.program.owner(*call);
            const Operand* given = argument_for(*call, f, param);
            if (!caller || (!given && has_unpacked(*call))) return {};
            const PassedNumber one = given ? of(*caller, *given, left - 1)
                                           : PassedNumber{.value = number_of(standard), .assumed = false};
            if (!one.value || (!first && one.value != common.value)) return {};
            common = {.value = one.value, .assumed = one.assumed || (!first && common.assumed)};
            first = false;
        }
        return common;
    }

    const RuleContext& context_;
    const Classes& classes_;
};

}  // namespace

PassedNumber passed_number(const RuleContext& context, const Function& f, const Operand& operand) {
    return Finder(context).of(f, operand, kFarthest);
}

}  // namespace mp::lint
