// A fake libnccl.so.2 for processes of one machine, over shared memory. It adds in the order and in the dtype of the
// real one: rings round after each hop, a tree after each child, ncclAvg multiplies by 1/n in the dtype first, and a
// premultiplied sum by the scalar of each rank.
#include <fcntl.h>
#include <nccl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/cuda/faults.hpp"
#include "tests/fakes/cuda/nccl_plugin.hpp"
#include "tests/fakes/cuda/number.hpp"

using namespace mp::fake;

namespace {

constexpr std::size_t kSlot = 1 << 18;  // bytes that a rank shows the others at once
constexpr int kMostRanks = 16;

struct Shared {
    std::atomic<std::uint32_t> arrived{0}, round{0}, lost{0};
    alignas(64) char slots[];
};

std::size_t width_of(ncclDataType_t type) {
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

cudaDataType_t number_type(ncclDataType_t type) {
    return type == ncclFloat16 ? CUDA_R_16F : type == ncclBfloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

bool is_floating(ncclDataType_t type) {
    return type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32;
}

const char* text_of(ncclDataType_t type) {
    return type == ncclBfloat16  ? "ncclBfloat16"
           : type == ncclFloat16 ? "ncclFloat16"
           : type == ncclFloat32 ? "ncclFloat32"
                                 : "ncclInt8";
}

bool is_tree() {
    static const char* const algorithm = std::getenv("NCCL_ALGO");
    return algorithm && std::strncmp(algorithm, "Tree", 4) == 0;
}

struct Operation {
    enum Kind { all_reduce, reduce_scatter, all_gather, broadcast, reduce } kind;
    const void* from;
    void* to;
    std::size_t count;  // of the smaller side
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    const void* factor = nullptr;  // of a premultiplied sum: where this rank's is when the operation runs
    std::shared_ptr<char[]> kept = nullptr;  // a factor that was taken when the operator was made
};

}  // namespace

struct ncclComm {
    int rank = 0, ranks = 1, device = 0;
    std::string name;
    int splits = 0;
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

    // Waits for all ranks. A rank that never comes is an error after 30 s, not a test that hangs.
    bool meet() {
        if (ranks == 1) return true;
        if (shared->lost) return false;
        const std::uint32_t round = shared->round;
        if (shared->arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(ranks)) {
            shared->arrived = 0;
            ++shared->round;
            return true;
        }
        const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        for (int i = 0; shared->round == round; ++i) {
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

    void run(const Operation& o) {
        const std::size_t width = width_of(o.type), most = kSlot / width;
        const auto* const from = static_cast<const char*>(o.from);
        auto* const to = static_cast<char*>(o.to);
        for (std::size_t at = 0; at < o.count; at += most) {
            const std::size_t n = std::min(most, o.count - at), bytes_now = n * width;
            switch (o.kind) {
                case Operation::reduce_scatter:
                    for (int owner = 0; owner < ranks; ++owner) {
                        const std::size_t offset = (static_cast<std::size_t>(owner) * o.count + at) * width;
                        if (!exchange(
                                from + offset, bytes_now,
                                [&] {
                                    if (owner == rank) reduce_slots(to + at * width, n, o, owner);
                                },
                                &o))
                            return;
                    }
                    break;
                case Operation::all_gather:
                    if (!exchange(from + at * width, bytes_now, [&] {
                            for (int r = 0; r < ranks; ++r)
                                std::memcpy(to + (static_cast<std::size_t>(r) * o.count + at) * width,
                                            slot(r), bytes_now);
                        }))
                        return;
                    break;
                case Operation::broadcast:
                    if (!exchange(rank == o.root ? from + at * width : nullptr, bytes_now,
                                  [&] { std::memcpy(to + at * width, slot(o.root), bytes_now); }))
                        return;
                    break;
                case Operation::all_reduce:
                case Operation::reduce:
                    if (!exchange(
                            from + at * width, bytes_now,
                            [&] {
                                if (o.kind == Operation::all_reduce || rank == o.root)
                                    reduce_slots(to + at * width, n, o, -1);
                            },
                            &o))
                        return;
                    break;
            }
        }
    }
};

namespace {

struct Queued {
    ncclComm* comm;
    Operation operation;
    CUstream stream;
};
using Joining = std::function<ncclResult_t()>;
// What the end of the outermost group of a thread does.
thread_local int groups = 0;
thread_local std::vector<Queued> queued;
thread_local std::vector<Joining> joining;

// NCCL makes the device of a communicator current while it works on it.
class OnDevice {
public:
    explicit OnDevice(int device) { set_current(device); }
    ~OnDevice() { set_current(before_); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

private:
    int before_ = current_device();
};

// What NCCL tells at the launch: the ring of a scatter, or what NCCL_ALGO asks for.
void tell_plugin(ncclComm& comm, const Operation& o) {
    static constexpr const char* kNames[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast",
                                             "Reduce"};
    if (!comm.profiled || (comm.profiled_events & 2) == 0) return;
    const bool as_tree = is_tree() && (o.kind == Operation::all_reduce || o.kind == Operation::reduce);
    plugin().tell(comm.profiled,
                  {comm.calls++, kNames[o.kind], o.from, o.to, o.count, o.root, text_of(o.type), 2, 16,
                   as_tree ? "TREE" : "RING", "SIMPLE", nullptr},
                  comm.rank);
}

// Operations of a communicator run one at a time, whatever their streams are.
ncclResult_t submit(const Queued& q) {
    const Inside calls_of_ours;
    const OnDevice on(q.comm->device);
    if (q.comm->newest)
        cuStreamWaitEvent(q.stream, q.comm->newest, 0);
    else
        cuEventCreate(&q.comm->newest, 0);
    ncclComm* const comm = q.comm;
    const Operation operation = q.operation;
    tell_plugin(*comm, operation);
    if (enqueue(q.stream, [comm, operation] { comm->run(operation); }) != CUDA_SUCCESS)
        return ncclUnhandledCudaError;
    return cuEventRecord(comm->newest, q.stream) == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t call(const char* name, ncclComm* comm, const Operation& o, cudaStream_t stream) {
    if (const int code = fault(name)) return static_cast<ncclResult_t>(code);
    if (!comm || !o.to) return ncclInvalidArgument;
    Queued q{comm, o, reinterpret_cast<CUstream>(stream)};
    if (o.op >= ncclNumOps) {
        const auto made = comm->operators.find(o.op);
        if (made == comm->operators.end()) return ncclInvalidArgument;
        q.operation.factor = made->second.factor;
        q.operation.kept = made->second.kept;
    }
    if (groups == 0) return submit(q);
    queued.push_back(q);
    return ncclSuccess;
}

Shared* map_shared(const std::string& name, std::size_t bytes) {
    const int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0) return nullptr;
    void* at = MAP_FAILED;
    if (ftruncate(file, static_cast<off_t>(bytes)) == 0)
        at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? nullptr : static_cast<Shared*>(at);  // zeros are its first state
}

// Ranks of one process wait for each other when they join, so each joins in a thread.
ncclResult_t join(const std::vector<Joining>& all) {
    std::vector<ncclResult_t> results(all.size(), ncclSuccess);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < all.size(); ++i) threads.emplace_back([&, i] { results[i] = all[i](); });
    for (std::thread& thread : threads) thread.join();
    const auto bad = std::find_if(results.begin(), results.end(), [](auto r) { return r != ncclSuccess; });
    return bad == results.end() ? ncclSuccess : *bad;
}

// FNV-1a: the same number on all ranks.
std::uint64_t hash_of(const std::string& name) {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return h;
}

// A rank of the communicator with this name comes to the others.
ncclResult_t meet_others(ncclComm* comm) {
    comm->bytes = sizeof(Shared) + static_cast<std::size_t>(comm->ranks) * kSlot;
    comm->shared = map_shared(comm->name, comm->bytes);
    if (!comm->shared || !comm->meet()) return ncclSystemError;
    if (comm->rank == 0) shm_unlink(comm->name.c_str());
    const std::uint64_t number = hash_of(comm->name);
    comm->profiled = plugin().begin(number, comm->ranks, comm->rank, comm->profiled_events);
    return ncclSuccess;
}

// In a group the rank joins at the group's end, and its handle is there then.
ncclResult_t make(ncclComm_t* into, int ranks, const std::string& name, int rank, int device) {
    if (const int code = fault("ncclCommInitRank")) return static_cast<ncclResult_t>(code);
    if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    auto* const comm = new ncclComm;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->device = std::max(device, 0);
    comm->name = name;
    const auto joins = [comm, into] {
        const ncclResult_t result = meet_others(comm);
        if (result == ncclSuccess) *into = comm;
        return result;
    };
    if (groups == 0) return joins();
    joining.emplace_back(joins);
    return ncclSuccess;
}

// Each rank shows its colour and its key; the ranks of a colour are in the order of their keys.
ncclResult_t split(ncclComm* parent, int color, int key, ncclComm* child) {
    const int mine[] = {color, key};
    std::vector<std::pair<int, int>> members;  // key, rank
    const bool met = parent->exchange(mine, sizeof mine, [&] {
        for (int rank = 0; rank < parent->ranks; ++rank) {
            int theirs[2] = {};
            std::memcpy(theirs, parent->slot(rank), sizeof theirs);
            if (theirs[0] == color) members.emplace_back(theirs[1], rank);
        }
    });
    if (!met) return ncclRemoteError;
    const int number = ++parent->splits;
    if (!child) return ncclSuccess;
    std::sort(members.begin(), members.end());
    child->ranks = static_cast<int>(members.size());
    for (int rank = 0; rank < child->ranks; ++rank)
        if (members[static_cast<std::size_t>(rank)].second == parent->rank) child->rank = rank;
    child->device = parent->device;
    child->name = parent->name + "-" + std::to_string(number) + "-" + std::to_string(color);
    return meet_others(child);
}

}  // namespace

extern "C" {

ncclResult_t pncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
    if (const int code = fault("ncclGetUniqueId")) return static_cast<ncclResult_t>(code);
    std::memset(id, 0, sizeof *id);
    static std::atomic<int> number{0};
    std::snprintf(id->internal, sizeof id->internal, "/mp-fake-nccl-%d-%d-%lx", getpid(), ++number,
                  static_cast<unsigned long>(std::time(nullptr)));
    return ncclSuccess;
}
ncclResult_t pncclCommInitRank(ncclComm_t* into, int ranks, ncclUniqueId id, int rank) {
    make_current();
    return make(into, ranks, id.internal, rank, current_device());
}
ncclResult_t pncclCommInitRankConfig(ncclComm_t* into, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
    return pncclCommInitRank(into, ranks, id, rank);
}
ncclResult_t pncclCommInitRankScalable(ncclComm_t* into, int ranks, int rank, int count, ncclUniqueId* ids,
                                       ncclConfig_t*) {
    return count < 1 ? ncclInvalidArgument : pncclCommInitRank(into, ranks, ids[0], rank);
}
ncclResult_t pncclCommInitAll(ncclComm_t* into, int count, const int* devices) {
    make_current();
    ncclUniqueId id;
    if (const ncclResult_t result = pncclGetUniqueId(&id); result != ncclSuccess) return result;
    if (const ncclResult_t result = pncclGroupStart(); result != ncclSuccess) return result;
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < count && result == ncclSuccess; ++i)
        result = make(into + i, count, id.internal, i, devices ? devices[i] : i);
    if (result != ncclSuccess) joining.clear();
    const ncclResult_t ended = pncclGroupEnd();
    return result != ncclSuccess ? result : ended;
}
ncclResult_t pncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* into, ncclConfig_t*) {
    if (const int code = fault("ncclCommSplit")) return static_cast<ncclResult_t>(code);
    ncclComm* const child = color == NCCL_SPLIT_NOCOLOR ? nullptr : new ncclComm;
    *into = nullptr;
    const auto joins = [=] {
        *into = child;
        return split(parent, color, key, child);
    };
    if (groups == 0) return joins();
    joining.emplace_back(joins);
    return ncclSuccess;
}
ncclResult_t pncclCommDestroy(ncclComm_t comm) {
    const Inside calls_of_ours;
    if (comm->newest) {
        cuEventSynchronize(comm->newest);
        cuEventDestroy(comm->newest);
    }
    if (comm->profiled) plugin().end(comm->profiled);
    munmap(comm->shared, comm->bytes);
    delete comm;
    return ncclSuccess;
}
ncclResult_t pncclCommAbort(ncclComm_t comm) {
    comm->shared->lost = 1;
    return pncclCommDestroy(comm);
}
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
    *error = comm->error;
    return ncclSuccess;
}
ncclResult_t pncclCommCount(ncclComm_t comm, int* count) {
    *count = comm->ranks;
    return ncclSuccess;
}
ncclResult_t pncclCommUserRank(ncclComm_t comm, int* rank) {
    *rank = comm->rank;
    return ncclSuccess;
}
ncclResult_t pncclCommCuDevice(ncclComm_t comm, int* device) {
    *device = comm->device;
    return ncclSuccess;
}
const char* pncclGetErrorString(ncclResult_t code) {
    return code == ncclSuccess         ? "no error"
           : code == ncclInternalError ? "internal error"
                                       : "an error of the fake NCCL";
}
const char* pncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t pncclGroupStart() {
    ++groups;
    return ncclSuccess;
}
ncclResult_t pncclGroupEnd() {
    if (groups == 0) return ncclInvalidUsage;
    if (--groups > 0) return ncclSuccess;
    if (const int code = fault("ncclGroupEnd")) return static_cast<ncclResult_t>(code);
    if (const ncclResult_t result = join(std::exchange(joining, {})); result != ncclSuccess) return result;
    const std::vector<Queued> all = std::exchange(queued, {});
    for (const Queued& q : all)
        if (const ncclResult_t result = submit(q); result != ncclSuccess) return result;
    return ncclSuccess;
}
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                       ncclScalarResidence_t residence, ncclComm_t comm) {
    if (const int code = fault("ncclRedOpCreatePreMulSum")) return static_cast<ncclResult_t>(code);
    if (!op || !scalar || !comm || !is_floating(type)) return ncclInvalidArgument;
    ncclComm::Operator made{scalar, nullptr};
    if (residence == ncclScalarHostImmediate) {
        made.kept.reset(new char[width_of(type)]);
        std::memcpy(made.kept.get(), scalar, width_of(type));
        made.factor = made.kept.get();
    }
    int number = ncclNumOps;
    while (comm->operators.count(number)) ++number;
    comm->operators[number] = made;
    *op = static_cast<ncclRedOp_t>(number);
    return ncclSuccess;
}
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    return comm && comm->operators.erase(op) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t pncclAllReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) {
    return call("ncclAllReduce", comm, {Operation::all_reduce, from, to, n, type, op, 0}, stream);
}
ncclResult_t pncclReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
                         ncclComm_t comm, cudaStream_t stream) {
    return call("ncclReduce", comm, {Operation::reduce, from, to, n, type, op, root}, stream);
}
ncclResult_t pncclReduceScatter(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream) {
    return call("ncclReduceScatter", comm, {Operation::reduce_scatter, from, to, n, type, op, 0}, stream);
}
ncclResult_t pncclAllGather(const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm,
                            cudaStream_t stream) {
    return call("ncclAllGather", comm, {Operation::all_gather, from, to, n, type, ncclSum, 0}, stream);
}
ncclResult_t pncclBroadcast(const void* from, void* to, size_t n, ncclDataType_t type, int root,
                            ncclComm_t comm, cudaStream_t stream) {
    return call("ncclBroadcast", comm, {Operation::broadcast, from, to, n, type, ncclSum, root}, stream);
}

// The weak names, which a tool may replace, as NCCL has them.
#define MP_WEAK(result, name, ...) result name(__VA_ARGS__) __attribute__((weak, alias("p" #name)));
MP_WEAK(ncclResult_t, ncclGetVersion, int*)
MP_WEAK(ncclResult_t, ncclGetUniqueId, ncclUniqueId*)
MP_WEAK(ncclResult_t, ncclCommInitRank, ncclComm_t*, int, ncclUniqueId, int)
MP_WEAK(ncclResult_t, ncclCommInitRankConfig, ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*)
MP_WEAK(ncclResult_t, ncclCommInitRankScalable, ncclComm_t*, int, int, int, ncclUniqueId*, ncclConfig_t*)
MP_WEAK(ncclResult_t, ncclCommInitAll, ncclComm_t*, int, const int*)
MP_WEAK(ncclResult_t, ncclCommSplit, ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*)
MP_WEAK(ncclResult_t, ncclCommDestroy, ncclComm_t)
MP_WEAK(ncclResult_t, ncclCommAbort, ncclComm_t)
MP_WEAK(ncclResult_t, ncclCommGetAsyncError, ncclComm_t, ncclResult_t*)
MP_WEAK(ncclResult_t, ncclCommCount, ncclComm_t, int*)
MP_WEAK(ncclResult_t, ncclCommUserRank, ncclComm_t, int*)
MP_WEAK(ncclResult_t, ncclCommCuDevice, ncclComm_t, int*)
MP_WEAK(const char*, ncclGetErrorString, ncclResult_t)
MP_WEAK(const char*, ncclGetLastError, ncclComm_t)
MP_WEAK(ncclResult_t, ncclGroupStart)
MP_WEAK(ncclResult_t, ncclGroupEnd)
MP_WEAK(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t,
        ncclComm_t)
MP_WEAK(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t, ncclComm_t)
MP_WEAK(ncclResult_t, ncclAllReduce, const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
        cudaStream_t)
MP_WEAK(ncclResult_t, ncclReduce, const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
        cudaStream_t)
MP_WEAK(ncclResult_t, ncclReduceScatter, const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
        cudaStream_t)
MP_WEAK(ncclResult_t, ncclAllGather, const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t)
MP_WEAK(ncclResult_t, ncclBroadcast, const void*, void*, size_t, ncclDataType_t, int, ncclComm_t,
        cudaStream_t)

}  // extern "C"
