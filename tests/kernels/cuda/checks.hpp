#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/measure.hpp"
#include "tests/kernels/cuda/drawn_data.hpp"

// Compares the GPU's kernels with the CPU's. The same checks run on a device (tests/gpu/kernels) and, with the kernels'
// bodies compiled for the host, without one (cuda_bodies_test).

namespace mp::cuda {

// Memory and waiting, of a device or of the host.
class Machine {
public:
    virtual ~Machine() = default;
    virtual char* memory(std::size_t bytes) = 0;
    virtual void copy(char* to, const void* from, std::size_t bytes) = 0;
    virtual void* pinned(std::size_t bytes) = 0;
    virtual void wait() = 0;
    virtual void release() = 0;  // all memory
    Stream stream = nullptr;
};

class Checks {
public:
    Checks(Machine& machine, const Measure& measure, Scratch& scratch)
        : machine_(machine), measure_(measure), scratch_(scratch) {}

    // `largest`: elements of the largest tensors; `thorough`: every format with every kind of data at each size.
    void sizes_and_data(std::size_t largest, bool thorough);
    void every_short_pattern();
    void patterns_of_fp32(std::size_t n);
    void layouts();
    void offenders(std::size_t largest);
    void lists(int tensors);
    void sketches();
    void refusals();

    int failures() const { return failures_; }
    long comparisons() const { return comparisons_; }

private:
    struct Tensor {
        cpu::TensorView host, device;
        std::vector<unsigned char> bytes;
    };
    Tensor tensor(std::vector<unsigned char> bytes, DType, std::int64_t n, std::size_t offset = 0);
    void check_one_sided(const std::vector<Tensor>&, const std::string& what);
    void check_offenders(const std::vector<Tensor>&, const std::string& what);
    void check_pairs(const std::vector<Tensor>& real, const std::vector<Tensor>& twin,
                     const std::string& what);
    void check_stagnation(const std::vector<Tensor> (&tensors)[4], bool told, const std::string& what);
    void check_sketch(const Tensor&, const SketchedBlocks&, const std::string& what);
    void launched(Outcome, const std::string& what);
    void fail(const std::string& what);
    template <class T>
    void exact(T got, T expected, const char* field, const std::string& what);
    void close(double got, double expected, double allowed, const char* field, const std::string& what);

    Machine& machine_;
    const Measure& measure_;
    Scratch& scratch_;
    int failures_ = 0;
    long comparisons_ = 0;
};

}  // namespace mp::cuda
