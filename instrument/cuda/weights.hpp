#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "instrument/cuda/meter.hpp"
#include "kernels/numerics/dtype.hpp"
#include "runtime/trace/records.hpp"

namespace mp::raw {

// A tensor that the program named (mptrace.h).
struct NamedTensor {
    const void* data = nullptr;
    DType dtype = DType::unknown;
    long long elements = 0;
    int role = 0;
    std::string name;
};

// What an optimizer step does to the named weights, by their bits before and after. The copy from before is in device
// memory of ours, within a limit. Not safe from several threads at once.
class Weights {
public:
    static constexpr int kParameter = 0, kMaster = 4;  // MPTRACE_PARAMETER, MPTRACE_MASTER
    static constexpr std::uint64_t kMostBytes = 256u << 20;

    void name(NamedTensor);
    bool any() const { return !weights_.empty(); }

    // Copies the weights of a device on a stream of it. False: nothing was copied.
    bool copy(Meter&, abi::Stream, int device);
    // The record of each weight, and where its figure will be; null: it was not copied.
    struct Compared {
        trace::TensorRecord record;
        const cpu::Stagnation* figure = nullptr;
    };
    // Launches the comparison with the copies of a device. Empty: nothing was launched.
    std::vector<Compared> compare(Meter&, abi::Stream, Slots&, int device);
    std::uint64_t too_large() const;
    // Times that a tensor was not read, because the memory under its name is another or smaller.
    std::uint64_t gone() const { return gone_; }

private:
    struct Weight {
        NamedTensor tensor;
        DeviceMemory copy;
        std::uint64_t extent = 0;  // of the allocations that had the tensor when it was copied
        int device = -1;           // that has the memory; -1: unknown, then any device reads it
        bool copied = false, too_large = false;
    };
    static bool is_on(const Weight& w, int device) {
        return w.device < 0 || device < 0 || w.device == device;
    }
    // A 16-bit parameter with an fp32 master is its rounding: its master is what the optimizer changes.
    bool is_working_copy(const Weight&) const;
    trace::TensorRecord record_of(const Weight&) const;

    std::map<const void*, Weight> weights_;
    bool has_masters_ = false;
    std::uint64_t bytes_ = 0, gone_ = 0;
};

}  // namespace mp::raw
