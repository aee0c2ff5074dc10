#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/numerics/phase.hpp"

namespace mp::twin {

// A layer's name, interned for the life of the process. 0 is the unknown one.
using LayerId = std::uint32_t;

// Where an op runs.
struct Site {
    LayerId layer = 0;
    bool guessed = false;
    Phase phase = Phase::unknown;
    std::uint64_t ordinal = 0;  // of the op within its step
    std::uint64_t address = 0;  // of the call in a C++ program; 0: unknown
};

// Which layer runs, per thread, and which layer made an autograd node.
//
// Nodes are numbered per thread in the order in which they are made, so a layer owns the numbers that were
// given out while it was on top: a mark at every push and pop says from which number on which layer is
// running, and a node's layer is that of the last mark at or below its number. Nothing is done per op.
class Layers {
public:
    Layers();

    LayerId intern(std::string_view name);
    std::string name(LayerId) const;

    // Of this thread. A name longer than 4 KiB is cut.
    void push(std::string_view name);
    LayerId pop();  // what was on top; 0 when nothing was
    // A layer that nobody pushed runs the op that made the last autograd node of this thread.
    void runs_op(LayerId);
    LayerId current() const;  // on top; 0 when nothing is
    std::size_t depth() const;
    bool in_module() const;  // what is on top is a module, not "(optimizer)" and the like
    // Whether a layer ran in this step and none does now: what follows is the loss.
    bool after_model() const;

    // The layer whose forward made the node; 0: none, or it was before the marks that are kept.
    LayerId of_node(std::uint64_t forward_thread, std::int64_t sequence);
    // Marks of steps before the last are dropped; the model is not running.
    void end_step();

    // Where the forward() of a layer is written, "model.py:12".
    void set_source(std::string_view layer, std::string_view where);
    std::string source(LayerId) const;

private:
    struct Thread;
    Thread& thread() const;
    Thread* find_thread(std::uint64_t id);

    mutable std::mutex mutex_;
    std::vector<std::string> names_;
    std::unordered_map<std::string, LayerId> ids_;
    std::unordered_map<LayerId, std::string> sources_;
    mutable std::unordered_map<std::uint64_t, Thread*> threads_;

public:
    const LayerId loss, optimizer, data, update;  // last: they are interned by the members above
};

Layers& layers();

// Of the op of the program that this thread is in.
Site& current_site() noexcept;

}  // namespace mp::twin
