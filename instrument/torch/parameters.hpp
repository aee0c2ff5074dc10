#pragma once

#include <c10/util/intrusive_ptr.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "instrument/torch/compat.hpp"
#include "instrument/torch/layers.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

class ShadowMap;

DType dtype_of(at::ScalarType);

// The tensors of the program that have names: parameters, their gradients, buffers, optimizer state. Held
// weakly: nothing lives longer because it is measured. Only a run that shall save its twin at the end
// keeps them until then, because most programs let go of their model before they exit.
class Parameters {
public:
    void keep_until_the_end() { keep_ = true; }
    void add(trace::TensorKind, std::string_view name, const at::Tensor&);
    // For programs without Python: leaf tensors get names in order of their first use.
    void add_leaf(const at::Tensor&);
    bool is_leaf_storage(const c10::StorageImpl*) const;
    bool is_gradient_storage(const c10::StorageImpl*) const;
    void refresh_gradient_storages();
    // Of sampled values of every leaf: a step that moved no weight leaves it as it was.
    std::uint64_t leaves_fingerprint() const;

    std::size_t count() const { return named_.size(); }
    std::uint64_t elements() const;
    // Tensors of one kind, against their twins where there are any. `hashed`: with a hash of the bytes.
    std::vector<trace::TensorRecord> measure(ShadowMap*, trace::TensorKind, bool hashed) const;
    // Copies of what a step may move in 16 bits or less, until forget_values(); measure() then says how
    // much did not move.
    void keep_values(ShadowMap*);
    // The same of what no optimizer moves, from the end of one step to that of the next.
    void keep_untrained(ShadowMap&);
    void forget_values() { kept_.clear(); }
    // The module that owns a parameter; 0: unknown.
    LayerId layer_of(const at::Tensor&) const;
    std::vector<trace::DTypePlace> places() const;
    // "NAME", "grad/NAME", "optim/NAME.key" as safetensors, fp32; the twin's values or the real ones.
    // An error text, or empty.
    std::string save(const std::string& path, ShadowMap&, bool twin, const std::vector<double>& losses) const;

private:
    struct Named {
        trace::TensorKind kind;
        std::string name;
        c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
        at::Tensor kept;  // undefined unless asked for
    };
    struct Live {
        trace::TensorKind kind;
        const std::string& name;  // of the entry in named_
        at::Tensor tensor;
    };

    struct Kept {
        at::Tensor before, twin_before;
    };

    std::vector<Live> live() const;
    void keep(const Live&, const at::Tensor& wanted);
    void put_standstill(trace::TensorRecord&, const at::Tensor& real, const at::Tensor& twin) const;

    bool keep_ = false;
    std::vector<Named> named_;
    std::unordered_map<std::string, std::size_t> by_name_;  // kind prefix + name
    std::unordered_map<const c10::StorageImpl*, std::size_t> leaves_;
    std::unordered_map<const c10::StorageImpl*, std::size_t> gradients_;
    std::unordered_map<const c10::TensorImpl*, LayerId> owners_;
    std::unordered_map<std::string, Kept> kept_;  // kind prefix + name
};

}  // namespace mp::twin
