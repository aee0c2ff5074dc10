#include "analyzer/rules/protocol.hpp"

#include <algorithm>

#include "analyzer/rules/arguments.hpp"

namespace mp::lint {
namespace {

Enabled enabled_of(const Function& f, const Call& made) {
    const Operand* flag = keyword_argument(made, "enabled");
    if (f.kind != FunctionKind::python || has_unpacked(made)) return {};
    if (!flag || is_true(flag)) return {Switch::on, {}};
    if (is_false(flag)) return {Switch::off, {}};
    return {Switch::unknown, flag->name.empty() ? flag->text : flag->name};
}

}  // namespace

Protocol::Protocol(const Program& program) : program_(program), roles_(program) {
    find_scalers();
    connect_files();
    paths_ = std::make_unique<Paths>(program, roles_, [this](const Function& root, Symbol scaler) {
        return enabled(root, scaler);
    });
}

void Protocol::find_scalers() {
    for (const Function* f : program_.functions())
        for (const Call& c : f->calls)
            if (roles_.makes_scaler(c))
                scalers_.push_back({f, &c, c.result.name, enabled_of(*f, c)});
}

Symbol Protocol::group(Symbol file) const {
    for (auto found = groups_.find(file); found != groups_.end() && found->second != file;
         found = groups_.find(file))
        file = found->second;
    return file;
}

void Protocol::connect_files() {
    for (const Function* f : program_.functions()) {
        groups_.try_emplace(f->span.file, f->span.file);
        for (const Call& c : f->calls) {
            const Function* callee = c.callee.empty() ? nullptr : program_.definition(c.callee);
            if (!callee || callee->span.file == f->span.file) continue;
            groups_.try_emplace(callee->span.file, callee->span.file);
            groups_[group(callee->span.file)] = group(f->span.file);
        }
    }
    for (const MadeScaler& s : scalers_) scaling_groups_[group(s.function->span.file)] = true;
    for (const Function* f : program_.functions())
        for (const Call& c : f->calls) {
            const EventKind kind = roles_.event(*f, c).kind;
            if (kind == EventKind::scale || kind == EventKind::scaler_step)
                scaling_groups_[group(f->span.file)] = true;
        }
}

bool Protocol::has_scaler_near(const Function& f) const {
    return scaling_groups_.contains(group(f.span.file));
}

std::vector<Symbol> Protocol::files_near(const Function& f) const {
    std::vector<Symbol> files;
    const Symbol wanted = group(f.span.file);
    for (const auto& [file, parent] : groups_)
        if (group(file) == wanted) files.push_back(file);
    return files;
}

Enabled Protocol::enabled(const Function& root, Symbol scaler) const {
    const std::string_view name = scaler.str();
    const Symbol leaf(last_part(name.substr(name.find('|') + 1)));
    std::vector<const MadeScaler*> exact, alike;
    for (const MadeScaler& s : scalers_) {
        if (Symbol(last_part(s.name.str())) != leaf) continue;
        alike.push_back(&s);
        const bool same_class =
            name.starts_with("self.") && s.function->parent_class == root.parent_class;
        const bool same_file = s.function->span.file == root.span.file;
        if (s.name == scaler && same_file && (same_class || !name.starts_with("self.")))
            exact.push_back(&s);
    }
    const auto& best = exact.empty() ? alike : exact;
    if (best.empty()) return {};
    for (const MadeScaler* s : best)
        if (s->enabled.always != best[0]->enabled.always || s->enabled.when != best[0]->enabled.when)
            return {};
    return best[0]->enabled;
}

const Protocol& protocol_of(const RuleContext& context) {
    if (!context.protocol) context.protocol = std::make_shared<const Protocol>(context.program);
    return *context.protocol;
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
    const bool is_returned = std::ranges::any_of(
        f.returned, [&](const Operand& o) { return o.call == site.index; });
    if (is_operand || is_returned || !call.result.name.empty()) return {};
    SourceSpan at = call.span;
    at.end_line = at.line;
    at.end_column = at.column;
    return {{at, statement + "\n" + std::string(at.column - 1, ' ')}};
}

}  // namespace mp::lint
