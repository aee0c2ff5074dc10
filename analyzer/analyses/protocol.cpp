#include "analyzer/analyses/protocol.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"

namespace mp::lint {
namespace {

// The first number: `GradScaler(1)`, `GradScaler("cuda", 1)`, `GradScaler(init_scale=1)`.
bool begins_at_1(const Call& made) {
    if (const Operand* named = keyword_argument(made, "init_scale")) return number_of(*named) == 1.0;
    for (const Operand& given : made.args)
        if (const std::optional<double> number = given.keyword.empty() ? number_of(given) : std::nullopt)
            return *number == 1.0;
    return false;
}

Enabled enabled_of(const Function& f, const Call& made) {
    const Operand* flag = keyword_argument(made, "enabled");
    if (f.kind != FunctionKind::python || has_unpacked(made)) return {};
    const bool at_1 = begins_at_1(made);
    if (!flag || is_true(flag)) return {Switch::on, {}, at_1};
    if (is_false(flag)) return {Switch::off, {}, at_1};
    return {Switch::unknown, flag->name.empty() ? flag->text : flag->name, at_1};
}

bool is_scale_or_step(std::string_view name) {
    const std::string_view leaf = last_part(name);
    return leaf == "scale" || leaf == "step";
}

}  // namespace

Protocol::Protocol(const Program& program) : program_(program), roles_(program) {
    find_scalers();
    connect_files();
    paths_ = std::make_unique<Paths>(
        program, roles_,
        Paths::Scalers{[this](const Function& root, Symbol scaler) { return enabled(root, scaler); },
                       [this](Symbol a, Symbol b) { return are_distinct(a, b); }});
}

void Protocol::find_scalers() {
    const auto may = [this](std::string_view name) { return roles_.is_scaler_class(name); };
    for_each_call(program_, may, [this](const Function& f, const Call& c) {
        if (roles_.makes_scaler(c)) scalers_.push_back({&f, &c, c.result.name, enabled_of(f, c)});
    });
}

bool reads_scaler_state(std::string_view method) {
    constexpr std::array<std::string_view, 4> kState{"get_scale", "state_dict", "load_state_dict",
                                                     "is_enabled"};
    return any_of(method, kState);
}

// A local name that no code takes further, but for its state: scaler = GradScaler(), and then loss.backward().
bool Protocol::is_made_in_vain(const MadeScaler& s) const {
    const std::string_view name = s.name.str();
    if (!is_python(*s.function) || name.empty() || name.find('.') != std::string_view::npos) return false;
    const std::int32_t index = index_of(*s.function, *s.call);
    const auto is_it = [&](const Function& f, const Operand& o) {
        return (&f == s.function && o.call == index) || o.name == s.name;
    };
    return std::ranges::none_of(functions_of(program_, s.function->span.file), [&](const Function* f) {
        return std::ranges::any_of(f->returned, [&](const Operand& o) { return is_it(*f, o); }) ||
               std::ranges::any_of(f->settings, [&](const Setting& set) { return is_it(*f, set.value); }) ||
               std::ranges::any_of(f->definitions,
                                   [&](const Definition& d) { return leaf(d.name.str()) == name; }) ||
               std::ranges::any_of(f->calls, [&](const Call& c) {
                   const auto it =
                       std::ranges::find_if(c.args, [&](const Operand& o) { return is_it(*f, o); });
                   if (it == c.args.end()) return false;
                   const bool is_receiver = it == c.args.begin() && c.kind == CallKind::method;
                   return !is_receiver || !reads_scaler_state(leaf(c.name.str()));
               });
    });
}

void Protocol::connect_files() {
    for_each_call(program_, is_scale_or_step, [this](const Function& f, const Call& c) {
        const EventKind kind = roles_.event(f, c).kind;
        if (kind == EventKind::scale || kind == EventKind::scaler_step) scaling_files_.insert(f.span.file);
    });
    for (const Function* f : program_.functions()) {
        const Symbol file = f->span.file;
        for (const Call& c : f->calls) {
            const Function* callee = c.callee.empty() ? nullptr : program_.definition(c.callee);
            if (!callee || callee->span.file == file) continue;
            auto& known = calls_[file];
            if (std::ranges::find(known, callee->span.file) != known.end()) continue;
            known.push_back(callee->span.file);
            called_[callee->span.file].push_back(file);
        }
    }
    for (const MadeScaler& s : scalers_)
        if (!is_made_in_vain(s)) scaling_files_.insert(s.function->span.file);
}

const std::vector<Symbol>& Protocol::files_near(const Function& f) const {
    const Symbol file = f.span.file;
    return near_.get(file, [&] { return find_near(file); });
}

std::vector<Symbol> Protocol::find_near(Symbol from) const {
    std::vector<Symbol> files{from};
    std::unordered_set<Symbol> seen{from};
    for (const Files* edges : {&called_, &calls_}) {
        for (std::size_t i = 0; i < files.size(); ++i) {
            const auto next = edges->find(files[i]);
            if (next == edges->end()) continue;
            for (const Symbol file : next->second)
                if (seen.insert(file).second) files.push_back(file);
        }
    }
    return files;
}

bool Protocol::has_scaler_near(const Function& f) const {
    return std::ranges::any_of(files_near(f), [&](Symbol file) { return scaling_files_.contains(file); });
}

Symbol Protocol::scaler_in(const Function& f) const {
    Symbol found;
    for (const Call& c : f.calls) {
        if (c.kind != CallKind::method || !roles_.is_scaler(f, c)) continue;
        const Symbol name = key_of(c.args[0]);
        if (!found.empty() && name != found) return {};
        found = name;
    }
    return found;
}

Enabled Protocol::enabled(const Function& root, Symbol scaler) const {
    const std::string_view name = scaler.str();
    const Symbol leaf(last_part(name.substr(name.find('|') + 1)));
    std::vector<const MadeScaler*> exact, alike;
    for (const MadeScaler& s : scalers_) {
        if (Symbol(last_part(s.name.str())) != leaf) continue;
        alike.push_back(&s);
        const bool same_class = name.starts_with("self.") && s.function->parent_class == root.parent_class;
        const bool same_file = s.function->span.file == root.span.file;
        if (s.name == scaler && same_file && (same_class || !name.starts_with("self."))) exact.push_back(&s);
    }
    const auto& best = exact.empty() ? alike : exact;
    if (best.empty()) return {};
    for (const MadeScaler* s : best)
        if (s->enabled != best[0]->enabled) return {};
    return best[0]->enabled;
}

// One function makes both.
bool Protocol::are_distinct(Symbol a, Symbol b) const {
    const auto maker_of = [&](Symbol key, const Function* in) {
        const auto is_it = [&](const MadeScaler& s) {
            return (!in || s.function == in) && last_part(s.name.str()) == last_part(key.str());
        };
        const auto found = std::ranges::find_if(scalers_, is_it);
        return found == scalers_.end() ? nullptr : found->function;
    };
    if (a.empty() || b.empty() || last_part(a.str()) == last_part(b.str())) return false;
    const Function* const maker = maker_of(a, nullptr);
    return maker && maker_of(b, maker);
}

const Protocol& protocol_of(const RuleContext& context) {
    return context.protocol.get([&] { return std::make_shared<const Protocol>(context.program); });
}

std::string shown(Symbol key, std::string_view otherwise) {
    const std::string_view text = key.str();
    const std::string_view name = text.substr(text.rfind('|') + 1);
    return name.empty() ? std::string(otherwise) : "'" + std::string(name) + "'";
}

std::vector<Violation> violations_of(const RuleContext& context, Defect defect) {
    std::vector<Violation> found;
    for (const Violation& v : protocol_of(context).violations())
        if (v.defect == defect) found.push_back(v);
    return found;
}

void add_note(std::vector<Note>& notes, const Site& site, std::string text) {
    if (site.known()) notes.push_back({site.call().span, std::move(text)});
}

std::vector<Edit> line_before(const Site& site, const std::string& statement) {
    const Call& call = site.call();
    const Function& f = *site.function;
    if (f.kind != FunctionKind::python || !call.span.known() || call.span.column == 0) return {};
    const bool is_operand = std::ranges::any_of(f.calls, [&](const Call& c) {
        return std::ranges::any_of(c.args, [&](const Operand& o) { return o.call == site.index; });
    });
    const bool is_returned =
        std::ranges::any_of(f.returned, [&](const Operand& o) { return o.call == site.index; });
    if (is_operand || is_returned || !call.result.name.empty()) return {};
    SourceSpan at = call.span;
    at.end_line = at.line;
    at.end_column = at.column;
    return {{at, statement + "\n" + std::string(at.column - 1, ' ')}};
}

}  // namespace mp::lint
