// A fake libnccl.so.2 for processes of one machine, over shared memory. It adds in the order and in the dtype of the
// real one: rings round after each hop, a tree after each child, ncclAvg multiplies by 1/n in the dtype first, and a
// premultiplied sum by the scalar of each rank.
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/calls.hpp"
#include "tests/fakes/cuda/faults.hpp"
#include "tests/fakes/cuda/nccl_comm.hpp"
#include "tests/fakes/cuda/nccl_plugin.hpp"

using namespace mp::fake;

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
    if (!comm.profiled || (comm.profiled_events & 2) == 0 || o.kind > Operation::reduce) return;
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

// A communicator that does not block: the call returns, and a thread does the work a little later.
ncclResult_t begin_late(ncclComm* comm, const Joining& work) {
    if (comm->late.joinable()) comm->late.join();
    comm->error = ncclInProgress;
    comm->late = std::thread([comm, work] {
        usleep(5000);
        const ncclResult_t result = work();
        if (comm->error == ncclInProgress) comm->error = result;
    });
    return ncclInProgress;
}

ncclResult_t begin(ncclComm* comm, const std::vector<Queued>& works) {
    const auto work = [works] {
        ncclResult_t result = ncclSuccess;
        for (std::size_t i = 0; i < works.size() && result == ncclSuccess; ++i) result = submit(works[i]);
        return result;
    };
    return comm->blocks ? work() : begin_late(comm, work);
}

ncclResult_t call(const char* name, ncclComm* comm, const Operation& o, cudaStream_t stream) {
    if (const int code = fault(name)) return static_cast<ncclResult_t>(code);
    if (!comm || comm->error == ncclInProgress) return ncclInvalidArgument;
    // The root alone has both.
    const bool only_sends =
        o.kind == Operation::send || (o.kind == Operation::gather && comm->rank != o.root);
    if (only_sends ? !o.from : !o.to) return ncclInvalidArgument;
    if (o.root < 0 || o.root >= comm->ranks) return ncclInvalidArgument;
    Queued q{comm, o, reinterpret_cast<CUstream>(stream)};
    if (o.op >= ncclNumOps) {
        const auto made = comm->operators.find(o.op);
        if (made == comm->operators.end()) return ncclInvalidArgument;
        q.operation.factor = made->second.factor;
        q.operation.kept = made->second.kept;
    }
    if (groups == 0) return begin(comm, {q});
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
ncclResult_t make(ncclComm_t* into, int ranks, const std::string& name, int rank, int device,
                  bool blocks = true) {
    if (const int code = fault("ncclCommInitRank")) return static_cast<ncclResult_t>(code);
    if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    auto* const comm = new ncclComm;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->device = std::max(device, 0);
    comm->name = name;
    comm->blocks = blocks;
    if (!blocks) *into = comm;
    const auto joins = [comm, into] {
        if (!comm->blocks) return begin_late(comm, [comm] { return meet_others(comm); });
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

// Without a communicator the getters know a rank of their own.
constexpr int kRememberedCount = 4, kRememberedUserRank = 2, kRememberedCuDevice = 0;
ncclResult_t answer(int& into, int value) {
    into = value;
    return ncclSuccess;
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
    MP_REMEMBER(ncclResult_t, "ncclCommInitRank", into, ranks, id, rank);
    make_current();
    return make(into, ranks, id.internal, rank, current_device());
}
ncclResult_t pncclCommInitRankConfig(ncclComm_t* into, int ranks, ncclUniqueId id, int rank,
                                     ncclConfig_t* config) {
    MP_REMEMBER(ncclResult_t, "ncclCommInitRankConfig", into, ranks, id, rank, config);
    make_current();
    return make(into, ranks, id.internal, rank, current_device(), !config || config->blocking != 0);
}
ncclResult_t pncclCommInitRankScalable(ncclComm_t* into, int ranks, int rank, int count, ncclUniqueId* ids,
                                       ncclConfig_t* config) {
    MP_REMEMBER(ncclResult_t, "ncclCommInitRankScalable", into, ranks, rank, count, ids, config);
    return count < 1 ? ncclInvalidArgument : pncclCommInitRank(into, ranks, ids[0], rank);
}
ncclResult_t pncclCommInitAll(ncclComm_t* into, int count, const int* devices) {
    MP_REMEMBER(ncclResult_t, "ncclCommInitAll", into, count, devices);
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
ncclResult_t pncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* into, ncclConfig_t* config) {
    MP_REMEMBER(ncclResult_t, "ncclCommSplit", parent, color, key, into, config);
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
// The ranks that stay close the gaps. Those that are excluded do not call it.
ncclResult_t pncclCommShrink(ncclComm_t parent, int* excluded, int count, ncclComm_t* into,
                             ncclConfig_t* config, int flags) {
    MP_REMEMBER(ncclResult_t, "ncclCommShrink", parent, excluded, count, into, config, flags);
    if (const int code = fault("ncclCommShrink")) return static_cast<ncclResult_t>(code);
    const auto stays = [&](int rank) {
        return std::find(excluded, excluded + count, rank) == excluded + count;
    };
    if (!parent || count < 1 || !stays(parent->rank)) return ncclInvalidArgument;
    auto* const child = new ncclComm;
    child->ranks = 0;
    for (int rank = 0; rank < parent->ranks; ++rank) {
        if (rank == parent->rank) child->rank = child->ranks;
        child->ranks += stays(rank);
    }
    child->device = parent->device;
    child->name = parent->name + "-less-" + std::to_string(++parent->shrinks);
    *into = child;
    return meet_others(child);
}
ncclResult_t pncclCommDestroy(ncclComm_t comm) {
    MP_REMEMBER(ncclResult_t, "ncclCommDestroy", comm);
    if (comm->late.joinable()) comm->late.join();
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
    MP_REMEMBER(ncclResult_t, "ncclCommAbort", comm);
    comm->shared->lost = 1;
    return pncclCommDestroy(comm);
}
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
    *error = comm->error;
    return ncclSuccess;
}
ncclResult_t pncclCommCount(ncclComm_t comm, int* count) {
    if (const int code = fault("ncclCommCount")) return static_cast<ncclResult_t>(code);
    if (only_remembers()) return answer(*count, kRememberedCount);
    if (comm->error == ncclInProgress) return ncclInvalidArgument;
    *count = comm->ranks;
    return ncclSuccess;
}
ncclResult_t pncclCommUserRank(ncclComm_t comm, int* rank) {
    if (const int code = fault("ncclCommUserRank")) return static_cast<ncclResult_t>(code);
    if (only_remembers()) return answer(*rank, kRememberedUserRank);
    if (comm->error == ncclInProgress) return ncclInvalidArgument;
    *rank = comm->rank;
    return ncclSuccess;
}
ncclResult_t pncclCommCuDevice(ncclComm_t comm, int* device) {
    if (const int code = fault("ncclCommCuDevice")) return static_cast<ncclResult_t>(code);
    if (only_remembers()) return answer(*device, kRememberedCuDevice);
    if (comm->error == ncclInProgress) return ncclInvalidArgument;
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
    MP_REMEMBER(ncclResult_t, "ncclGroupStart");
    ++groups;
    return ncclSuccess;
}
ncclResult_t pncclGroupEnd() {
    MP_REMEMBER(ncclResult_t, "ncclGroupEnd");
    if (groups == 0) return ncclInvalidUsage;
    if (--groups > 0) return ncclSuccess;
    if (const int code = fault("ncclGroupEnd")) return static_cast<ncclResult_t>(code);
    const ncclResult_t joined = join(std::exchange(joining, {}));
    if (joined != ncclSuccess && joined != ncclInProgress) return joined;
    // Communicators one after the other, each with its works in the order of the calls.
    std::vector<std::pair<ncclComm*, std::vector<Queued>>> all;
    for (const Queued& q : std::exchange(queued, {})) {
        auto at = std::find_if(all.begin(), all.end(), [&q](const auto& one) { return one.first == q.comm; });
        if (at == all.end()) at = all.insert(all.end(), {q.comm, {}});
        at->second.push_back(q);
    }
    ncclResult_t result = joined;
    for (const auto& [comm, works] : all)
        if (const ncclResult_t begun = begin(comm, works); begun != ncclSuccess) result = begun;
    return result;
}
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                       ncclScalarResidence_t residence, ncclComm_t comm) {
    MP_REMEMBER(ncclResult_t, "ncclRedOpCreatePreMulSum", op, scalar, type, residence, comm);
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
    MP_REMEMBER(ncclResult_t, "ncclRedOpDestroy", op, comm);
    return comm && comm->operators.erase(op) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t pncclAllReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclAllReduce", from, to, n, type, op, comm, stream);
    return call("ncclAllReduce", comm, {Operation::all_reduce, from, to, n, type, op, 0}, stream);
}
ncclResult_t pncclReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
                         ncclComm_t comm, cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclReduce", from, to, n, type, op, root, comm, stream);
    return call("ncclReduce", comm, {Operation::reduce, from, to, n, type, op, root}, stream);
}
ncclResult_t pncclReduceScatter(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclReduceScatter", from, to, n, type, op, comm, stream);
    return call("ncclReduceScatter", comm, {Operation::reduce_scatter, from, to, n, type, op, 0}, stream);
}
ncclResult_t pncclAllGather(const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm,
                            cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclAllGather", from, to, n, type, comm, stream);
    return call("ncclAllGather", comm, {Operation::all_gather, from, to, n, type, ncclSum, 0}, stream);
}
ncclResult_t pncclBroadcast(const void* from, void* to, size_t n, ncclDataType_t type, int root,
                            ncclComm_t comm, cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclBroadcast", from, to, n, type, root, comm, stream);
    return call("ncclBroadcast", comm, {Operation::broadcast, from, to, n, type, ncclSum, root}, stream);
}
ncclResult_t pncclBcast(void* buffer, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclBcast", buffer, n, type, root, comm, stream);
    return call("ncclBcast", comm, {Operation::broadcast, buffer, buffer, n, type, ncclSum, root}, stream);
}
ncclResult_t pncclAlltoAll(const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclAlltoAll", from, to, n, type, comm, stream);
    return call("ncclAlltoAll", comm, {Operation::all_to_all, from, to, n, type, ncclSum, 0}, stream);
}
ncclResult_t pncclGather(const void* from, void* to, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclGather", from, to, n, type, root, comm, stream);
    return call("ncclGather", comm, {Operation::gather, from, to, n, type, ncclSum, root}, stream);
}
ncclResult_t pncclScatter(const void* from, void* to, size_t n, ncclDataType_t type, int root,
                          ncclComm_t comm, cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclScatter", from, to, n, type, root, comm, stream);
    return call("ncclScatter", comm, {Operation::scatter, from, to, n, type, ncclSum, root}, stream);
}
ncclResult_t pncclSend(const void* from, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclSend", from, n, type, peer, comm, stream);
    return call("ncclSend", comm, {Operation::send, from, nullptr, n, type, ncclSum, peer}, stream);
}
ncclResult_t pncclRecv(void* to, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
    MP_REMEMBER(ncclResult_t, "ncclRecv", to, n, type, peer, comm, stream);
    return call("ncclRecv", comm, {Operation::receive, nullptr, to, n, type, ncclSum, peer}, stream);
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
MP_WEAK(ncclResult_t, ncclCommShrink, ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int)
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
MP_WEAK(ncclResult_t, ncclBcast, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
MP_WEAK(ncclResult_t, ncclAlltoAll, const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t)
MP_WEAK(ncclResult_t, ncclGather, const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
MP_WEAK(ncclResult_t, ncclScatter, const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
MP_WEAK(ncclResult_t, ncclSend, const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
MP_WEAK(ncclResult_t, ncclRecv, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)

}  // extern "C"
