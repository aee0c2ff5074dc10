#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "instrument/torch/late.hpp"
#include "instrument/torch/notes.hpp"
#include "instrument/torch/parameters.hpp"

namespace mp::twin {

// Whether a cast of `source` to `copy` that runs now is one of a weight whose result autocast keeps until its outermost
// region ends. Then later ops read it instead of the weight. Called outside a TwinScope.
bool autocast_keeps(const at::Tensor& copy, const at::Tensor& source);

// Finds forwards that read such a copy after the weight was updated, and notes their layers. The copies of a healthy
// program are gone when a step ends, so that no read is looked at. Holds copies and weights weakly. Safe from any
// thread; nothing is computed under the lock.
class KeptCasts {
public:
    KeptCasts(Layers& layers, Parameters& parameters, Late& late, Notes& notes, const CurrentStep& now)
        : layers_(layers), parameters_(parameters), late_(late), notes_(notes), now_(now) {}

    void made(const at::Tensor& copy, const at::Tensor& source);
    // The weights were updated: every copy that is still there may be outdated.
    void step_ended();
    // Whether there is a copy of an earlier step.
    bool any_old() const noexcept { return any_old_.load(std::memory_order_relaxed); }
    // An op outside of a backward reads a tensor of 16 bits.
    void read(const at::Tensor&);

private:
    struct Cast {
        c10::weak_intrusive_ptr<c10::StorageImpl> copy;  // keeps the address in use
        c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> source;
        bool old = false;
        bool looked_at = false;  // since the last step ended
    };

    at::Tensor source_to_look_at(const at::Tensor& copy);
    void compare(const at::Tensor& copy, const at::Tensor& source);
    void drop_freed();

    Layers& layers_;
    Parameters& parameters_;
    Late& late_;
    Notes& notes_;
    const CurrentStep& now_;
    std::atomic<bool> any_old_{false};
    std::mutex mutex_;
    std::unordered_map<const c10::StorageImpl*, Cast> casts_;
    std::size_t room_ = 1024;  // casts until the next look for freed ones
};

}  // namespace mp::twin
