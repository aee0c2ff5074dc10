#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "instrument/torch/compat.hpp"

namespace mp::twin {

// Finds the fp32 master of a 16-bit tensor by its bits: the memory whose values, rounded to nearest, are the tensor's.
// Who rounded them does not matter: copy_, a slice of a flat buffer, a gathered shard, a kernel that bypasses the
// dispatcher. Only CPU memory is searched: elsewhere it is only known whether there may be one. Safe from any thread.
class Masters {
public:
    // A part of an fp32 storage that rounds to a part of a 16-bit tensor, both in the order of their memory.
    class Slice {
    public:
        Slice(const at::Tensor& wide, std::int64_t offset, std::int64_t begin, std::int64_t length);
        // The fp32 values as a flat tensor over the program's memory; undefined if that is freed or was resized.
        at::Tensor wide() const;
        at::Tensor of(const at::Tensor& low) const;  // the part of the 16-bit tensor that it rounds to
        std::int64_t length() const { return length_; }
        // Where its memory begins: equal for two slices of the same values.
        std::pair<const void*, std::int64_t> place() const {
            return {storage_._unsafe_get_target(), offset_};
        }

    private:
        c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
        std::int64_t offset_, begin_, length_;  // in elements
    };

    // fp32 memory that an op outside of forward and backward has made or written.
    void saw(const at::Tensor&);
    // For each 16-bit tensor what may be its master, the likeliest first: the same bits after rounding, and unless
    // `allow_exact` more bits before. Linear in the fp32 memory that was seen and in `low`. Of tensors with the same
    // bits, such as the gains of norms, the nth has the nth memory that was seen.
    std::vector<std::vector<Slice>> find(const std::vector<at::Tensor>& low, bool allow_exact);

    // The bytes of the largest fp32 memory that is not on the CPU, apart from `others`.
    std::size_t largest_elsewhere(const std::unordered_set<const c10::StorageImpl*>& others);

    static bool can_have_one(const at::Tensor&);  // 16 bits, dense, on the CPU
    static bool rounds_to(const at::Tensor& wide, const at::Tensor& low);
    // Whether `wide` holds bits that `low` does not.
    static bool carries_more(const at::Tensor& wide, const at::Tensor& low);

private:
    struct Storage {
        c10::weak_intrusive_ptr<c10::StorageImpl> weak;
        std::uint64_t number;  // in the order in which they were seen
    };
    using Seen = std::unordered_map<const c10::StorageImpl*, Storage>;

    std::vector<at::Tensor> alive();  // those on the CPU, in that order
    void sweep();

    std::mutex mutex_;
    Seen seen_, elsewhere_;
    std::uint64_t number_ = 0;
    std::size_t sweep_at_ = 1024;  // elements of both
};

}  // namespace mp::twin
