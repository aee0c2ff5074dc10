#pragma once

// Which calls of a program are steps of the loss-scaling protocol, and what plays which part in
// them. A scaler is an object of a known class, or one whose methods are those of a scaler: the
// project's own classes and, where the class is not known, the methods called on a receiver of one
// file.

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/shared.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

enum class EventKind : std::uint8_t {
    none,
    scale,           // scaler.scale(loss)
    backward,        // loss.backward(), torch.autograd.backward(loss)
    unscale,         // scaler.unscale_(optimizer)
    clip,            // writes gradients as a function of their size
    inspect,         // reads .grad
    read_scale,      // scaler.get_scale(): the caller may unscale by hand
    scaler_step,     // scaler.step(optimizer)
    update,          // scaler.update()
    optimizer_step,  // optimizer.step()
    zero_grad,
    region,   // an fp16 autocast region opens
    managed,  // the backward of an engine that scales by itself
    penalty,  // torch.autograd.grad(..., create_graph=True)
    scheduler_step,
};

using EventMask = std::uint32_t;
constexpr EventMask mask_of(EventKind k) { return EventMask{1} << static_cast<unsigned>(k); }

struct Event {
    EventKind kind = EventKind::none;
    Symbol subject;                 // the receiver, as the function names it: "self.scaler"
    Symbol optimizer;               // of step and unscale_
    const Operand* loss = nullptr;  // of scale and backward
    // region: the dtype is fp16 with any options; scaler_step: the scaler has an update()
    bool certain = true;
    bool by_option = false;  // region: an option chooses fp16, bf16 or neither
};

// The last part of a dotted or scoped name.
std::string_view last_part(std::string_view name);
// Without the last part; empty when there is only one.
std::string_view owner_of(std::string_view name);
// How a receiver or argument is named: its name, or the text of a pointer without its operators.
Symbol key_of(const Operand&);

// "p.grad", "p.grad.data", the result of param.grad() in C++.
bool is_gradient(const Function&, const Operand&);

enum class ClassKind : std::uint8_t { unknown, scaler, optimizer, scheduler, engine, other };

class Roles {
public:
    explicit Roles(const Program&);

    Event event(const Function&, const Call&) const;
    // Whether event() of a call of this name can be anything.
    static bool may_be_event(std::string_view name);
    // The constructor of a scaler's class.
    bool makes_scaler(const Call&) const;
    bool makes_optimizer(const Call&) const;
    // Whether a constructor of this name makes a scaler.
    bool is_scaler_class(std::string_view name) const;
    // The receiver of a method call is one.
    bool is_scaler(const Function&, const Call&) const;
    bool is_optimizer(const Function&, const Call&) const;
    // The operand is named like one, or its methods are called under this name.
    bool names_scaler(const Function&, const Operand&) const;

private:
    struct Name {
        Symbol leaf;
        Symbol owner;
        ClassKind kind = ClassKind::unknown;
    };
    using Key = std::uint64_t;  // file and last part of a receiver's name

    static Key key(const Function&, const Operand& receiver);
    const Name& name(Symbol) const;
    void learn(const Function&, const Call&);
    void learn_class(Symbol owner, std::string_view method);
    std::uint32_t methods_of(const Function&, const Call&) const;
    Event method_event(const Function&, const Call&, const Name&) const;
    Event region_event(const Function&, const Call&) const;
    static bool is_clip_of_unknown(const Call&, const Name&);

    Memo<Symbol, Name> names_;
    std::unordered_map<Symbol, std::uint32_t> classes_;
    std::vector<Symbol> scaler_classes_;  // the program's own
    std::unordered_map<Key, std::uint32_t> receivers_;
    std::unordered_set<Symbol> scaler_names_, optimizer_names_, scheduler_names_;  // last parts
};

}  // namespace mp::lint
