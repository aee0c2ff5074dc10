#include "analyzer/analyses/program_options.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/run_order.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/python_regions.hpp"
#include "analyzer/region/tables.hpp"

namespace mp::lint {
namespace {

// "args.bits in [4, 8]": a field, and the numbers that it may be. Of a truth, 1 and 0 stand for all that are.
struct Listed {
    std::string_view field;
    std::vector<double> numbers;
    bool is_truth = false;

    bool has(double number) const {
        return std::ranges::find(numbers, is_truth ? number != 0 : number) != numbers.end();
    }
};

std::optional<Listed> listed_in(std::string_view condition) {
    const std::size_t in = condition.find(" in [");
    if (in == std::string_view::npos || !condition.ends_with(']')) return std::nullopt;
    const std::string_view of = condition.substr(0, in);
    if (of.find(' ') != std::string_view::npos || of.find('.') == std::string_view::npos) return std::nullopt;
    Listed found{leaf(of), {}, false};
    std::string_view rest = condition.substr(in + 5, condition.size() - in - 6);
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::optional<double> number = number_in(rest.substr(0, comma));
        if (!number) return std::nullopt;
        found.numbers.push_back(*number);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        while (rest.starts_with(' ')) rest.remove_prefix(1);
    }
    return found;
}

bool names_precision(std::string_view field) {
    constexpr std::array<std::string_view, 5> kWords{"precision", "dtype", "fp16", "bf16", "amp"};
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(field, word); });
}

// 1 of True, 0 of False, 16 of 16.
std::optional<double> figure_of(const Operand& value) {
    if (const std::optional<bool> truth = truth_of(value.constant.str())) return *truth ? 1 : 0;
    return number_of(value);
}

// `bits: int = 16`, `bits: int = field(default=16)` in the body of a class; nullptr where no default is known.
const Operand* default_value(const Function& body, const Definition& d) {
    if (!d.value.assumed) return nullptr;
    const Call* made = call_of(body, d.value);
    return made ? keyword_argument(*made, "default") : &d.value;
}

std::optional<double> default_number(const Function& body, const Definition& d) {
    const Operand* value = default_value(body, d);
    return value ? figure_of(*value) : std::nullopt;
}

// torch.zeros(n, dtype=torch.float32): no value of an option "dtype".
bool is_of_array_library(const Call& call) {
    return call.name.str().starts_with("torch.") || call.name.str().starts_with("numpy.");
}

// Whether the test holds of each value that the function gives the name: self.bits = 4, Config(bits=4), c["bits"] = 4.
template <typename Test>
bool all_given(const Function& f, std::string_view name, Test test) {
    const auto is_good = [&](const Call& call) {
        const bool is_own = !has_options_of_its_own(leaf(call.name.str())) && !is_of_array_library(call);
        const Operand* given = is_own ? keyword_argument(call, name) : nullptr;
        const bool by_name = leaf(call.name.str()) == "__setitem__" || leaf(call.name.str()) == "setattr";
        const bool stores = by_name && call.args.size() > 2 && spelled(call.args[1]) == name;
        return (!given || test(*given)) && (!stores || test(call.args[2]));
    };
    return std::ranges::all_of(
               f.settings, [&](const Setting& s) { return leaf(s.key.str()) != name || test(s.value); }) &&
           std::ranges::all_of(f.calls, is_good);
}

// Whether a call or an object may give the field another value than its default.
bool may_be_given(const Program& program, std::string_view field, double otherwise) {
    const auto is_same = [&](const Operand& value) { return figure_of(value) == otherwise; };
    return std::ranges::any_of(program.functions(),
                               [&](const Function* f) { return !all_given(*f, field, is_same); });
}

// The only field of that name in the classes of the program, if its default is none of the numbers.
const Definition* field_that_is_none_of(const Program& program, const Listed& listed) {
    const Definition* found = nullptr;
    std::optional<double> number;
    for (const Function* f : program.functions()) {
        if (leaf(f->name.str()) != "<class>") continue;
        for (const Definition& d : f->definitions) {
            if (leaf(d.name.str()) != listed.field) continue;
            number = default_number(*f, d);
            if (found || !number || listed.has(*number)) return nullptr;
            found = &d;
        }
    }
    return found && !may_be_given(program, listed.field, *number) ? found : nullptr;
}

// The field that a variable holds: `lion = getattr(config, "use_lion", False)`. Empty: none.
std::string_view field_held_by(const Function& f, std::string_view variable) {
    const auto reads = std::ranges::find_if(f.calls, [&](const Call& call) {
        return call.name.str() == "getattr" && call.result.name.str() == variable && call.args.size() > 1;
    });
    return reads == f.calls.end() ? std::string_view() : spelled(reads->args[1]);
}

// "config.mixed_precision" and "fp16" of `config.mixed_precision == "fp16"`.
struct Equality {
    std::string_view name, value;
};

std::optional<Equality> equality_in(std::string_view condition) {
    const std::size_t equals = condition.find(" == ");
    if (equals == condition.npos) return std::nullopt;
    const std::string_view quoted = condition.substr(equals + 4), value = unquoted(quoted);
    if (value.size() + 2 != quoted.size() || !names_low_precision(value)) return std::nullopt;
    return Equality{condition.substr(0, equals), value};
}

// "args.fp16", "use_amp"
bool is_dotted_name(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return is_part_of_name(c) || c == '.'; });
}

// What an option has to be where this edge is taken.
std::optional<Listed> required_by(const Function& f, const Edge& edge) {
    const std::string_view condition = edge.condition.str();
    if (std::optional<Listed> listed = edge.when ? listed_in(condition) : std::nullopt) return listed;
    if (!is_dotted_name(condition)) return std::nullopt;
    const bool is_field = condition.find('.') != std::string_view::npos;
    const std::string_view field = is_field ? leaf(condition) : field_held_by(f, condition);
    return field.empty() ? std::nullopt : std::optional(Listed{field, {edge.when ? 1.0 : 0.0}, true});
}

// Ways from one name to the next: self.amp = use_amp, Trainer(use_amp=args.fp16).
constexpr int kMostNames = 4;

// "fp_16" of '--fp-16'.
std::string option_name(std::string_view flag) {
    flag.remove_prefix(std::min(flag.find_first_not_of('-'), flag.size()));
    std::string name(flag);
    std::ranges::replace(name, '-', '_');
    return name;
}

// Whether this call of add_argument defines the option.
bool defines(const Call& call, std::string_view name) {
    if (const Operand* dest = keyword_argument(call, "dest")) return spelled(*dest) == name;
    return std::ranges::any_of(call.args, [&](const Operand& flag) {
        return flag.keyword.empty() && spelled(flag).starts_with("--") && option_name(spelled(flag)) == name;
    });
}

// Looks at all that gives a name its value: defaults, calls, attributes. Each has to be False, or another text than the
// wanted one. An option that has no value, as the path of a checkpoint, is one that a user gives.
class Off {
public:
    explicit Off(const RuleContext& context, std::string_view wanted = {}, bool reads_texts = true)
        : context_(context), wanted_(wanted), reads_texts_(reads_texts) {}

    // The first default; nothing where something may turn the name on, or nothing gives it a value.
    std::optional<SourceSpan> default_of(std::string_view name) {
        if (name.empty() || is_given(name) || is_open(name)) return std::nullopt;
        open_.emplace_back(name);
        std::optional<SourceSpan> first;
        bool is_off = static_cast<int>(open_.size()) <= kMostNames;
        for (const Function* f : context_.program.functions()) {
            if (!is_off) break;
            is_off = is_off_in(*f, name, first);
        }
        open_.pop_back();
        if (!is_off) return std::nullopt;
        return !first && wanted_.empty() ? default_of_trainer(name) : first;
    }

    // `args.fp16`, `use_amp`, False.
    std::optional<SourceSpan> of_value(const Function& f, const Operand& value) {
        if (const std::optional<bool> off = is_off_constant(value.constant.str()))
            return *off ? std::optional(f.span) : std::nullopt;
        const auto param = static_cast<std::size_t>(value.param);
        const Symbol name = value.name.empty() && value.param >= 0 && param < f.params.size()
                                ? f.params[param].name
                                : value.name;
        return of_name(f, name.empty() ? value.text.str() : name.str());
    }

    std::optional<SourceSpan> of_name(const Function& f, std::string_view text) {
        // One part of a conjunction is enough.
        if (const std::size_t also = text.find(" and "); also != text.npos) {
            const std::optional<SourceSpan> left = of_name(f, text.substr(0, also));
            return left ? left : of_name(f, text.substr(also + 5));
        }
        if (!is_dotted_name(text)) return std::nullopt;
        if (text.find('.') == text.npos) {
            const auto alias =
                std::ranges::find(f.aliases, text, [](const Alias& a) { return a.name.str(); });
            if (alias != f.aliases.end() && !alias->item) text = alias->of.str();
            if (const std::string_view field = field_held_by(f, text); !field.empty()) text = field;
        }
        return default_of(leaf(text));
    }

private:
    bool is_given(std::string_view name) const {
        return reads_texts_ &&
               context_.project.is_given(wanted_.empty() ? std::string(name)
                                                         : std::string(name) + "=" + std::string(wanted_));
    }

    // Nothing for a constant that says neither.
    std::optional<bool> is_off_constant(std::string_view constant) const {
        if (wanted_.empty()) {
            const std::optional<bool> truth = truth_of(constant);
            return truth ? std::optional(!*truth) : std::nullopt;
        }
        const std::string_view text = unquoted(constant);
        return text.size() == constant.size() ? std::nullopt : std::optional(text != wanted_);
    }

    // False alone: 0 may be a number.
    bool is_off_default(std::string_view constant) const {
        return wanted_.empty() ? constant == "false" : is_off_constant(constant).value_or(false);
    }

    bool is_off_default(const Operand* value) const { return value && is_off_default(value->constant.str()); }

    bool is_open(std::string_view name) const { return std::ranges::find(open_, name) != open_.end(); }

    // Notes the first default. A name that is handed on under its own name adds nothing.
    bool is_off_value(const Function& f, const Operand& value, std::string_view name,
                      std::optional<SourceSpan>& first) {
        const auto param = static_cast<std::size_t>(value.param);
        const bool is_same = leaf(value.name.str()) == name || (value.param >= 0 && param < f.params.size() &&
                                                                f.params[param].name.str() == name);
        if (is_same && value.constant.empty()) return true;
        const std::optional<SourceSpan> off = of_value(f, value);
        if (off && !first) first = off;
        return off.has_value();
    }

    bool is_off_in(const Function& f, std::string_view name, std::optional<SourceSpan>& first) {
        if (!is_python(f)) return true;
        const auto note = [&](const SourceSpan& at) {
            if (!first) first = at;
        };
        if (leaf(f.name.str()) == "<class>")
            for (const Definition& d : f.definitions) {
                if (leaf(d.name.str()) != name) continue;
                if (!is_off_default(default_value(f, d))) return false;
                note(d.span);
            }
        for (const Parameter& p : f.params) {
            if (p.name.str() != name || (p.constant.empty() && p.refers.empty())) continue;
            if (!wanted_.empty() && p.shape == Shape::dtype) continue;
            if (!is_off_default(p.constant.str())) return false;
            note(f.span);
        }
        return all_given(f, name,
                         [&](const Operand& value) { return is_off_value(f, value, name, first); }) &&
               std::ranges::all_of(f.calls, [&](const Call& call) {
                   if (leaf(call.result.name.str()) == name && !is_off_result(f, call, first)) return false;
                   return leaf(call.name.str()) == "add_argument"
                              ? !defines(call, name) || is_off_option(call, first)
                              : is_off_by_position(f, call, name, first);
               });
    }

    // self.amp = bool(use_amp and cuda). Of other calls nothing is known. Of a field its definition tells.
    bool is_off_result(const Function& f, const Call& call, std::optional<SourceSpan>& first) {
        if (leaf(call.name.str()) == "field") return true;
        if (call.name.str() != "bool" || call.args.empty()) return false;
        const std::optional<SourceSpan> off = of_value(f, call.args[0]);
        if (off && !first) first = off;
        return off.has_value();
    }

    // Trainer(model, args.fp16), where a parameter has the name.
    bool is_off_by_position(const Function& f, const Call& call, std::string_view name,
                            std::optional<SourceSpan>& first) {
        const Function* callee = context_.program.definition(call.callee);
        if (!callee) return true;
        for (std::size_t p = 0; p < callee->params.size(); ++p) {
            if (callee->params[p].name.str() != name) continue;
            const Operand* value = argument_for(call, *callee, static_cast<std::int32_t>(p));
            return !value || is_off_value(f, *value, name, first);
        }
        return true;
    }

    bool is_off_option(const Call& call, std::optional<SourceSpan>& first) const {
        const Operand* value = keyword_argument(call, "default");
        const Operand* action = keyword_argument(call, "action");
        const bool is_flag = action && spelled(*action) == "store_true" && wanted_.empty();
        if (value ? !is_off_default(value) : !is_flag) return false;
        if (!first) first = call.span;
        return true;
    }

    // TrainingArguments of transformers, whose options a parser of its own reads.
    std::optional<SourceSpan> default_of_trainer(std::string_view name) const {
        if (name != "fp16" && name != "bf16") return std::nullopt;
        for (const Function* f : context_.program.functions())
            for (const Call& call : f->calls)
                if (leaf(call.name.str()) == "HfArgumentParser") return call.span;
        return std::nullopt;
    }

    const RuleContext& context_;
    std::string_view wanted_;  // empty: a truth
    bool reads_texts_;
    std::vector<std::string> open_;
};

}  // namespace

std::optional<bool> truth_of(std::string_view constant) {
    if (constant == "true" || constant == "1") return true;
    if (constant == "false" || constant == "0") return false;
    return std::nullopt;
}

bool names_low_precision(std::string_view value) {
    constexpr std::array<std::string_view, 3> kWords{"16", "half", "fp8"};
    return std::ranges::any_of(kWords, [&](std::string_view word) { return value.find(word) != value.npos; });
}

bool has_options_of_its_own(std::string_view callee) {
    constexpr std::array<std::string_view, 2> kLibrary{"BitsAndBytesConfig", "from_pretrained"};
    return any_of(callee, kLibrary);
}

std::optional<SourceSpan> default_that_keeps_off(const RuleContext& context, const Function& f,
                                                 const Operand& value) {
    if (!context.project.is_given || !is_python(f)) return std::nullopt;
    return Off(context).of_value(f, value);
}

std::optional<SourceSpan> default_other_than(const RuleContext& context, const Function& f,
                                             const Operand& option, std::string_view wanted) {
    if (!context.project.is_given || !is_python(f)) return std::nullopt;
    return Off(context, wanted).of_value(f, option);
}

namespace {

bool names_configuration(std::string_view name) {
    constexpr std::array<std::string_view, 7> kWords{"cfg", "conf", "arg", "opt", "param", "setting", "flag"};
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(leaf(name), word); });
}

// dict(clip=5), cfg.clip = 5, clip = 5 of a module or a class: a value of that name for which the test holds.
template <typename Test>
bool names_value(const Function& f, std::string_view name, Test test) {
    const auto is_it = [&](Symbol of, const Operand& value) { return leaf(of.str()) == name && test(value); };
    return std::ranges::any_of(f.definitions, [&](const Definition& d) { return is_it(d.name, d.value); }) ||
           std::ranges::any_of(f.settings, [&](const Setting& s) { return is_it(s.key, s.value); }) ||
           std::ranges::any_of(f.calls, [&](const Call& c) {
               return std::ranges::any_of(c.args, [&](const Operand& o) { return is_it(o.keyword, o); });
           });
}

// What the call stores under the name: 5 of cfg["clip"] = 5. nullptr where it does not.
const Operand* stored_under(const Call& call, std::string_view name) {
    const bool stores = leaf(call.name.str()) == "__setitem__" && call.args.size() > 2 &&
                        is_quoted(call.args[1].constant.str()) && spelled(call.args[1]) == name;
    return stores ? &call.args[2] : nullptr;
}

// Some code gives a value of this name.
bool is_set_in_code(const Program& program, std::string_view key) {
    const auto is_on = [](const Operand& o) {
        return o.constant.str() != "None" && truth_of(o.constant.str()) != false;
    };
    return std::ranges::any_of(program.functions(), [&](const Function* f) {
        return names_value(*f, key, is_on) ||
               std::ranges::any_of(f->calls, [&](const Call& c) { return stored_under(c, key) != nullptr; });
    });
}

// `cfg.get('clip', None)`, where no text of the project and no code gives such an entry: the place of the question.
std::optional<SourceSpan> entry_that_nothing_gives(const RuleContext& context, const Function& f,
                                                   std::string_view condition) {
    for (const Call& get : f.calls) {
        const bool asks = leaf(get.name.str()) == "get" && get.args.size() >= 2 && get.args.size() <= 3 &&
                          is_quoted(get.args[1].constant.str()) &&
                          names_configuration(get.args[0].name.str());
        if (!asks) continue;
        const std::string_view key = unquoted(get.args[1].constant.str());
        const std::string start =
            std::string(get.args[0].name.str()) + ".get(" + std::string(get.args[1].text.str());
        const bool is_this = condition.starts_with(start) && condition.ends_with(')') &&
                             condition.find(')') == condition.size() - 1;
        const bool is_off = get.args.size() == 2 || get.args[2].constant.str() == "None" ||
                            truth_of(get.args[2].constant.str()) == false;
        if (is_this && is_off && !context.project.is_given(key) && !is_set_in_code(context.program, key))
            return get.span;
    }
    return std::nullopt;
}

// The setting that a condition asks for: "clip" of "self.clip > 0", "cfg['clip'] is None" and "cfg.get('clip')".
std::string_view setting_in(std::string_view condition) {
    const std::size_t quote = condition.find_first_of("'\"");
    if (quote != condition.npos && quote > 0 &&
        (condition[quote - 1] == '[' || condition[quote - 1] == '(')) {
        const std::string_view key = condition.substr(quote + 1);
        return key.substr(0, key.find(condition[quote]));
    }
    const auto end = std::ranges::find_if(condition, [](char c) { return !is_part_of_name(c) && c != '.'; });
    return leaf(condition.substr(0, static_cast<std::size_t>(end - condition.begin())));
}

// A number above 0, True, or a text.
bool turns_on(std::string_view constant) {
    const std::optional<double> number = number_in(constant);
    return number ? *number > 0 : truth_of(constant) == true || is_quoted(constant);
}

// Some constant of the function gives the name such a value, also a default.
bool is_turned_on(const Function& f, std::string_view name) {
    const auto is_on = [](const Operand& value) { return turns_on(value.constant.str()); };
    const auto is_default = [&](const Parameter& p) {
        return p.name.str() == name && turns_on(p.constant.str());
    };
    return names_value(f, name, is_on) || std::ranges::any_of(f.params, is_default) ||
           std::ranges::any_of(f.calls, [&](const Call& c) {
               const bool is_option = leaf(c.name.str()) == "add_argument" && defines(c, name);
               const Operand* value = is_option ? keyword_argument(c, "default") : stored_under(c, name);
               return value && is_on(*value);
           });
}

// The function computes the value itself: no setting.
bool computes(const Function& f, std::string_view name) {
    constexpr std::array<std::string_view, 2> kReads{"get", "getattr"};
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return call.result.name.str() == name && !any_of(leaf(call.name.str()), kReads);
    });
}

/// The first answer that `ask` gives for an edge that must be taken for the call at `at` to run.
template <class Ask>
std::optional<SourceSpan> first_of_required(const Function& f, const SourceSpan& at, Ask ask) {
    const Call* here = is_python(f) && f.flow.size() >= 2 ? call_at(f, at) : nullptr;
    if (!here) return std::nullopt;
    for (const Block& block : f.flow)
        for (const Edge& edge : block.to) {
            if (edge.condition.empty() || !runs_only_if(f, here->block, edge.condition, edge.when)) continue;
            if (const std::optional<SourceSpan> answer = ask(edge)) return answer;
        }
    return std::nullopt;
}

}  // namespace

Symbol open_setting(const Program& program, const Function& f, std::uint32_t block,
                    std::span<const std::uint32_t> others) {
    const auto is_open = [&](const Edge& edge) {
        const auto needs = [&](std::uint32_t b) { return runs_only_if(f, b, edge.condition, edge.when); };
        const std::string_view name = setting_in(edge.condition.str());
        if (name.empty() || names_precision(name) || mentions(name, "scaler") || computes(f, name))
            return false;
        return needs(block) && std::ranges::none_of(others, needs) &&
               std::ranges::none_of(program.functions(),
                                    [&](const Function* g) { return is_turned_on(*g, name); });
    };
    for (const Block& from : f.flow)
        for (const Edge& edge : from.to)
            if (is_open(edge)) return edge.condition;
    return {};
}

std::optional<SourceSpan> option_that_excludes(const RuleContext& context, const Function& f,
                                               const SourceSpan& at) {
    return first_of_required(f, at, [&](const Edge& edge) -> std::optional<SourceSpan> {
        if (context.project.is_given && edge.when) {
            const std::string_view condition = edge.condition.str();
            const std::optional<Equality> equality = equality_in(condition);
            const auto off = equality ? Off(context, equality->value).of_name(f, equality->name)
                                      : Off(context).of_name(f, condition);
            if (off) return off;
            if (const auto entry = entry_that_nothing_gives(context, f, condition)) return entry;
        }
        const std::optional<Listed> listed = required_by(f, edge);
        if (!listed || names_precision(listed->field)) return std::nullopt;
        const Definition* field = field_that_is_none_of(context.program, *listed);
        return field ? std::optional(field->span) : std::nullopt;
    });
}

std::optional<SourceSpan> option_off_by_default(const RuleContext& context, const Function& f,
                                                const SourceSpan& at) {
    return first_of_required(f, at, [&](const Edge& edge) -> std::optional<SourceSpan> {
        return edge.when ? Off(context, {}, false).of_name(f, edge.condition.str()) : std::nullopt;
    });
}

}  // namespace mp::lint
