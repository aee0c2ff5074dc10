#pragma once

// The autocast state inside one function, relative to the state at its entry, and the effect of a
// call on it.

#include <array>
#include <vector>

#include "analyzer/region/autocast_api.hpp"

namespace mp::lint {

enum class Value : std::uint8_t {
    entry,  // as it was when the function was entered
    off,
    on,
    unknown,  // set to a value that cannot be derived
    param,    // set to a parameter of the function
    restore,  // set back to the value that the object saved at construction
};

// The state of one device.
struct Cell {
    Value value = Value::entry;
    bool sure = true;             // no assumption on the path to here
    bool dtype_entry = true;      // the dtype is the one at entry
    bool dtype_restore = false;   // the dtype is set back to the value that the object saved
    Value before = Value::entry;  // the value before the current region was opened
    DType dtype = DType::unknown;
    std::int32_t param = kNone;
    std::int32_t origin = kNone;  // the call that opened the region

    friend bool operator==(const Cell&, const Cell&) = default;
};

using Cells = std::array<Cell, kDevices>;

// A branch taken on this path. Equal condition text means an equal value within the function.
struct Assumption {
    Symbol condition;
    bool when = true;

    friend bool operator==(const Assumption&, const Assumption&) = default;
};

// One way a function can end.
struct Exit {
    Cells cells;
    std::vector<Assumption> when;

    friend bool operator==(const Exit&, const Exit&) = default;
};

// The effect of a call of the function, for its callers.
struct Summary {
    std::vector<Exit> exits;      // empty: the state is unchanged
    bool returns_before = false;  // it returns the enabled state from before the call
    bool in_progress = false;     // part of the cycle being solved; its exits are not known yet

    bool changes_nothing() const { return exits.empty() && !in_progress; }

    friend bool operator==(const Summary&, const Summary&) = default;
};

// A state in which a call of the function can run.
struct CallState {
    Cells cells;
    std::vector<Assumption> assumed;
};

struct ExitState {
    Cells cells;
    std::vector<Assumption> assumed;
    SourceSpan leaves;
};

// A region closed by writing `false`: `opened` and `closed` are calls of the function.
struct ConstantClose {
    std::int32_t opened = kNone;
    std::uint32_t closed = 0;
    Device device = 0;
    Value before = Value::entry;

    friend bool operator==(const ConstantClose&, const ConstantClose&) = default;
};

struct Exploration {
    std::vector<CallState> states;                  // distinct ones
    std::vector<std::vector<std::uint32_t>> calls;  // per call, indices of states; empty: never reached
    std::vector<ExitState> exits;
    std::vector<std::int32_t> closed;  // origins that are closed on some path
    std::vector<ConstantClose> constant_closes;
    bool saved_returned = false;  // every exit returns the state read at entry
    bool overflow = false;        // too many states: nothing is reported
};

}  // namespace mp::lint
