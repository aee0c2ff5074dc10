#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace mp::raw {

// What the program calls its memory: tensors of mptrace.h, heaps and regions of NVTX. Of regions in each other the
// innermost counts. Safe from any thread.
class MemoryNames {
public:
    // What began there before has ended.
    void set(const void* begin, std::uint64_t bytes, std::string_view name = {});
    // Changes the size of a region that was set.
    void resize(const void* begin, std::uint64_t bytes);
    void name(const void* begin, std::string_view name);
    void end(const void* begin);

    // "'gradients', byte 512"; empty: no region with a name has the address.
    std::string of(const void* at) const;

private:
    struct Region {
        std::uint64_t bytes = 0;
        std::string name;
    };
    static constexpr std::size_t kMost = 1 << 16;
    static constexpr int kMostAround =
        64;  // regions that begin before an address and are asked whether they have it

    mutable std::mutex mutex_;
    std::map<std::uintptr_t, Region> regions_;
};

}  // namespace mp::raw
