#include "instrument/cuda/communicators.hpp"

#include <map>
#include <mutex>

#include "instrument/cuda/per_process.hpp"
#include "runtime/trace/communicator_text.hpp"

namespace mp::raw {
namespace {

struct Handle {
    std::uint64_t number = 0, calls = 0, splits = 0, shrinks = 0;
};

struct Joined {
    int ranks = 0;
    std::map<int, int> devices;  // by rank; -1: not known yet
};

struct All {
    std::mutex mutex;
    std::map<const void*, Handle> handles;
    std::map<std::uint64_t, Joined> joined;
    std::uint64_t first = 0;  // that was joined
};
constinit PerProcess<All> g_all;

// FNV-1a. Never 0.
std::uint64_t hash(const void* data, std::uint64_t bytes) {
    std::uint64_t h = 0xcbf29ce484222325;
    for (std::uint64_t i = 0; i < bytes; ++i)
        h = (h ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
    return h | 1;
}

template <class Part>
void guarded(const Part& part) noexcept {
    try {
        All& all = g_all.get();
        const std::lock_guard lock(all.mutex);
        part(all);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the communicator stays unknown
    }
}

std::string text_of(std::uint64_t number, const Joined& joined) {
    std::string text;
    for (const auto& [rank, device] : joined.devices)
        text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank) +
                (device < 0 ? "" : " on device " + std::to_string(device));
    return text + " of " + trace::communicator_text(number);
}

}  // namespace

std::uint64_t join_communicator(const void* id, std::uint64_t bytes, int rank, int ranks,
                                int device) noexcept {
    const std::uint64_t number = hash(id, bytes);
    guarded([&](All& a) {
        Joined& joined = a.joined[number];
        joined.ranks = ranks;
        joined.devices.emplace(rank, device);
        if (a.first == 0) a.first = number;
    });
    return number;
}

std::uint64_t join_part(const void* parent, int part) noexcept {
    std::uint64_t number = 0;
    guarded([&](All& a) {
        const auto from = a.handles.find(parent);
        if (from == a.handles.end() || from->second.number == 0) return;
        Handle& parted = from->second;
        const std::uint64_t times = part == kRemaining ? ++parted.shrinks : ++parted.splits;
        const std::uint64_t id[] = {parted.number, times, static_cast<std::uint64_t>(part)};
        number = hash(id, sizeof id);
    });
    return number;
}

// A handle may have the address of one that was destroyed.
void note_communicator(const void* comm, std::uint64_t number) noexcept {
    guarded([&](All& a) { a.handles[comm] = {number}; });
}

void forget_communicator(const void* comm) noexcept {
    guarded([&](All& a) { a.handles.erase(comm); });
}

Numbered next_call(const void* comm, int rank, int device, bool is_of_all) noexcept {
    Numbered next;
    guarded([&](All& a) {
        const auto found = a.handles.find(comm);
        if (found == a.handles.end() || found->second.number == 0) return;
        next = {found->second.number, is_of_all ? found->second.calls++ : 0};
        const auto joined = a.joined.find(next.communicator);
        if (joined == a.joined.end()) return;
        const auto member = joined->second.devices.find(rank);
        if (member != joined->second.devices.end()) member->second = device;
    });
    return next;
}

OwnRank own_rank() noexcept {
    OwnRank own;
    guarded([&](const All& a) {
        const auto first = a.joined.find(a.first);
        if (first == a.joined.end() || first->second.devices.size() != 1) return;
        own = {first->second.devices.begin()->first, first->second.ranks};
    });
    return own;
}

Members members() noexcept {
    Members m;
    guarded([&](const All& a) {
        const auto first = a.joined.find(a.first);
        if (first == a.joined.end() || first->second.devices.size() < 2) return;
        m = {static_cast<int>(first->second.devices.size()), text_of(first->first, first->second)};
    });
    return m;
}

}  // namespace mp::raw
