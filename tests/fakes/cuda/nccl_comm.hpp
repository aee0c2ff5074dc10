#pragma once

#include <nccl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/cuda/number.hpp"

// Inside of the fake libnccl.so.2: a rank of a communicator, and what its operations do when the stream comes to them.
namespace mp::fake {

inline constexpr std::size_t kSlot = 1 << 18;  // bytes that a rank shows the others at once
inline constexpr std::size_t kBox = 1 << 16;   // bytes on their way from a rank to another one
inline constexpr int kMostRanks = 16;

struct Box {
    std::atomic<std::uint32_t> bytes{0};  // 0: empty
    char data[kBox];
};
// A slot per rank follows.
struct Shared {
    std::atomic<std::uint32_t> arrived{0}, round{0}, lost{0};
    Box boxes[kMostRanks][kMostRanks];  // [from][to]
    alignas(64) char slots[];
};

inline std::size_t width_of(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8:
            return 1;
        case ncclFloat16:
        case ncclBfloat16:
            return 2;
        case ncclInt64:
        case ncclUint64:
        case ncclFloat64:
            return 8;
        default:
            return 4;
    }
}

inline cudaDataType_t number_type(ncclDataType_t type) {
    return type == ncclFloat16 ? CUDA_R_16F : type == ncclBfloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

inline bool is_floating(ncclDataType_t type) {
    return type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32;
}

inline const char* text_of(ncclDataType_t type) {
    return type == ncclBfloat16  ? "ncclBfloat16"
           : type == ncclFloat16 ? "ncclFloat16"
           : type == ncclFloat32 ? "ncclFloat32"
                                 : "ncclInt8";
}

inline bool is_tree() {
    static const char* const algorithm = std::getenv("NCCL_ALGO");
    return algorithm && std::strncmp(algorithm, "Tree", 4) == 0;
}

struct Operation {
    enum Kind {
        all_reduce,
        reduce_scatter,
        all_gather,
        broadcast,
        reduce,
        all_to_all,
        gather,
        scatter,
        send,
        receive
    } kind;
    const void* from;
    void* to;
    std::size_t count;  // of the smaller side
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;                      // or the other rank
    const void* factor = nullptr;  // of a premultiplied sum: where this rank's is when the operation runs
    std::shared_ptr<char[]> kept = nullptr;  // a factor that was taken when the operator was made
};

struct Comm {
    int rank = 0, ranks = 1, device = 0;
    std::string name;
    int splits = 0, shrinks = 0;
    bool blocks = true;
    std::thread late{};  // what a call that has returned ncclInProgress still does
    Shared* shared = nullptr;
    std::size_t bytes = 0;
    CUevent newest = nullptr;  // after the newest operation: one at a time, in the order of the calls
    std::atomic<ncclResult_t> error{ncclSuccess};
    void* profiled = nullptr;  // the plugin's context
    int profiled_events = 0;
    std::uint64_t calls = 0;
    struct Operator {
        const void* factor = nullptr;
        std::shared_ptr<char[]> kept = nullptr;
    };
    std::map<int, Operator> operators;

    char* slot(int of) const { return shared->slots + static_cast<std::size_t>(of) * kSlot; }

    // Waits for others. A rank that never comes is an error after 30 s, not a test that hangs.
    template <class Done>
    bool wait(const Done& done) {
        const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        for (int i = 0; !done(); ++i) {
            if (i < 200)
                sched_yield();
            else
                usleep(50);
            if (shared->lost || std::chrono::steady_clock::now() > last) {
                shared->lost = 1;
                error = ncclRemoteError;
                return false;
            }
        }
        return true;
    }
    bool meet() {
        if (ranks == 1) return true;
        if (shared->lost) return false;
        const std::uint32_t round = shared->round;
        if (shared->arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(ranks)) {
            shared->arrived = 0;
            ++shared->round;
            return true;
        }
        return wait([&] { return shared->round != round; });
    }

    // Two ranks. What they send each other at the same time has to fit into a box.
    void send(const char* from, std::size_t bytes_sent, int to) {
        Box& box = shared->boxes[rank][to];
        for (std::size_t at = 0; at < bytes_sent; at += kBox) {
            const std::size_t now = std::min(kBox, bytes_sent - at);
            if (!wait([&] { return box.bytes == 0; })) return;
            std::memcpy(box.data, from + at, now);
            box.bytes = static_cast<std::uint32_t>(now);
        }
    }
    void receive(char* into, std::size_t bytes_sent, int from) {
        Box& box = shared->boxes[from][rank];
        for (std::size_t at = 0; at < bytes_sent; at += kBox) {
            const std::size_t now = std::min(kBox, bytes_sent - at);
            if (!wait([&] { return box.bytes != 0; })) return;
            std::memcpy(into + at, box.data, now);
            box.bytes = 0;
        }
    }

    float combined(float a, float b, ncclRedOp_t op) const {
        return op == ncclProd  ? a * b
               : op == ncclMax ? (a > b ? a : b)
               : op == ncclMin ? (a < b ? a : b)
                               : a + b;
    }

    // Element i of all slots, added as the ranks would. A ring that ends at `last` begins behind it; a tree has rank 0
    // as its root, and 2r + 1 and 2r + 2 as the children of r.
    float ring(std::size_t i, const Operation& o, int last, float factor) const {
        const cudaDataType_t t = number_type(o.type);
        float sum = 0;
        for (int hop = 1; hop <= ranks; ++hop) {
            float x = load(slot((last + hop) % ranks), i, t);
            if (o.op == ncclAvg) x = rounded(x * factor, t);
            sum = hop == 1 ? x : rounded(combined(sum, x, o.op), t);
        }
        return sum;
    }
    float tree(std::size_t i, const Operation& o, int node, float factor) const {
        const cudaDataType_t t = number_type(o.type);
        float sum = load(slot(node), i, t);
        if (o.op == ncclAvg) sum = rounded(sum * factor, t);
        for (int child = 2 * node + 1; child <= 2 * node + 2 && child < ranks; ++child)
            sum = rounded(combined(sum, tree(i, o, child, factor), o.op), t);
        return sum;
    }

    // Reduces n elements of the slots into `to`. In a ring each rank owns a part of them: the part of rank `owner`, or
    // equal parts if it is -1.
    void reduce_slots(void* to, std::size_t n, const Operation& o, int owner) const {
        if (!is_floating(o.type)) return add_integers(to, n, o);
        const bool as_tree = owner < 0 && is_tree();
        const cudaDataType_t t = number_type(o.type);
        const float factor = rounded(1.0f / static_cast<float>(ranks), t);
        for (std::size_t i = 0; i < n; ++i) {
            const int last = owner >= 0 ? owner : static_cast<int>(i * static_cast<std::size_t>(ranks) / n);
            store(to, i, as_tree ? tree(i, o, 0, factor) : ring(i, o, last, factor), t);
        }
    }
    void add_integers(void* to, std::size_t n, const Operation& o) const {
        const std::size_t width = width_of(o.type);
        for (std::size_t i = 0; i < n; ++i) {
            std::int64_t sum = 0;
            for (int r = 0; r < ranks; ++r) {
                std::int64_t x = 0;
                std::memcpy(&x, slot(r) + i * width, width);
                sum += x;
            }
            std::memcpy(static_cast<char*>(to) + i * width, &sum, width);
        }
    }

    // A rank shows what it sends times its own factor, in the dtype.
    void multiply(std::size_t bytes_shown, const Operation& o) {
        if (!o.factor) return;
        const cudaDataType_t t = number_type(o.type);
        const float factor = load(o.factor, 0, t);
        for (std::size_t i = 0; i < bytes_shown / width_of(o.type); ++i)
            store(slot(rank), i, load(slot(rank), i, t) * factor, t);
    }

    // A piece of an operation: every rank shows `bytes` of its memory, and one rank or all take what they need.
    template <class Take>
    bool exchange(const void* mine, std::size_t bytes_shown, const Take& take,
                  const Operation* multiplied = nullptr) {
        if (mine) std::memcpy(slot(rank), mine, bytes_shown);
        if (multiplied) multiply(bytes_shown, *multiplied);
        if (!meet()) return false;
        take();
        return meet();
    }

    // The part of a tensor that belongs to a rank.
    static std::size_t part_of(int owner, const Operation& o) {
        return static_cast<std::size_t>(owner) * o.count * width_of(o.type);
    }
    // What the ranks show in their slots, one part after the other.
    void take_all(char* to, const Operation& o, std::size_t at, std::size_t n) const {
        for (int r = 0; r < ranks; ++r) std::memcpy(to + part_of(r, o) + at, slot(r), n);
    }

    // n elements from element `first` on. False: a rank is lost.
    bool run_piece(const Operation& o, std::size_t first, std::size_t n) {
        const std::size_t at = first * width_of(o.type), bytes_now = n * width_of(o.type);
        const auto* const from = static_cast<const char*>(o.from) + at;
        auto* const to = static_cast<char*>(o.to);
        const bool is_root = rank == o.root;
        switch (o.kind) {
            case Operation::reduce_scatter:
                for (int owner = 0; owner < ranks; ++owner)
                    if (!exchange(
                            from + part_of(owner, o), bytes_now,
                            [&] {
                                if (owner == rank) reduce_slots(to + at, n, o, owner);
                            },
                            &o))
                        return false;
                return true;
            case Operation::all_to_all:
            case Operation::scatter:
                for (int owner = 0; owner < ranks; ++owner)
                    if (!exchange(
                            o.kind == Operation::all_to_all || is_root ? from + part_of(owner, o) : nullptr,
                            bytes_now, [&] {
                                if (owner != rank) return;
                                if (o.kind == Operation::all_to_all) return take_all(to, o, at, bytes_now);
                                std::memcpy(to + at, slot(o.root), bytes_now);
                            }))
                        return false;
                return true;
            case Operation::all_gather:
            case Operation::gather:
                return exchange(from, bytes_now, [&] {
                    if (o.kind == Operation::all_gather || is_root) take_all(to, o, at, bytes_now);
                });
            case Operation::broadcast:
                return exchange(is_root ? from : nullptr, bytes_now,
                                [&] { std::memcpy(to + at, slot(o.root), bytes_now); });
            case Operation::all_reduce:
            case Operation::reduce:
                return exchange(
                    from, bytes_now,
                    [&] {
                        if (o.kind == Operation::all_reduce || is_root) reduce_slots(to + at, n, o, -1);
                    },
                    &o);
            case Operation::send:
                send(from, bytes_now, o.root);
                return true;
            case Operation::receive:
                receive(to + at, bytes_now, o.root);
                return true;
        }
        return false;
    }
    void run(const Operation& o) {
        const std::size_t most = kSlot / width_of(o.type);
        for (std::size_t first = 0; first < o.count; first += most)
            if (!run_piece(o, first, std::min(most, o.count - first))) return;
    }
};

}  // namespace mp::fake

struct ncclComm : mp::fake::Comm {};
