#pragma once

#include <c10/util/intrusive_ptr.h>

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "instrument/torch/compat.hpp"
#include "instrument/torch/late.hpp"
#include "instrument/torch/layers.hpp"
#include "instrument/torch/masters.hpp"
#include "instrument/torch/rounded_by_hand.hpp"
#include "instrument/torch/safetensors.hpp"
#include "instrument/torch/shadow_map.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

// The tensors of the program that have names: parameters, their gradients, buffers, optimizer state. They are held
// weakly, so measuring extends no lifetime. Only a run that saves its state at the end keeps them until
// then, because most programs free their model before they exit.
//
// Safe from any thread. Nothing is launched under the lock of the names, which ops of the program take too (see
// ShadowMap). Measuring has a lock of its own, under which ops of ours run (TwinScope); only steps wait for it. Under
// it come that of the names and those of the shadow map, of Masters and of Late.
class Parameters {
public:
    // `keep`: holds the tensors until the program ends. `several_ranks`: others may hold the masters of a parameter.
    Parameters(Layers& layers, Masters& masters, Late& late, bool keep, bool several_ranks)
        : layers_(layers), masters_(masters), late_(late), keep_(keep), several_ranks_(several_ranks) {}

    void add(trace::TensorKind, std::string_view name, const at::Tensor&);
    // For programs without Python: leaf tensors get names in order of their first use.
    void add_leaf(const at::Tensor&);
    bool is_leaf_storage(const c10::StorageImpl*) const;
    // Whether the storage belongs to a current gradient of a parameter.
    bool is_gradient_storage(const c10::StorageImpl*) const;
    // A hash of sampled values of every leaf: a step that changes no weight does not change the hash. None if a leaf is
    // on a device, which is not waited for.
    std::optional<std::uint64_t> leaves_fingerprint() const;

    std::uint64_t elements() const;  // of the parameters
    // Tensors of one kind, against their twins if a shadow map is given. `hashed`: with a hash of the bytes.
    std::vector<trace::TensorRecord> measure(ShadowMap*, trace::TensorKind, bool hashed);
    // Copies the 16-bit (or smaller) values that a step may move, and with a twin some values of every trained
    // parameter, until forget_values(). measure() then finds how much did not move, and how far the others moved.
    void keep_values(ShadowMap*);
    // The same for tensors that no optimizer moves, from the end of one step to that of the next.
    void keep_untrained(ShadowMap&);
    // Values that did not move at all stay for one more measure(): they may be written after the optimizer's step.
    void forget_values();
    // All of them, at once. Returns whether there were any.
    bool drop_values();
    // Nothing will be saved at the end: the program's tensors are not kept any more.
    void stop_keeping();
    // Changes every weight of the twin by less than one rounding to 16 bits, by numbers that are the same in every run.
    void disturb(ShadowMap&);
    // The module that owns a parameter; 0: unknown.
    LayerId layer_of(const at::Tensor&) const;
    bool is_parameter(const at::Tensor&) const;
    std::vector<trace::DTypePlace> places() const;
    // "NAME", "grad/NAME", "optim/NAME.key" in fp32: the twin's values, or the real ones if `shadows` is null.
    std::vector<NamedTensor> values(ShadowMap* shadows) const;

private:
    struct Named {
        trace::TensorKind kind;
        std::string name;
        c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
        at::Tensor kept;  // undefined unless asked for
    };
    struct Live {
        trace::TensorKind kind;
        std::string name;
        at::Tensor tensor;
    };

    struct Kept {
        at::Tensor before, twin_before;
        bool waits = false;  // nothing moved, so the values stay for one more measure()
        bool waited = false;
    };
    // Some values of a parameter before the step, in fp32.
    struct Some {
        at::Tensor real, twin;
    };
    // A parameter's fp32 master. Its additional bits prove it one: an exact copy may be made anew in every step.
    struct Master {
        Masters::Slice slice;
        bool moved = false;  // an optimizer has moved it
        at::Tensor before{}, twin_before{};
    };

    void add_locked(trace::TensorKind, std::string_view name, const at::Tensor&);
    std::vector<Live> live() const;
    void keep(const Live&, const at::Tensor& wanted);
    void keep_some(const Live&, const at::Tensor& twin);
    void put_change(trace::TensorRecord&, const at::Tensor& real, const at::Tensor& twin);
    static bool holds(const std::vector<Master>&, const at::Tensor& low);
    void find_masters(const std::vector<Live>&);
    void keep_masters(const std::vector<Live>&, ShadowMap*);
    // Replaces the figures of working copies by those of their masters.
    void follow_masters(std::vector<trace::TensorRecord>&, const std::vector<at::Tensor>& measured,
                        ShadowMap*);
    static bool follow_master(trace::TensorRecord&, std::vector<Master>&, ShadowMap*);
    static void put_master_figures(trace::TensorRecord&, const Master&, const at::Tensor& wide, ShadowMap*);
    // What may be the masters of 16-bit parameters on a device, whose memory is not searched.
    struct WideElsewhere {
        std::unordered_multimap<std::string, at::Tensor> states;  // by name of the parameter
        std::size_t largest = 0;                                  // bytes of other fp32 memory
    };
    WideElsewhere wide_elsewhere(const std::vector<Live>&);
    Kept* kept(const trace::TensorRecord&);
    // The record of one tensor; false if it has none. On a device the figures come when the step is complete.
    bool put_figures(trace::TensorRecord&, const at::Tensor& real, const at::Tensor& twin);
    bool put_figures_late(const trace::TensorRecord&, const at::Tensor& real, const at::Tensor& twin,
                          const WideElsewhere&);

    Layers& layers_;
    Masters& masters_;
    Late& late_;
    bool keep_;
    const bool several_ranks_;
    mutable std::mutex mutex_;  // of the members up to owners_, and of keep_
    std::vector<Named> named_;
    std::unordered_map<std::string, std::size_t> by_name_;  // kind prefix + name
    // Held weakly, so that no later storage has the address of one that is gone.
    std::unordered_map<const c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>> leaves_;
    std::unordered_map<const c10::TensorImpl*, LayerId> owners_;
    std::mutex measuring_;                        // of the members below; taken before mutex_
    std::unordered_map<std::string, Kept> kept_;  // kind prefix + name
    std::unordered_map<std::string, Some> some_;  // by name of the parameter
    // By name of the parameter. Several may have its bits; the one that an optimizer moves is its master.
    std::unordered_map<std::string, std::vector<Master>> mastered_;
    std::unordered_set<std::string> suspects_;  // parameters that stagnated and have no known master
    std::unordered_set<std::string> refuted_;   // parameters whose fp32 copy is made anew in every step
    bool searched_ = false;                     // for the masters of all parameters
    RoundedByHand rounded_{masters_};
};

}  // namespace mp::twin
