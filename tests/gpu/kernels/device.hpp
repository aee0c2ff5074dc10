#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/kernels/cuda/checks.hpp"

namespace mp::cuda {

using Address = unsigned long long;
struct EventRecord;
using Event = EventRecord*;

// The first GPU of this machine, through libcuda.so.1 alone.
class Device : public Machine {
public:
    // Says what is missing; empty: nothing.
    std::string open();
    std::string name() const { return name_; }
    int driver_version() const { return version_; }
    int capability() const { return capability_; }  // 90 for 9.0

    char* memory(std::size_t bytes) override;
    void copy(char* to, const void* from, std::size_t bytes) override;
    void* pinned(std::size_t bytes) override;
    void wait() override;
    void release() override;

    void copy_on_device(char* to, const char* from, std::size_t bytes);
    // Milliseconds that `work` takes on the stream: the least of `rounds`, each of `repeats`.
    template <class Work>
    double time(int rounds, int repeats, Work&& work) {
        double best = 1e30;
        for (int r = 0; r < rounds; ++r) {
            start();
            for (int i = 0; i < repeats; ++i) work(i);
            const double ms = stop() / repeats;
            if (ms < best) best = ms;
        }
        return best;
    }
    // A captured stream: everything between is recorded and not run.
    bool begin_capture();
    bool end_capture();

private:
    void start();
    double stop();
    std::string name_;
    int version_ = 0, capability_ = 0;
    Event begin_ = nullptr, end_ = nullptr;
    std::vector<Address> device_;
    std::vector<void*> host_;
};

}  // namespace mp::cuda
