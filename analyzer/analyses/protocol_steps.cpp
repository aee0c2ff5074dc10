// The effect of each event on the state of a path, and the defects that it proves.

#include <algorithm>

#include "analyzer/analyses/protocol_paths.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

using enum EventKind;

Site site_of(const Function* f, std::int32_t call) { return {f, call}; }

// An op on tensors whose result has the scale of its input.
bool passes_on(const Call& call) {
    return call.kind == CallKind::op || call.kind == CallKind::method || call.kind == CallKind::constructor;
}

// `loss * 1024`: a loss scale of one's own.
bool is_multiplied(const Function& f, const Operand& loss) {
    const Call* from = call_of(f, loss);
    if (!from || last_part(from->name.str()) != "__mul__") return false;
    return std::ranges::any_of(from->args, [](const Operand& a) {
        const std::optional<double> factor = number_of(a);
        // Anything but a number is a scale that is kept elsewhere, or a weight; both are left
        // alone.
        return factor ? *factor > 1 : a.call == kNone && a.shape != Shape::tensor;
    });
}

// Whether the loss is scaled may be decided in another function, and a setting that is not known may lead around what
// settles the obligation.
Severity proven_by(const Obligation& duty) {
    const bool is_open = duty.block == Obligation::kSomewhere || duty.by_setting;
    return is_open ? Severity::warning : Severity::error;
}

// Whether this backward comes after the loop over optimizers in which each was stepped, and not in it.
bool is_after_loop(const Stepped& t, const Site& backward) {
    return !varies(t.optimizer) ||
           (t.site.function == backward.function && backward.call().loop_depth < t.site.call().loop_depth);
}

// A backward that runs once, before the loop in which the scaler steps.
bool is_before_loop(const Site& backward, const Site& step) {
    return backward.function == step.function && backward.call().loop_depth < step.call().loop_depth;
}

// scaler.scale(torch.zeros(1).mean()), so that the scaler makes its scale: no loss.
bool is_of_zeros(const Function& f, const Call& scale) {
    const Call* made = scale.args.empty() ? nullptr : call_of(f, scale.args.back());
    while (made && (made->op.name() == "mean" || made->op.name() == "sum") && !made->args.empty())
        made = call_of(f, made->args.front());
    return made && made->name.str() == "torch.zeros";
}

}  // namespace

// Another method of the class does what this path lacks; when it runs is not known.
bool Paths::may_be_settled_elsewhere(const Violation& v) const {
    const bool of_update = v.defect == Defect::no_update;
    const bool of_unscale = v.defect == Defect::clip_scaled || v.defect == Defect::grads_inspected;
    const EventMask wanted = mask_of(of_update ? update : unscale);
    if ((!of_update && !of_unscale) || (mask(*root_) & wanted)) return false;
    const Symbol owner = v.at.function->parent_class;
    return std::ranges::any_of(masks_, [&](const auto& entry) {
        const auto& [f, happens] = entry;
        if (!(happens & wanted)) return false;
        if (!owner.empty() && f->parent_class == owner) return true;
        return of_update && !(happens & mask_of(scaler_step));
    });
}

void Paths::report(Violation v) {
    if (may_be_settled_elsewhere(v)) return;
    const auto known = std::ranges::find_if(
        violations_, [&](const Violation& old) { return old.defect == v.defect && old.at == v.at; });
    if (known == violations_.end())
        violations_.push_back(v);
    else if (v.at_most > known->at_most)
        *known = v;
}

ScalerState& Paths::slot(PathState& state, Symbol key) const {
    const auto found = std::ranges::find(state.scalers, key, &ScalerState::key);
    if (found != state.scalers.end()) return *found;
    state.scalers.push_back({});
    state.scalers.back().key = key;
    return state.scalers.back();
}

void Paths::open(ScalerState& scaler, Duty duty, std::uint32_t block, Site site) const {
    scaler.duty(duty) = {.active = true, .block = block, .opened = site};
}

// The loss that the scaler has scaled on this path, if this one comes from it; nullptr when there is none.
Paths::Scaled Paths::scaled_by(const Frame& frame, const Operand& loss, PathState& state, int depth) {
    const Function& f = *frame.function;
    for (ScalerState& s : state.scalers)
        for (ScaledLoss& p : s.pending) {
            const bool direct = p.site.function == &f && loss.call == p.site.index;
            if (!direct && (p.name.empty() || canonical(frame, key_of(loss)) != p.name)) continue;
            p.used = true;
            return {&s, p.block};
        }
    const Call* from = call_of(f, loss);
    if (!from || depth > 6 || !passes_on(*from)) return {};
    for (const Operand& a : from->args)
        if (const Scaled found = scaled_by(frame, a, state, depth + 1); found.scaler) return found;
    return {};
}

// Who made the loss is not seen: it may be scaled already.
bool Paths::is_open_question(const Frame& frame, const Operand& loss) const {
    const Function& f = *frame.function;
    if (frame.depth == 0 && loss.param != kNone) return true;
    const std::string_view name = loss.name.str();
    if (name.starts_with("self.") || name.starts_with("this->")) return true;
    const Call* from = call_of(f, loss);
    if (!from) return false;
    if (roles_.event(f, *from).kind == scale) return false;
    if (last_part(from->name.str()) == "scale") return true;
    const Function* callee = from->callee.empty() ? nullptr : program_.definition(from->callee);
    return callee && (mask(*callee) & mask_of(scale));
}

void Paths::step(Frame& frame, std::uint32_t block, const Item& item, PathState& state) {
    const Function& f = *frame.function;
    const Call& c = f.calls[static_cast<std::size_t>(item.call)];
    const Event& e = item.event;
    const Site here = site_of(&f, item.call);
    const Symbol result = canonical(frame, c.result.name);
    if (!result.empty())  // assigned anew
        for (ScalerState& s : state.scalers) {
            const auto is_it = [&](const Stepped& t) { return t.optimizer == result; };
            std::erase_if(s.pending, [&](const ScaledLoss& p) { return p.name == result; });
            std::erase_if(s.stepped, is_it);
            std::erase_if(s.unscaled, is_it);
        }
    if (item.unseen != Item::Unseen::none) on_unseen(frame, item, state);
    switch (e.kind) {
        case scale: {
            const Symbol key = canonical(frame, e.subject);
            if (disabled(key, state) || is_of_zeros(f, c)) break;
            slot(state, key).pending.push_back({result, here, false, block});
            note_use(frame, key, state);
            break;
        }
        case backward:
            on_backward(frame, block, item, state);
            break;
        case clip:
        case inspect:
            on_gradients(frame, item, state);
            break;
        case unscale:
            on_unscale(frame, block, item, state);
            break;
        case scaler_step:
            on_scaler_step(frame, block, item, state);
            break;
        case update:
            on_update(frame, item, state);
            break;
        case optimizer_step:
            on_optimizer_step(frame, item, state);
            break;
        case zero_grad:
            on_zero_grad(state);
            break;
        case managed:
            state.plain = {};
            break;
        case region:
            state.region = here;
            break;
        case penalty:
            if (e.loss && !scaled_by(frame, *e.loss, state, 0).scaler) state.penalty = here;
            break;
        case read_scale:
            for (ScalerState& s : state.scalers) {
                s.duty(Duty::unscale).active = s.duty(Duty::scaler_step).active = false;
                s.just_stepped = {};
            }
            break;
        case scheduler_step:
            for (ScalerState& s : state.scalers)
                if (s.just_stepped.known() && s.just_stepped.function == &f &&
                    s.just_stepped.call().loop_depth == c.loop_depth)
                    report({Defect::blind_scheduler, here, s.just_stepped, {}, s.key, {}});
            break;
        case none:
            break;
    }
}

// Code that is not seen may have done what the path lacks.
void Paths::on_unseen(const Frame& frame, const Item& item, PathState& state) {
    const Call& c = frame.function->calls[static_cast<std::size_t>(item.call)];
    const auto is_given = [&](Symbol scaler) {
        return item.unseen == Item::Unseen::all || std::ranges::any_of(c.args, [&](const Operand& a) {
                   return canonical(frame, key_of(a)) == scaler;
               });
    };
    for (ScalerState& s : state.scalers)
        if (is_given(s.key))
            for (Obligation& o : s.duties) o.doubt = true;
}

// A scaler that has scaled nothing on this path may be another name of one that has.
void Paths::doubt_others(const ScalerState& used, PathState& state) const {
    if (used.scaled.known() || !used.pending.empty()) return;
    for (ScalerState& s : state.scalers)
        if (&s != &used && !scalers_.are_distinct(s.key, used.key))
            for (Obligation& o : s.duties) o.doubt = true;
}

void Paths::on_backward(Frame& frame, std::uint32_t block, const Item& item, PathState& state) {
    const Site here = site_of(frame.function, item.call);
    const Operand& loss = *item.event.loss;
    for (ScalerState& s : state.scalers) {
        for (Stepped& u : s.unscaled) u.again |= is_after_loop(u, here);
        for (Stepped& t : s.stepped) t.again |= is_after_loop(t, here);
    }
    auto [scaler, scaled_in] = scaled_by(frame, loss, state, 0);
    for (ScalerState& s : state.scalers)
        for (ScaledLoss& p : s.pending) {
            // Kept in a list, or returned by a helper: this may be it.
            if (scaler || p.used || (!p.name.empty() && p.site.function == frame.function)) continue;
            p.used = true;
            scaler = &s;
            scaled_in = p.block;
        }
    if (!scaler) {
        if (is_open_question(frame, loss) || is_multiplied(*frame.function, loss)) {
            // Whatever these gradients are, they are not those of the backward before.
            for (ScalerState& s : state.scalers)
                s.duty(Duty::unscale).active = s.duty(Duty::scaler_step).active = false;
            return;
        }
        state.plain = here;
        state.plain_region = state.region;
        return;
    }
    if (scaler->early_update.known() && scaler->early_scaled.known())
        report({Defect::update_per_backward, scaler->early_update, here, {}, scaler->key, {}});
    if (state.penalty.known() && state.region.known())
        report({Defect::penalty_unscaled, state.penalty, here, {}, scaler->key, {}});
    state.penalty = {};
    std::erase_if(scaler->pending, [](const ScaledLoss& p) { return p.used && p.name.empty(); });
    scaler->scaled = here;
    scaler->early_update = scaler->early_scaled = scaler->just_stepped = {};
    // Gradients are scaled only where both have happened, scale() and backward.
    const std::uint32_t since = dominates(*frame.body, scaled_in, block) ? block : scaled_in;
    for (const Duty d : {Duty::unscale, Duty::scaler_step, Duty::step_first}) open(*scaler, d, since, here);
}

void Paths::on_gradients(Frame& frame, const Item& item, PathState& state) {
    for (ScalerState& s : state.scalers) {
        const Obligation& duty = s.duty(Duty::unscale);
        if (!duty.due() || !s.scaled.known()) continue;
        if (disabled(s.key, state)) continue;
        // Another training of the program has made these gradients since, without a scale.
        if (state.plain.function == frame.function && s.scaled.function != frame.function) continue;
        // A guarded unscale_ may be guarded by what enables the scaler.
        if (duty.skipped && scalers_.enabled(*root_, s.key).always != Switch::on) continue;
        const Defect defect = item.event.kind == clip ? Defect::clip_scaled : Defect::grads_inspected;
        report({defect, site_of(frame.function, item.call), s.scaled, {}, s.key, {}, proven_by(duty)});
    }
}

void Paths::on_unscale(Frame& frame, std::uint32_t block, const Item& item, PathState& state) {
    const Site here = site_of(frame.function, item.call);
    const Symbol key = canonical(frame, item.event.subject);
    const Symbol optimizer = canonical(frame, item.event.optimizer);
    if (disabled(key, state)) return;
    note_use(frame, key, state);
    ScalerState& s = slot(state, key);
    doubt_others(s, state);
    for (const Stepped& u : s.unscaled)
        if (u.optimizer == optimizer && u.again && !optimizer.empty() && s.duty(Duty::finish).due())
            report(
                {Defect::unscaled_twice, here, u.site, {}, key, optimizer, proven_by(s.duty(Duty::finish))});
    std::erase_if(s.unscaled, [&](const Stepped& u) { return u.optimizer == optimizer; });
    s.unscaled.push_back({optimizer, here});
    s.duty(Duty::unscale).active = s.duty(Duty::scaler_step).active = false;
    open(s, Duty::finish, block, here);
}

// `if i % 4 == 0: step(a)` and later `if i % 4 == 0: step(b); update()`: both stand behind branches on what changes
// from round to round, which may be one condition.
bool Paths::may_update_as_it_steps(const Site& step) {
    const Function& f = *step.function;
    const Body& where = body(f);
    const auto is_behind_branch = [&](std::uint32_t block, std::uint32_t beside) {
        const auto is_open = [](const Edge& e) { return !e.raises && e.condition.empty(); };
        while (block != 0 && !dominates(where, block, beside)) {
            block = where.flow.dominator(block);
            if (block >= f.flow.size()) return false;
            if (f.flow[block].to.size() > 1 && std::ranges::any_of(f.flow[block].to, is_open)) return true;
        }
        return false;
    };
    const std::uint32_t stepped = step.call().block;
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return roles_.event(f, call).kind == update && is_behind_branch(call.block, stepped) &&
               is_behind_branch(stepped, call.block);
    });
}

// Two models with a scaler each: this one steps in the function of the plain backward and scales nothing there, the
// other one does on every way.
bool Paths::is_beside_another(const Frame& frame, const ScalerState& s, const PathState& state) {
    const Function& f = *frame.function;
    if (state.plain.function != &f) return false;
    const Body& where = body(f);
    bool other = false;
    for (const Call& call : f.calls) {
        const Event e = roles_.event(f, call);
        if (e.kind != scale) continue;
        const Symbol key = canonical(frame, e.subject);
        if (key.empty() || !scalers_.are_distinct(key, s.key)) return false;
        other |= dominates(where, call.block, state.plain.call().block);
    }
    return other;
}

// loss.backward(); scaler.step(optimizer); scaler.scale(loss).backward(): what is scaled comes too late for the step.
bool Paths::scales_after(const Frame& frame, const Call& step, const PathState& state) {
    const Function& f = *frame.function;
    if (state.plain.function != &f) return false;
    const Body& where = body(f);
    if (!dominates(where, state.plain.call().block, step.block)) return false;
    bool scales = false;
    for (const Call& call : f.calls) {
        if (roles_.event(f, call).kind != scale) continue;
        if (&call < &step || !dominates(where, step.block, call.block)) return false;
        scales = true;
    }
    return scales;
}

// scaler.scale(loss).backward() is plain where the scaler is off, which a path can forget when it leaves the function.
bool Paths::is_of_scale(const Site& backward) const {
    const Event e = roles_.event(*backward.function, backward.call());
    const Call* from = e.loss ? call_of(*backward.function, *e.loss) : nullptr;
    return from && roles_.event(*backward.function, *from).kind == scale;
}

// Whether the plain backward is a defect of this path, and not the branch without a scaler.
bool Paths::plain_is_proven(const Frame& frame, const Call& step, const ScalerState& s,
                            const PathState& state) {
    if (is_of_scale(state.plain)) return false;
    const EventMask all = mask(*root_);
    if (!(all & mask_of(scale)) || scales_after(frame, step, state)) return true;
    if (all & mask_of(optimizer_step)) return false;
    if (!s.scaled.known()) return is_beside_another(frame, s, state);
    if (s.scaled.function != state.plain.function) return false;
    const Body& where = body(*s.scaled.function);
    const std::uint32_t a = s.scaled.call().block, b = state.plain.call().block;
    return frame.function && (dominates(where, a, b) || dominates(where, b, a));
}

void Paths::on_scaler_step(Frame& frame, std::uint32_t block, const Item& item, PathState& state) {
    const Site here = site_of(frame.function, item.call);
    const Symbol key = canonical(frame, item.event.subject);
    const Symbol optimizer = canonical(frame, item.event.optimizer);
    if (disabled(key, state)) {
        // One that is never on steps like the optimizer alone.
        if (state.plain.known() && scalers_.enabled(*root_, key).always == Switch::off)
            report({Defect::unscaled_training, state.plain, state.plain_region, here, key, optimizer});
        state.plain = {};
        return;
    }
    note_use(frame, key, state);
    ScalerState& s = slot(state, key);
    doubt_others(s, state);
    const Obligation& duty = s.duty(Duty::update);
    const bool guarded = duty.skipped && scalers_.enabled(*root_, key).always != Switch::on;
    for (const Stepped& t : s.stepped)
        if (t.optimizer == optimizer && t.again && !optimizer.empty() && duty.due() && !guarded &&
            !may_update_as_it_steps(t.site))
            report({Defect::no_update, t.site, here, {}, key, optimizer, proven_by(duty)});
    if (s.early_update.known() && !s.scaled.known())
        report({Defect::update_first, s.early_update, s.early_scaled, here, key, optimizer});
    if (state.plain.known() && !is_before_loop(state.plain, here) &&
        plain_is_proven(frame, here.call(), s, state))
        report({Defect::plain_backward, state.plain, here, s.scaled, key, optimizer});
    state.plain = {};
    s.early_update = s.early_scaled = {};
    std::erase_if(s.unscaled, [&](const Stepped& u) { return u.optimizer == optimizer; });
    std::erase_if(s.stepped, [&](const Stepped& t) { return t.optimizer == optimizer; });
    if (item.event.certain) s.stepped.push_back({optimizer, here});
    for (const Duty d : {Duty::unscale, Duty::finish, Duty::scaler_step, Duty::step_first})
        s.duty(d).active = false;
    open(s, Duty::update, block, here);
    s.just_stepped = here;
}

void Paths::on_update(Frame& frame, const Item& item, PathState& state) {
    const Symbol key = canonical(frame, item.event.subject);
    if (disabled(key, state)) return;
    note_use(frame, key, state);
    ScalerState& s = slot(state, key);
    doubt_others(s, state);
    if (s.scaled.known() && s.duty(Duty::step_first).due()) {
        s.early_update = site_of(frame.function, item.call);
        s.early_scaled = s.scaled;
    }
    s.scaled = {};
    s.pending.clear();  // whatever took them, their iteration is over
    s.stepped.clear();
    s.unscaled.clear();
    for (Obligation& o : s.duties) o.active = false;
}

// scaler.unscale_(optimizer), and then optimizer.step() in any case: nothing skips the step when unscale_ has found
// infinities.
void Paths::step_unscaled(const Frame& frame, const Site& step, Symbol optimizer, PathState& state) {
    const Function& f = *frame.function;
    for (ScalerState& s : state.scalers) {
        const Obligation& duty = s.duty(Duty::finish);
        if (!duty.due() || duty.skipped || !s.scaled.known() || disabled(s.key, state)) continue;
        if (duty.block >= Obligation::kSomewhere || !follows_always(f, duty.block, step.call().block))
            continue;
        for (const Stepped& u : s.unscaled)
            if (u.optimizer == optimizer && !optimizer.empty())
                report({Defect::step_unchecked, step, u.site, {}, s.key, optimizer, Severity::warning});
    }
}

void Paths::on_optimizer_step(Frame& frame, const Item& item, PathState& state) {
    const Site here = site_of(frame.function, item.call);
    const Symbol optimizer = canonical(frame, item.event.optimizer);
    // A scale that nothing takes out or changes may be meant, because Adam divides by it. Nothing looks for infinities.
    const bool is_static = !(mask(*root_) & (mask_of(scaler_step) | mask_of(update) | mask_of(unscale)));
    step_unscaled(frame, here, optimizer, state);
    for (ScalerState& s : state.scalers) {
        const Obligation& duty = s.duty(Duty::scaler_step);
        const bool scales = !(is_static && scalers_.enabled(*root_, s.key).begins_at_1);
        if (scales && duty.due() && !duty.skipped && s.scaled.known() && !state.plain.known() &&
            !disabled(s.key, state))
            report({Defect::step_around,
                    here,
                    s.scaled,
                    {},
                    s.key,
                    optimizer,
                    is_static ? Severity::warning : proven_by(duty)});
        for (const Duty d : {Duty::unscale, Duty::finish, Duty::scaler_step, Duty::step_first})
            s.duty(d).active = false;
    }
    if (state.plain.known())
        report({Defect::unscaled_training, state.plain, state.plain_region, here, {}, optimizer});
    state.plain = state.plain_region = state.region = {};
}

void Paths::on_zero_grad(PathState& state) const {
    state.plain = state.penalty = {};
    for (ScalerState& s : state.scalers) {
        s.scaled = s.early_update = s.early_scaled = {};
        for (const Duty d : {Duty::unscale, Duty::scaler_step, Duty::step_first}) s.duty(d).active = false;
    }
}

}  // namespace mp::lint
