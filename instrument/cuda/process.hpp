#pragma once

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>

#include "instrument/cuda/ranges.hpp"
#include "instrument/cuda/run.hpp"

// Whether this process is observed, and where its threads are. The library is loaded into every process below
// `mp-trace --` and does nothing until the first event of NVTX, cuBLAS, NCCL or the driver. A process with libtorch is
// never observed here: the torch adapter sees it. A forked child begins anew with its own first event.

namespace mp::raw {

// The ways in which events come. Each stops by itself after an error of ours.
enum class Source : unsigned char { nvtx, cublas, nccl, cupti, activity };
constexpr int kSources = 5;

// The run of this process; null: it is not observed. Decides at the first call.
Run* run() noexcept;
// From now on nothing is observed: libtorch came.
void retire() noexcept;

bool is_armed(Source) noexcept;
// Stops a source and says why, once.
void disarm(Source, const char* why) noexcept;

// The ranges of the calling thread.
ThreadRanges& ranges() noexcept;

// Marks that the calling thread is inside of an observed call, or of ours: what happens there is a part of it.
class Inside {
public:
    Inside() noexcept;
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    static bool any() noexcept;
};

// Throws when a test wants this source to fail: before and after each part of ours. Only the library that
// tests/instrument/cuda builds has it.
#ifdef MP_TEST_HOOKS
void fail_on_purpose(Source);
#else
constexpr void fail_on_purpose(Source) {}
#endif

// Runs our own part of a hook. Keeps errno, and disarms the source if it throws.
template <class Part>
void guarded(Source source, const Part& part) noexcept {
    const int before = errno;
    try {
        fail_on_purpose(source);
        part();
        fail_on_purpose(source);
    } catch (const std::exception& e) {
        disarm(source, e.what());
    } catch (...) {
        disarm(source, "an unknown exception");
    }
    errno = before;
}

}  // namespace mp::raw
