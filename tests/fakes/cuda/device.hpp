#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// The GPU behind the fakes: memory of the host, and a worker thread per stream that runs its work late. It is part of
// the fake libcuda.so.1; the other fakes call it where the real libraries call the driver by ways that are not
// documented. Everything is safe to call from any thread.
struct CUfunc_st {
    std::string name;                // mangled
    std::vector<std::size_t> sizes;  // of the arguments
    std::function<void(unsigned threads, void** arguments)> run;
    int device = -1;  // whose context has its module; -1: the runtime loads it where it is launched
};

namespace mp::fake {

using Work = std::function<void()>;

// Adds work to a stream, or to the graph that the stream records.
CUresult enqueue(CUstream, Work);
// Copies the arguments, notifies CUPTI's subscriber, and adds the kernel to the stream.
CUresult launch(CUfunction, const cuuint32_t (&grid)[3], const cuuint32_t (&block)[3], unsigned shared,
                CUstream, void** arguments, void** extra);

CUresult allocate(CUdeviceptr*, std::size_t bytes, bool from_pool = false);
CUresult release(CUdeviceptr);  // waits for the device
CUresult forget(CUdeviceptr);
bool is_pooled(const void*);
// Memory that is mapped into a range of addresses: an allocation of its own, beside which others may lie.
CUresult add_mapping(CUdeviceptr, std::size_t bytes);
CUresult remove_mapping(CUdeviceptr, std::size_t bytes);
bool is_mapped(const void*);
CUresult pin(void**, std::size_t bytes);
CUresult unpin(void*);
// Where the device's own work finds memory that a program knows by an address. With MP_FAKE_CUDA_GUARDED the two
// differ: the program's addresses have no access rights, so a read by the host ends the program.
char* on_device(const void*);
enum class Memory { pageable, pinned, device };
Memory kind_of(const void*);
// Returns before the copy is done unless one side is pageable memory, as the driver does.
CUresult copy(void* to, const void* from, std::size_t bytes, CUstream);
CUresult wait(CUstream);

// What cuInit does once: loads the library of CUDA_INJECTION64_PATH.
CUresult initialise();
// Makes a context current where none is, as each call of the runtime does: that of the device which this thread has
// selected. Each device has one context.
void make_current();
void select_device(int);
int current_device();  // -1: no context is current
void set_current(int device);

// While the fakes call each other: the driver's functions then return no faults that the test asks for.
int& inside();
class Inside {
public:
    Inside() { ++inside(); }
    ~Inside() { --inside(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

// A call that CUPTI reports: the enter and the exit of it.
struct Call {
    int id;                // CUpti_driver_api_trace_cbid
    const char* function;  // cuLaunchKernel
    const char* symbol;    // the kernel's mangled name
    const void* parameters;
    CUresult* result;
    std::uint32_t correlation;
    std::uint64_t* data;  // a word that the subscriber keeps from enter to exit
};
using Hook = void (*)(bool enter, const Call&);
void set_hook(Hook);

// What CUPTI's activity records tell of a kernel, handed over when it has run.
struct Ran {
    const char* symbol;
    std::uint32_t correlation;
    std::uint32_t stream;
    std::uint64_t start, end;  // ns
    cuuint32_t grid[3], block[3];
};
using RanHook = void (*)(const Ran&);
void set_ran_hook(RanHook);

}  // namespace mp::fake
