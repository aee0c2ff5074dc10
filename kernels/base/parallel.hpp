#pragma once

// Work on several threads of this process. Where the system has no thread to give, the same is done
// on fewer.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <utility>
#include <vector>

namespace mp {

// Starts now, or at the latest when the future is asked.
template <typename Work>
auto in_background(Work work) {
    return std::async(std::launch::async | std::launch::deferred, std::move(work));
}

// work(0) ... work(count - 1), in any order, on up to so many threads with this one among them. All is
// done when it returns, and no thread is left.
template <typename Work>
void in_parallel(std::size_t count, int threads, const Work& work) {
    std::atomic<std::size_t> next{0};
    const auto take = [&] {
        for (std::size_t i = next++; i < count; i = next++) work(i);
    };
    const std::size_t most = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
    std::vector<std::future<void>> others;
    while (others.size() + 1 < most) others.push_back(in_background(take));
    take();
    for (std::future<void>& other : others) other.get();
}

}  // namespace mp
