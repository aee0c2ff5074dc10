#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "instrument/torch/compat.hpp"
#include "instrument/torch/coverage_counters.hpp"

namespace mp::twin {

struct OpInfo;

// The twin's memory: one flat buffer per storage of the program, not per tensor. A view's shadow is a view
// of the flat buffer with the same sizes, strides and offset, because those count elements; so views,
// `.data =`, flat parameters, buckets and resized storages need no rules.
//
// Flat buffers are fp32 (fp64 for fp64) with one element per component of the real dtype: a complex tensor
// has two components. Integer storages have a buffer, of their own dtype, only where the twin's integers
// differ from the program's.
//
// Byte mode: a program that packs floats through uint8 views (FSDP2 with mixed dtypes) moves them as bytes.
// The flat buffer then has one 4-byte lane per real byte, and the component's fp32 value is in the lane
// of its first byte. An op that only moves bytes moves lanes, so the values move with their bytes.
//
// Safe from any thread. Nothing is launched, allocated or freed under the lock: a launch waits while a queue of a GPU
// is full, which may last until another thread has launched on another GPU, and that thread needs the lock too.
// Threads that write one tensor at a time are ordered by the program. Everything here runs under TwinScope.
class ShadowMap {
public:
    explicit ShadowMap(CoverageCounters&);
    ~ShadowMap();

    enum class Found : std::uint8_t {
        hit,
        unknown,  // the storage was never seen: its data came from outside the dispatcher
        lost,     // it was seen, but the twin could not follow the op that wrote it
        stale,    // a write bypassed the dispatcher
        own,      // integers of the twin that only the backward of their maker may read
    };

    struct Lookup {
        at::Tensor shadow;  // defined on a hit; `own`: of another size, or undefined, if the twin's result is
        Found found = Found::unknown;
        const OpInfo* maker = nullptr;    // of integers that differ in the twin: the op whose result they are
        const OpInfo* decider = nullptr;  // the program decides by the indices of this op, as was just found
    };

    // The shadow of a float, complex or integer tensor. An integer tensor whose twin does not differ is
    // `unknown`; the real one is used.
    Lookup find(const at::Tensor& real);
    // A shadow with the real values. `overwritten`: the caller is about to write every element.
    at::Tensor seed(const at::Tensor& real, bool overwritten);
    // Takes over a result of a twin op as the shadow of a real result, which the real op has just written. Float memory
    // counts as written(); integer memory has no fingerprint, because ops that write it are not followed.
    void bind(const at::Tensor& real, const at::Tensor& shadow);
    // `copy`, which has the layout of `source` and its own storage, was made by a cast that an fp32 run does not have:
    // there the copy is the source. So a look-up outside a backward finds the shadow of the source as it is then.
    void is_cast_of(const at::Tensor& copy, const at::Tensor& source);
    // Who reads the twin's integers; the others read the program's.
    enum class Readers : std::uint8_t { everyone, own_backward, nobody };
    // As bind(), for integers that differ in the twin.
    void bind_integers(const at::Tensor& real, const at::Tensor& twin, const OpInfo& maker, Readers);
    // The same where the twin's integers have another size or type, so that only the backward of their maker can read
    // them.
    void bind_others(const at::Tensor& real, const at::Tensor& twin, const OpInfo& maker);
    // Values whose shadow was chosen by the program's indices, and what the twin's op chooses. The first look-up of the
    // values takes the twin's choice if the program cannot read the indices any more. `saved`: how many autograd nodes
    // keep the indices.
    struct Choice {
        at::Tensor values, indices;
        const OpInfo& maker;
        std::size_t saved;
    };
    void offer(const at::Tensor& values, const at::Tensor& indices, const Choice&);
    // Drops what the twin has of integers: the program overwrites them.
    void forget_integers(const at::Tensor& real);
    // Marks the storage as lost: it holds values that the twin does not have.
    void lose(const at::Tensor& real);
    // The storage will change unseen from now on: every look-up finds it stale.
    void leave(const at::Tensor& real);
    // As above, if the storage has a float shadow: its memory was written through an integer tensor.
    void lose_floats(const at::Tensor& real);
    // The real storage was written by an op we saw; `later`: another thread will write it. Returns whether the storage
    // has a shadow of its present size.
    bool written(const at::Tensor& real, bool later = false);

    // The lanes of a 1-byte tensor whose storage carries floats. If it carries none, undefined, or with `create` new
    // empty lanes.
    at::Tensor lanes(const at::Tensor& real, bool create);

    // The twin's value of a tensor: a copy in fp32; a copy of the real values if there is no shadow.
    at::Tensor value(const at::Tensor& real);

    void clear();
    std::uint64_t bytes();  // held by live shadows

private:
    using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

    struct Offer;
    struct Shadow {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;
        c10::Storage memory{};             // the flat buffer; none: lost
        at::ScalarType type = at::kFloat;  // of its elements
        at::Tensor view{};                 // of the buffer, with the geometry of the last look-up
        std::size_t lane_bytes = 0;        // real bytes per element of the buffer
        std::size_t real_bytes = 0;        // of the storage when the shadow was made
        std::uint64_t fingerprint = 0;
        bool fingerprint_known = false;
        bool left = false;                   // the storage changes unseen
        bool found_stale = false;            // why it is lost: a look-up saw that it has changed unseen
        std::uint64_t writes = 0;            // that were seen
        std::optional<WeakTensor> source{};  // of a cast
        std::uint64_t source_writes = 0;     // to its storage before the cast was made
        const OpInfo* maker = nullptr;       // of integers; `readers` and the next two as well
        Readers readers = Readers::everyone;
        bool other_size = false;
        at::Tensor other{};
        std::unique_ptr<Offer> offer{};  // of values chosen by indices, until their first look-up
        Shadow* older = nullptr;         // by age of the storage's first shadow
        Shadow* newer = nullptr;
    };

    // What a look-up leaves to be done after the lock.
    struct Rest {
        at::Tensor to{}, from{};  // a copy
        c10::Storage lanes{};     // to be converted, see from_lanes()
    };

    // Holds the lock, and frees after it what was dropped under it.
    class Locked;

    at::Tensor from_lanes(const at::Tensor& real, const c10::Storage& lanes);

    // The functions below are called under the lock.
    Shadow* entry(const at::Tensor& real);
    Lookup look_up(const at::Tensor& real, Rest&);
    Lookup look_up_integers(Shadow&, const at::Tensor& real);
    const OpInfo* settle(Shadow& values);
    static void set_fingerprint(Shadow&, const at::Tensor& real, bool later);
    Shadow& make(const at::Tensor& real);
    void erase(Shadow&);
    void release_some();
    void lose(Shadow&);
    void drop(std::unique_ptr<Offer>);
    at::Tensor view(Shadow&, const at::Tensor& real);
    bool stale(const Shadow&, const at::Tensor& real) const;
    void follow_source(Shadow&, const at::Tensor& real, Rest&);
    void sweep();

    CoverageCounters& coverage_;
    std::mutex mutex_;
    std::unordered_map<const c10::StorageImpl*, Shadow> shadows_;
    Shadow* newest_ = nullptr;
    Shadow* next_looked_at_ = nullptr;
    c10::SmallVector<c10::IValue, 16> dropped_;  // storages and tensors
};

}  // namespace mp::twin
