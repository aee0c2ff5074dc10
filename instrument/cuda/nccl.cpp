// NCCL. Inside of a group nothing is launched until its outermost end, so its collectives are measured around that.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "instrument/cuda/communicators.hpp"
#include "instrument/cuda/dtypes.hpp"
#include "instrument/cuda/nccl_hooks.hpp"
#include "instrument/cuda/nccl_operators.hpp"
#include "instrument/cuda/nccl_profiler.hpp"

namespace mp::raw {
namespace {

constexpr const char* kLibrary = "libnccl.so";
constexpr int kOps = 5;
constexpr const char* kReductions[kOps] = {"sum", "prod", "max", "min", "avg"};

// The open groups of a thread, and the collectives that wait for the outermost end. Never freed.
struct Group {
    int depth = 0;
    std::vector<Collective> waiting;
    std::vector<std::pair<void* const*, std::uint64_t>> made;  // handles of communicators, and their numbers
};
thread_local Group* t_group = nullptr;

Group& group() {
    if (!t_group) t_group = new Group;
    return *t_group;
}

int query(Real<int (*)(void*, int*)>& function, void* comm) {
    int value = -1;
    const auto get = function.get(nullptr);
    return get && comm && get(comm, &value) == 0 ? value : -1;
}

int ranks_of(void* comm) {
    static Real<int (*)(void*, int*)> get{"ncclCommCount", kLibrary};
    return query(get, comm);
}

int rank_of(void* comm) {
    static Real<int (*)(void*, int*)> get{"ncclCommUserRank", kLibrary};
    return query(get, comm);
}

int device_of(void* comm) {
    static Real<int (*)(void*, int*)> get{"ncclCommCuDevice", kLibrary};
    return query(get, comm);
}

// Operators of the program's own are made of a scalar and a sum.
constexpr int kNothing = -1;  // what is moved is not reduced
const char* reduction_of(int op) {
    return op == kNothing ? "" : op >= 0 && op < kOps ? kReductions[op] : "premul_sum";
}

std::uint64_t width_of_nccl(int type) {
    static constexpr std::uint64_t kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < 12 ? kWidths[type] : 0;
}

// What a rank sends or receives, in counts of the call: nothing, one, or one for each rank; or the root alone does.
enum class Amount : unsigned char { nothing, one, each, one_of_root, each_of_root };

struct Request {
    const char* op;
    int reduction;  // NCCL's operator, or kNothing
    const void* send;
    const void* receive;
    Amount sent, received;
    std::uint64_t count;
    int type;
    void* comm;
    abi::Stream stream;
    int root = -1;
    bool is_of_all = true;  // false: a call between two ranks
};

std::uint64_t elements_of(Amount amount, const Request& q, int ranks, int rank) {
    const bool is_of_root = amount == Amount::one_of_root || amount == Amount::each_of_root;
    if (amount == Amount::nothing || (is_of_root && rank != q.root)) return 0;
    const bool is_one = amount == Amount::one || amount == Amount::one_of_root;
    return is_one ? q.count : q.count * static_cast<std::uint64_t>(std::max(ranks, 1));
}

Collective collective_of(const Request& q) {
    Collective c;
    c.op = q.op;
    c.reduction = reduction_of(q.reduction);
    if (q.reduction >= kOps) c.factor = factor_of_operator(q.comm, q.reduction);
    c.dtype = dtype_of_nccl(q.type);
    c.send = q.send;
    c.receive = q.receive;
    c.ranks = ranks_of(q.comm);
    c.rank = rank_of(q.comm);
    c.sent = elements_of(q.sent, q, c.ranks, c.rank);
    c.received = elements_of(q.received, q, c.ranks, c.rank);
    c.width = width_of_nccl(q.type);
    c.stream = q.stream;
    c.device = device_of(q.comm);
    const Numbered number = next_call(q.comm, c.rank, c.device, q.is_of_all);
    c.communicator = number.communicator;
    c.call = number.call;
    return c;
}

// What NCCL told of these calls while it made them.
void note_algorithms(Run& run, std::span<const Collective> calls) {
    for (const Chosen& chosen : take_chosen())
        for (const Collective& c : calls)
            if (c.send == chosen.send && c.receive == chosen.receive) run.chose(c, chosen.algorithm);
}

// The launch may come after the call, so there is no moment after it at which the result is there.
void note_late(Run& run, std::span<const Collective> calls) {
    const auto reduced = std::ranges::count_if(calls, [](const Collective& c) { return *c.reduction != 0; });
    if (reduced > 0)
        run.note(trace::NoteKind::not_observed,
                 "reductions of communicators that do not block, whose results were not measured",
                 static_cast<std::uint64_t>(reduced));
}

template <class Call>
int collective(const Request& q, const Call& call) noexcept {
    Run* const r = Inside::any() ? nullptr : run();
    if (!r || !is_armed(Source::nccl)) return call();
    const Inside inside;
    Run::Ticket ticket;
    Collective c;
    bool grouped = false;
    calls_are_seen();
    guarded(Source::nccl, [&] {
        c = collective_of(q);
        const OwnRank own = own_rank();
        if (own.rank >= 0) r->learn_rank(own.rank, own.ranks);
        grouped = group().depth > 0;
        if (!grouped) ticket = r->before(c);
    });
    const int status = call();
    guarded(Source::nccl, [&] {
        if (!grouped) {
            note_algorithms(*r, {&c, 1});
            r->after(ticket, c, status == 0);
            if (status == abi::kNcclInProgress) note_late(*r, {&c, 1});
        } else if (status == 0 || status == abi::kNcclInProgress) {
            group().waiting.push_back(c);
        }
    });
    return status;
}

// The end of the outermost group launches everything. A communicator that does not block may launch later and returns
// ncclInProgress; its results are not measured.
template <class Call>
int end_group(const Call& call) noexcept {
    Run* const r = Inside::any() ? nullptr : run();
    if (!r || !is_armed(Source::nccl)) return call();
    const Inside inside;
    std::vector<Collective> waiting;
    std::vector<Run::Ticket> tickets;
    std::vector<std::pair<void* const*, std::uint64_t>> made;
    guarded(Source::nccl, [&] {
        Group& g = group();
        if (g.depth == 0) return;
        --g.depth;
        if (g.depth == 0) {
            waiting.swap(g.waiting);
            made.swap(g.made);
        }
        for (const Collective& c : waiting) tickets.push_back(r->before(c));
    });
    const int status = call();
    guarded(Source::nccl, [&] {
        for (const auto& [comm, number] : made)
            if (*comm) note_communicator(*comm, number);
        note_algorithms(*r, waiting);
        for (std::size_t i = 0; i < tickets.size(); ++i) r->after(tickets[i], waiting[i], status == 0);
        if (status == abi::kNcclInProgress) note_late(*r, waiting);
    });
    return status;
}

}  // namespace

bool is_in_group() { return group().depth > 0; }

void note_at_group_end(void* const* comm, std::uint64_t number) { group().made.emplace_back(comm, number); }

}  // namespace mp::raw

namespace abi = mp::raw::abi;
using mp::raw::Amount;
using mp::raw::collective;
using mp::raw::kNothing;
using mp::raw::Request;
using std::size_t;

MP_HOOK int ncclAllReduce(const void* send, void* receive, size_t count, int type, int op, void* comm,
                          abi::Stream stream) {
    MP_REAL(ncclAllReduce);
    const Request q{"all_reduce", op, send, receive, Amount::one, Amount::one, count, type, comm, stream};
    return collective(q, [&] { return next(send, receive, count, type, op, comm, stream); });
}

MP_HOOK int ncclReduceScatter(const void* send, void* receive, size_t count, int type, int op, void* comm,
                              abi::Stream stream) {
    MP_REAL(ncclReduceScatter);
    const Request q{"reduce_scatter", op,    send, receive, Amount::each,
                    Amount::one,      count, type, comm,    stream};
    return collective(q, [&] { return next(send, receive, count, type, op, comm, stream); });
}

MP_HOOK int ncclReduce(const void* send, void* receive, size_t count, int type, int op, int root, void* comm,
                       abi::Stream stream) {
    MP_REAL(ncclReduce);
    const Request q{"reduce", op,   send, receive, Amount::one, Amount::one_of_root,
                    count,    type, comm, stream,  root};
    return collective(q, [&] { return next(send, receive, count, type, op, root, comm, stream); });
}

MP_HOOK int ncclAllGather(const void* send, void* receive, size_t count, int type, void* comm,
                          abi::Stream stream) {
    MP_REAL(ncclAllGather);
    const Request q{"all_gather", kNothing, send, receive, Amount::one,
                    Amount::each, count,    type, comm,    stream};
    return collective(q, [&] { return next(send, receive, count, type, comm, stream); });
}

MP_HOOK int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, void* comm,
                          abi::Stream stream) {
    MP_REAL(ncclBroadcast);
    const Request q{"broadcast", kNothing, send,   receive, Amount::one_of_root, Amount::one, count,
                    type,        comm,     stream, root};
    return collective(q, [&] { return next(send, receive, count, type, root, comm, stream); });
}

MP_HOOK int ncclBcast(void* buffer, size_t count, int type, int root, void* comm, abi::Stream stream) {
    MP_REAL(ncclBcast);
    const Request q{"broadcast", kNothing, buffer, buffer, Amount::one_of_root, Amount::one, count,
                    type,        comm,     stream, root};
    return collective(q, [&] { return next(buffer, count, type, root, comm, stream); });
}

// Since NCCL 2.28.
MP_HOOK int ncclAlltoAll(const void* send, void* receive, size_t count, int type, void* comm,
                         abi::Stream stream) {
    MP_REAL(ncclAlltoAll);
    const Request q{"all_to_all", kNothing, send, receive, Amount::each,
                    Amount::each, count,    type, comm,    stream};
    return collective(q, [&] { return next(send, receive, count, type, comm, stream); });
}

MP_HOOK int ncclGather(const void* send, void* receive, size_t count, int type, int root, void* comm,
                       abi::Stream stream) {
    MP_REAL(ncclGather);
    const Request q{"gather", kNothing, send, receive, Amount::one, Amount::each_of_root,
                    count,    type,     comm, stream,  root};
    return collective(q, [&] { return next(send, receive, count, type, root, comm, stream); });
}

MP_HOOK int ncclScatter(const void* send, void* receive, size_t count, int type, int root, void* comm,
                        abi::Stream stream) {
    MP_REAL(ncclScatter);
    const Request q{"scatter", kNothing, send,   receive, Amount::each_of_root, Amount::one, count,
                    type,      comm,     stream, root};
    return collective(q, [&] { return next(send, receive, count, type, root, comm, stream); });
}

MP_HOOK int ncclSend(const void* send, size_t count, int type, int peer, void* comm, abi::Stream stream) {
    MP_REAL(ncclSend);
    const Request q{"send", kNothing, send, nullptr, Amount::one, Amount::nothing,
                    count,  type,     comm, stream,  -1,          false};
    return collective(q, [&] { return next(send, count, type, peer, comm, stream); });
}

MP_HOOK int ncclRecv(void* receive, size_t count, int type, int peer, void* comm, abi::Stream stream) {
    MP_REAL(ncclRecv);
    const Request q{"recv", kNothing, nullptr, receive, Amount::nothing, Amount::one, count, type,
                    comm,   stream,   -1,      false};
    return collective(q, [&] { return next(receive, count, type, peer, comm, stream); });
}

MP_HOOK int ncclGroupStart() {
    MP_REAL(ncclGroupStart);
    const int status = next();
    // Groups that NCCL opens inside of its own calls are parts of those.
    if (status == 0 && !mp::raw::Inside::any() && mp::raw::run())
        mp::raw::guarded(mp::raw::Source::nccl, [] { ++mp::raw::group().depth; });
    return status;
}

MP_HOOK int ncclGroupEnd() {
    MP_REAL(ncclGroupEnd);
    return mp::raw::end_group([&] { return next(); });
}
