// MP210 scaler-state-not-saved
//
// What   A checkpoint holds the state of the optimizer but not that of the scaler; or the scaler's
//        state is saved and never loaded.
// Why    After a restart the scale is 65536 again: the first steps overflow and are skipped, and
//        the run is not the one that was stopped. That is a handful of steps: a note.
// Fix    scaler.state_dict() in the checkpoint, scaler.load_state_dict() where it is read.
// Silent Programs that save the scaler's state anywhere, engines that do, and where no loss is scaled; a state
//        that is saved where no code that runs loads the optimizer's.
// Tests  testdata/lint/MP210.md, tests/analyzer/rules/scaler_state_not_saved_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/analyses/unused_code.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool saves(std::string_view name) {
    const std::string_view leaf = last_part(name);
    return leaf == "save" || leaf == "save_checkpoint" || leaf == "save_on_master";
}

bool gives_state(std::string_view name) { return last_part(name) == "state_dict"; }

bool takes_state(std::string_view name) { return last_part(name) == "load_state_dict"; }

bool is_named_scaler(const Operand& value) { return mentions(key_of(value).str(), "scaler"); }

// for owner, key in ((optimizer, "optimizer"), (scaler, "scaler")): owner.load_state_dict(state[key])
bool is_item_beside_scaler(const Function& f, const Operand& value) {
    constexpr std::array<std::string_view, 3> kCollections{"tuple", "list", "dict"};
    const auto is_item = [&](const Alias& alias) { return alias.item && alias.name == value.name; };
    return std::ranges::any_of(f.aliases, is_item) && std::ranges::any_of(f.calls, [&](const Call& made) {
               return made.kind == CallKind::constructor && any_of(made.name.str(), kCollections) &&
                      std::ranges::any_of(made.args, is_named_scaler);
           });
}

bool is_of_scaler(const Protocol& protocol, const Function& f, const Call& call) {
    return !call.args.empty() && (protocol.roles().is_scaler(f, call) || is_named_scaler(call.args[0]) ||
                                  is_item_beside_scaler(f, call.args[0]));
}

// resume(model, optimizer, path) among helpers in another file, or Lars.load_state_dict() of an optimizer that wraps
// another: without a call, nothing goes on from a checkpoint.
bool is_unused_helper(const RuleContext& context, const Function& f, const Function& user) {
    const bool passes_on = f.parent_class.empty() || takes_state(f.name.str());
    return f.span.file != user.span.file && passes_on && !f.params.empty() &&
           context.program.callers(f.usr).empty();
}

// def load(model, path, optimizer=None): the optimizer of a function whose calls never pass one, but to try it out.
bool is_never_passed(const RuleContext& context, const Function& f, const Call& loads) {
    const auto& callers = context.program.callers(f.usr);
    if (loads.args.empty() || loads.args[0].param == kNone || callers.empty()) return false;
    return std::ranges::none_of(callers, [&](const Call* call) {
        const Function* caller = context.program.owner(*call);
        if (caller && is_trial(context, *caller, *call)) return false;
        return has_unpacked(*call) || argument_for(*call, f, loads.args[0].param);
    });
}

// What the files of one program do with states.
struct States {
    bool saves_scaler = false;
    bool loads_scaler = false;
    std::vector<Site> loading;         // the optimizer's
    const Function* saving = nullptr;  // the scaler's
    const Call* saved = nullptr;
};

States states_of(const RuleContext& context, const Function& user) {
    const Protocol& protocol = protocol_of(context);
    const std::vector<Symbol>& files = protocol.files_near(user);
    States found;
    const auto is_near = [&](const Function& f, const Call& c) {
        return c.kind == CallKind::method && std::ranges::find(files, f.span.file) != files.end();
    };
    for_each_call(context.program, gives_state, [&](const Function& f, const Call& c) {
        if (!is_near(f, c) || !is_of_scaler(protocol, f, c)) return;
        found.saves_scaler = true;
        found.saving = &f;
        found.saved = &c;
    });
    for_each_call(context.program, takes_state, [&](const Function& f, const Call& c) {
        if (!is_near(f, c)) return;
        if (is_of_scaler(protocol, f, c))
            found.loads_scaler = true;
        else if (protocol.roles().is_optimizer(f, c) && !is_unused_helper(context, f, user) &&
                 !is_never_called(context, f) && !is_never_passed(context, f, c))
            found.loading.push_back({&f, static_cast<std::int32_t>(&c - f.calls.data())});
    });
    return found;
}

// A program whose file saves an optimizer too loads its own checkpoints, not those of another program's file.
bool is_read_by_another(const RuleContext& context, const States& states) {
    const Protocol& protocol = protocol_of(context);
    return std::ranges::all_of(states.loading, [&](const Site& loads) {
        const Symbol file = loads.function->span.file;
        return file != states.saving->span.file &&
               std::ranges::any_of(functions_of(context.program, file), [&](const Function* f) {
                   return std::ranges::any_of(f->calls, [&](const Call& c) {
                       return c.kind == CallKind::method && gives_state(c.name.str()) &&
                              protocol.roles().is_optimizer(*f, c);
                   });
               });
    });
}

// Whether some loss is scaled: the state of a scaler that is only made never changes.
bool scales_a_loss(const Program& program) {
    constexpr std::array<std::string_view, 1> kScale{"scale"};
    bool found = false;
    for_each_call(program, last_part_in(kScale),
                  [&](const Function&, const Call& c) { found = found || c.kind == CallKind::method; });
    return found;
}

// A scaler of the file, of the class, or of what calls the function.
const MadeScaler* scaler_of(const RuleContext& context, const Function& f) {
    std::vector<const Function*> users{&f};
    for (std::size_t i = 0; i < users.size() && users.size() < 32; ++i)
        for (const Call* c : context.program.callers(users[i]->usr)) {
            const Function* caller = context.program.owner(*c);
            if (caller && std::ranges::find(users, caller) == users.end()) users.push_back(caller);
        }
    for (const MadeScaler& s : protocol_of(context).scalers())
        for (const Function* user : users)
            if (s.function->span.file == user->span.file && s.enabled.always != Switch::off) return &s;
    return nullptr;
}

void check_saves(const RuleContext& context, const Function& f, Findings& out) {
    const Protocol& protocol = protocol_of(context);
    // optimizer.state_dict()["param_groups"] is for the progress bar, not for the checkpoint.
    const auto state = std::ranges::find_if(f.calls, [&](const Call& c) {
        return c.kind == CallKind::method && gives_state(c.name.str()) &&
               protocol.roles().is_optimizer(f, c) && !consumer(f, c, indexes);
    });
    if (state == f.calls.end()) return;
    const MadeScaler* scaler = scaler_of(context, f);
    const States states = states_of(context, f);
    if (!scaler || states.saves_scaler || !scales_a_loss(context.program)) return;
    emit(context, f,
         {.rule = "MP210",
          .severity = Severity::note,
          .span = state->span,
          .message = "the checkpoint holds the optimizer's state but not the scaler's: a restart begins "
                     "with the first loss scale",
          .fix = "save state_dict() of the scaler too, and load it",
          .notes = {{scaler->call->span, "the scaler"}},
          .function = {}},
         out);
}

void check_loads(const RuleContext& context, Findings& out) {
    const Protocol& protocol = protocol_of(context);
    std::vector<const Call*> told;
    for (const MadeScaler& s : protocol.scalers()) {
        const States states = states_of(context, *s.function);
        if (!states.saved || states.loads_scaler || states.loading.empty()) continue;
        if (is_read_by_another(context, states)) continue;
        if (std::ranges::find(told, states.saved) != told.end()) continue;
        told.push_back(states.saved);
        emit(context, *states.saving,
             {.rule = "MP210",
              .severity = Severity::note,
              .span = states.saved->span,
              .message = "the scaler's state is saved and never loaded, the optimizer's is",
              .fix = "call load_state_dict of the scaler where the checkpoint is read",
              .notes = {{states.loading.front().call().span, "the optimizer's state is loaded here"}},
              .function = {}},
             out);
    }
}

void check(const RuleContext& context, Findings& out) {
    const Function* last = nullptr;       // a function that saves several times is judged once
    std::vector<const Function*> makers;  // functions of the program whose result is saved
    for_each_call(context.program, saves, [&](const Function& f, const Call& save) {
        if (f.kind == FunctionKind::python && last != &f) check_saves(context, f, out);
        last = &f;
        for (const Operand& saved : save.args) {
            const Call* made = call_of(f, saved);
            const Function* maker = made ? context.program.definition(made->callee) : nullptr;
            if (maker && is_python(*maker) && std::ranges::find(makers, maker) == makers.end())
                makers.push_back(maker);
        }
    });
    for (const Function* maker : makers)
        if (std::ranges::none_of(maker->calls, [](const Call& c) { return saves(c.name.str()); }))
            check_saves(context, *maker, out);
    check_loads(context, out);
}

}  // namespace

extern constinit const Rule kScalerStateNotSaved{.id = "MP210",
                                                 .name = "scaler-state-not-saved",
                                                 .severity = Severity::note,
                                                 .on_by_default = true,
                                                 .confirmed_by = "",
                                                 .triggers = {kLossScaling, kRegions, kEngines},
                                                 .check = check};

}  // namespace mp::lint
