// What an object and a condition are called in the root, whatever the function at hand calls them: through
// parameters, other names (`s = self.scaler`), and attributes that a constructor was given.

#include <algorithm>
#include <cctype>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/protocol_paths.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

constexpr std::string_view kIsNone = " is None", kIsEnabled = ".is_enabled()";

// The first name of "self.scaler", "net->scaler" and "state['opt']".
std::string_view head_of(std::string_view key) {
    return key.substr(0, std::min(key.find_first_of(".["), key.find("->")));
}

std::size_t parameter_named(const Function& f, std::string_view name) {
    const auto at = std::ranges::find_if(f.params, [&](const Parameter& p) { return p.name.str() == name; });
    return static_cast<std::size_t>(at - f.params.begin());
}

bool assigns(const Function& f, std::string_view name) {
    return std::ranges::any_of(f.calls, [&](const Call& c) { return c.result.name.str() == name; });
}

bool is_nested(const Function& f) {
    return f.kind == FunctionKind::lambda || f.name.str().find("operator()") != std::string_view::npos;
}

Symbol joined(std::string_view a, std::string_view b) { return Symbol(std::string(a) += b); }

bool is_constant_name(std::string_view name) {
    return std::ranges::none_of(name, [](unsigned char c) { return std::islower(c) != 0; });
}

// Replaces the first names by what they stand for. False when they stand for themselves.
bool replace_head(const std::unordered_map<Symbol, Alias>& aliases, std::string& text) {
    std::size_t end = 0;
    for (int parts = 0; parts < 3 && end < text.size(); ++parts) {
        end = std::min(text.find_first_of(".[", end + 1), text.size());
        const auto found = aliases.find(Symbol(text.substr(0, end)));
        if (found == aliases.end()) continue;
        const Alias& alias = found->second;
        const bool known = !alias.of.empty();
        text.replace(0, end,
                     std::string(known ? alias.of.str() : alias.name.str()) += alias.item ? "[]" : "");
        return known;
    }
    return false;
}

// The attribute of `self` that keeps this parameter of the constructor.
Symbol attribute_for(const Function& constructor, std::string_view param) {
    const std::size_t at = parameter_named(constructor, param);
    for (const Setting& s : constructor.settings)
        if (at < constructor.params.size() && s.value.param == static_cast<std::int32_t>(at)) return s.key;
    return {};
}

}  // namespace

// `trainer = Trainer(scaler)`: trainer.amp is the scaler, if the constructor keeps it under that name. In
// another method of the class of `in`, only attributes of self are known.
void Paths::add_attributes(const Function& of, const Function& in, Body& body) const {
    for (const Call& c : in.calls) {
        const std::string_view object = c.result.name.str();
        if (c.kind != CallKind::constructor || object.empty() || c.callee.empty()) continue;
        if (&of != &in && !object.starts_with("self.")) continue;
        const Function* const constructor = program_.definition(c.callee);
        if (!constructor) continue;
        const Passed passed(c, *constructor);
        for (const Setting& s : constructor->settings) {
            if (s.value.param == kNone || !s.key.str().starts_with("self.")) continue;
            const Operand* const given = passed[static_cast<std::size_t>(s.value.param)];
            Symbol key = given ? key_of(*given) : Symbol{};
            if (&of != &in && !key.str().starts_with("self.")) key = attribute_for(in, key.str());
            const Symbol name = joined(object, s.key.str().substr(4));
            if (!key.empty()) body.aliases.try_emplace(name, Alias{.name = name, .of = key});
        }
    }
}

void Paths::find_aliases(const Function& f, Body& body) const {
    for (const Alias& alias : f.aliases) body.aliases.try_emplace(alias.name, alias);
    if (!is_python(f)) return;
    add_attributes(f, f, body);
    if (f.parent_class.empty()) return;
    const Function* const constructor = program_.definition(joined(f.parent_class.str(), ".__init__"));
    if (constructor && constructor != &f) add_attributes(f, *constructor, body);
}

Symbol Paths::resolved(const Function& f, Symbol key) {
    constexpr int kMaxNames = 4;
    Body& known = body(f);
    if (known.aliases.empty() || key.empty()) return key;
    const auto [entry, is_new] = known.resolved.try_emplace(key, key);
    if (!is_new) return entry->second;
    std::string text(key.str());
    for (int i = 0; i < kMaxNames && replace_head(known.aliases, text); ++i) {
    }
    return entry->second = Symbol(text);
}

Symbol Paths::canonical(const Frame& frame, Symbol key) {
    if (key.empty()) return key;
    const Function& f = *frame.function;
    const Symbol named = resolved(f, key);
    if (frame.depth == 0) return named;
    const std::string_view text = named.str();
    const std::string_view head = head_of(text);
    const std::size_t param = parameter_named(f, head);
    if (param < f.params.size()) {
        const Symbol bound = frame.bindings[param].key;
        if (!bound.empty()) {
            const std::string_view rest = text.substr(head.size());
            return rest.empty() ? bound : resolved(*root_, joined(bound.str(), rest));
        }
    } else if (is_nested(f) || !assigns(f, head)) {
        return named;  // captured, or of the module
    }
    return joined(std::string(f.usr.str()) += '|', text);
}

Symbol Paths::name_in_root(Frame& frame, std::string_view name, bool& local) {
    const Function& f = *frame.function;
    const Symbol named = resolved(f, Symbol(name));
    if (frame.depth == 0 || is_nested(f)) return named;
    const std::string_view text = named.str();
    const std::string_view head = head_of(text);
    const std::size_t param = parameter_named(f, head);
    if (param < f.params.size()) {
        const Symbol bound = frame.bindings[param].key;
        if (!bound.empty()) return resolved(*root_, joined(bound.str(), text.substr(head.size())));
    } else if (is_constant_name(text) || (head.size() < text.size() && !assigns(f, head))) {
        return named;  // of the module
    }
    local = true;
    return joined(std::string(f.usr.str()) += '|', text);
}

Paths::Condition Paths::make_condition(Frame& frame, Symbol text) {
    std::string_view subject = text.str();
    const bool about_none = subject.ends_with(kIsNone);
    if (about_none) subject.remove_suffix(kIsNone.size());
    const std::size_t param = parameter_named(*frame.function, subject);
    if (frame.depth > 0 && param < frame.bindings.size()) {
        const Binding& b = frame.bindings[param];
        const std::string_view constant = b.constant.str();
        if (about_none && b.omitted) return {text, 1};  // the default that such code tests for
        if (about_none && !constant.empty()) return {text, constant == "None"};
        if (!about_none && constant == "true") return {text, 1};
        if (!about_none && (constant == "false" || constant == "None")) return {text, 0};
        if (!about_none && !b.condition.empty()) return {b.condition};
    }
    Condition made;
    std::string out;
    const std::string_view in = text.str();
    for (std::size_t i = 0; i < in.size();) {
        std::size_t end = i + 1;
        const bool quoted = in[i] == '\'' || in[i] == '"';
        if (quoted) {
            end = std::min(in.find(in[i], i + 1), in.size() - 1) + 1;
        } else if (is_part_of_name(in[i])) {
            while (end < in.size() && (is_part_of_name(in[end]) || in[end] == '.')) ++end;
        }
        const std::string_view token = in.substr(i, end - i);
        const bool named =
            !quoted && is_part_of_name(token[0]) && std::isdigit(static_cast<unsigned char>(token[0])) == 0;
        const bool keyword = token == "is" || token == "None" || token == "in" || token == "and" ||
                             token == "or" || token == "not" || token == "True" || token == "False";
        const bool called = end < in.size() && in[end] == '(' && token.find('.') == std::string_view::npos;
        out += named && !keyword && !called ? name_in_root(frame, token, made.local).str() : token;
        i = end;
    }
    made.text = Symbol(out);
    if (made.text.str().ends_with(kIsEnabled)) {
        const Symbol scaler(made.text.str().substr(0, out.size() - kIsEnabled.size()));
        const Switch always = scalers_.enabled(*root_, scaler).always;
        if (always != Switch::unknown) made.decided = always == Switch::on;
    }
    return made;
}

const Paths::Condition& Paths::condition(Frame& frame, Symbol text) {
    const auto known = frame.conditions.find(text);
    if (known != frame.conditions.end()) return known->second;
    return frame.conditions.emplace(text, make_condition(frame, text)).first->second;
}

Paths::Way Paths::assume(Frame& frame, const Edge& edge, bool tracked, PathState& state) {
    if (edge.condition.empty()) return Way::open;
    const Condition& c = condition(frame, edge.condition);
    if (c.decided >= 0) return (c.decided == 1) == edge.when ? Way::open : Way::never;
    for (const Assumed& known : state.assumed)
        if (known.condition == c.text) return known.when == edge.when ? Way::open : Way::not_taken;
    if (tracked) add_assumed(state, {c.text, edge.when, c.local ? frame.function : nullptr});
    return Way::open;
}

// An object whose method has run is there.
void Paths::note_use(const Frame& frame, Symbol key, PathState& state) const {
    if (key.empty() || varies(key)) return;
    const std::string_view text = key.str(), usr = frame.function->usr.str();
    const bool local = text.starts_with(usr) && text.substr(usr.size()).starts_with('|');
    const Function* const of = local ? frame.function : nullptr;
    add_assumed(state, {key, true, of});
    add_assumed(state, {joined(text, kIsNone), false, of});
}

bool Paths::disabled(Symbol scaler, const PathState& state) const {
    const Enabled enabled = scalers_.enabled(*root_, scaler);
    if (enabled.always == Switch::off) return true;
    const std::string_view name = scaler.str(), when = last_part(enabled.when.str());
    return std::ranges::any_of(state.assumed, [&](const Assumed& a) {
        const std::string_view text = a.condition.str();
        if (!a.when && !when.empty() && last_part(text) == when) return true;
        if (!text.starts_with(name) || name.empty()) return false;
        const std::string_view rest = text.substr(name.size());
        return a.when ? rest == kIsNone : rest.empty() || rest == kIsEnabled;
    });
}

Paths::Bindings Paths::bind(Frame& frame, const Call& call, const Function& callee) {
    Bindings bound(callee.params.size());
    const bool python = callee.kind == FunctionKind::python;
    // A C++ receiver is not a parameter; a Python constructor's object is not an argument.
    std::size_t arg = !python && call.kind == CallKind::method ? 1 : 0;
    std::size_t param = python && call.kind == CallKind::constructor ? 1 : 0;
    if (python && !has_unpacked(call))
        for (std::size_t i = param; i < bound.size(); ++i)
            bound[i] = {{}, callee.params[i].constant, {}, true};
    for (; arg < call.args.size(); ++arg) {
        const Operand& a = call.args[arg];
        const std::string_view keyword = a.keyword.str();
        if (keyword == "*" || keyword == "**") break;
        const std::size_t at = keyword.empty() ? param++ : parameter_named(callee, keyword);
        if (at >= bound.size()) continue;
        bound[at] = {canonical(frame, key_of(a)), a.constant, {}, false};
        const auto& tracked = frame.body->tracked;
        if (a.name.empty() && std::ranges::find(tracked, a.text) != tracked.end())
            bound[at].condition = condition(frame, a.text).text;
    }
    return bound;
}

}  // namespace mp::lint
