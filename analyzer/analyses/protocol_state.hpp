#pragma once

// The state of the loss-scaling protocol on one path.

#include <array>
#include <cstdint>
#include <vector>

#include "analyzer/analyses/finding.hpp"
#include "analyzer/analyses/protocol_events.hpp"

namespace mp::lint {

// One call of the program, by function and index.
struct Site {
    const Function* function = nullptr;
    std::int32_t index = kNone;

    bool known() const { return index != kNone; }
    const Call& call() const { return function->calls[static_cast<std::size_t>(index)]; }
    friend bool operator==(const Site&, const Site&) = default;
};

// What must follow an event (the opener) before another one (the claim) may come. A path that
//        avoids
// it by a branch proves a defect only when the branch cannot be the twin of one that guards the
// opener: it comes after the opener in any case. Otherwise there is doubt.
enum class Duty : std::uint8_t {
    unscale,      // scaled backward -> unscale_ -> clip
    update,       // scaler.step -> update -> scaler.step
    finish,       // unscale_ -> step or update -> unscale_
    scaler_step,  // scaled backward -> scaler.step -> optimizer.step
    step_first,   // scaled backward -> scaler.step -> update
};
inline constexpr std::size_t kDuties = 5;

struct DutyMasks {
    EventMask opens = 0;
    EventMask settles = 0;
    EventMask claims = 0;  // 0: the opener again
};
const std::array<DutyMasks, kDuties>& duty_masks();

struct Obligation {
    // The block of the opener in the function being run; kOutside when it happened in a caller.
    static constexpr std::uint32_t kOutside = ~std::uint32_t{0};
    // It happened on some ways only: no block comes after it in any case.
    static constexpr std::uint32_t kSomewhere = kOutside - 1;

    bool active = false;
    bool skipped = false;     // a branch was taken that leads past what settles it
    bool by_setting = false;  // ... which asks for what stays the same while the function runs
    bool doubt = false;
    std::uint32_t block = kOutside;
    Site opened;

    bool due() const { return active && !doubt; }
    friend bool operator==(const Obligation&, const Obligation&) = default;
};

struct Stepped {
    Symbol optimizer;
    Site site;
    bool again = false;  // a backward came after it
    friend bool operator==(const Stepped&, const Stepped&) = default;
};

// A scaled loss that waits for its backward.
struct ScaledLoss {
    Symbol name;                                 // that holds it; empty: it has none
    Site site;                                   // of scale()
    bool used = false;                           // a backward took it
    std::uint32_t block = Obligation::kOutside;  // of scale(), as in an obligation

    friend bool operator==(const ScaledLoss&, const ScaledLoss&) = default;
};

struct ScalerState {
    Symbol key;
    std::vector<ScaledLoss> pending;
    Site scaled;  // the last scaled backward since step or zero_grad
    std::array<Obligation, kDuties> duties{};
    std::vector<Stepped> unscaled, stepped;  // since the last update
    Site early_update;                       // update() before the step of these gradients
    Site early_scaled;                       // ... and the backward that made them
    Site just_stepped;                       // scaler.step whose outcome was not read yet

    Obligation& duty(Duty d) { return duties[static_cast<std::size_t>(d)]; }
    friend bool operator==(const ScalerState&, const ScalerState&) = default;
};

// The name of each item of a container in turn: two uses of it are the same object only in one iteration.
inline bool varies(Symbol key) { return key.str().find("[]") != std::string_view::npos; }

struct Assumed {
    Symbol condition;
    bool when = true;
    const Function* of = nullptr;  // it holds for one run of this function
    friend bool operator==(const Assumed&, const Assumed&) = default;
};

struct PathState {
    std::vector<ScalerState> scalers;
    Site plain;         // a backward without a scaler, gradients not used yet
    Site plain_region;  // the fp16 region its loss comes from
    Site region;        // the last fp16 region that opened
    Site penalty;       // unscaled autograd.grad in the graph of the loss
    std::vector<Assumed> assumed;

    friend bool operator==(const PathState&, const PathState&) = default;
};

// The defects the paths prove, each by the rule that reports it.
enum class Defect : std::uint8_t {
    unscaled_training,    // MP201: plain backward, optimizer.step; `before` is its fp16 region
    plain_backward,       // MP202
    clip_scaled,          // MP203
    step_around,          // MP204
    step_unchecked,       // MP204: unscale_, optimizer.step
    no_update,            // MP205: step again without update
    update_first,         // MP205: update, then step
    unscaled_twice,       // MP206
    update_per_backward,  // MP206
    grads_inspected,      // MP209
    penalty_unscaled,     // MP209
    blind_scheduler,      // MP211
};

struct Violation {
    Defect defect = Defect::clip_scaled;
    Site at;
    Site before;    // the event that makes it one
    Site after;     // the event that follows, if any
    Symbol scaler;  // as the function at hand names it
    Symbol optimizer;
    Severity at_most = Severity::error;
};

}  // namespace mp::lint
