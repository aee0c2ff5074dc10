#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "instrument/torch/site.hpp"

namespace mp::twin {

struct LayersOfThread;

// Which layer runs, per thread, and which layer made an autograd node.
//
// Nodes are numbered per thread in the order in which they are made. A layer owns the numbers that were given out
// while it was on top. Each push and pop therefore adds a mark, which means that from this number on this layer runs.
// A node's layer is that of the last mark at or below its number. Nothing is done per op.
//
// Safe from any thread. The stack of layers is the thread's own and is read without a lock; marks have a lock per
// thread, names one for all.
class Layers {
public:
    Layers();

    LayerId intern(std::string_view name);
    std::string name(LayerId) const;

    // The layers of this thread. A name longer than 4 KiB is cut.
    void push(std::string_view name);
    LayerId pop();  // returns the layer on top; 0 if there is none
    // A layer that was not pushed runs the op that made the last autograd node of this thread.
    void runs_op(LayerId);
    LayerId current() const;  // the layer on top; 0 if there is none
    std::size_t depth() const;
    bool in_module() const;  // the layer on top is a module, not "(optimizer)" and the like
    // Whether a layer ran in this step and none runs now. The next ops belong to the loss.
    bool after_model() const;

    // The layer whose forward made the node; 0: none did, or the marks of that time are dropped.
    LayerId of_node(std::uint64_t forward_thread, std::int64_t sequence);
    // Drops the marks of this thread from steps before the last. Called while no layer of the model runs.
    void end_step();

    // Stores the place of a layer's forward(), "model.py:12".
    void set_source(std::string_view layer, std::string_view where);
    std::string source(LayerId) const;

private:
    LayersOfThread& thread() const;
    LayersOfThread* find_thread(std::uint64_t id);

    mutable std::mutex mutex_;
    std::vector<std::string> names_;
    std::unordered_map<std::string, LayerId> ids_;
    std::unordered_map<LayerId, std::string> sources_;
    mutable std::unordered_map<std::uint64_t, LayersOfThread*> threads_;

public:
    // Declared last, because the members above intern them.
    const LayerId loss, optimizer, data, update, bucket;
};

}  // namespace mp::twin
