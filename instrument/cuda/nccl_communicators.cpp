// How communicators of NCCL are made and end. A process that drives several devices makes one per device.

#include <unistd.h>

#include <ctime>
#include <vector>

#include "instrument/cuda/communicators.hpp"
#include "instrument/cuda/nccl_hooks.hpp"

namespace mp::raw {
namespace {

bool is_made(int status) { return status == 0 || status == abi::kNcclInProgress; }

// In a group NCCL may write the handle at its end.
void note(void* const* comm, std::uint64_t number) {
    if (is_in_group())
        note_at_group_end(comm, number);
    else if (*comm)
        note_communicator(*comm, number);
}

// A rank joins the others that have the same ids.
template <class Call>
int join(void** comm, const abi::NcclUniqueId* ids, int count, int rank, int ranks,
         const Call& call) noexcept {
    std::uint64_t number = 0;
    if (comm && ids && count > 0)
        number = join_communicator(ids, sizeof *ids * static_cast<std::uint64_t>(count), rank, ranks);
    const Inside inside;
    const int status = call();
    if (number != 0 && is_made(status)) guarded(Source::nccl, [&] { note(comm, number); });
    return status;
}

template <class Call>
int part(void* parent, int which, void** comm, const Call& call) noexcept {
    const std::uint64_t number = join_part(parent, which);
    const Inside inside;
    const int status = call();
    if (comm && is_made(status)) guarded(Source::nccl, [&] { note(comm, number); });
    return status;
}

// All ranks are in this process, so it makes the id.
template <class Call>
int join_all(void** comms, int count, const int* devices, const Call& call) noexcept {
    static std::atomic<std::uint64_t> made{0};
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const std::uint64_t id[] = {static_cast<std::uint64_t>(::getpid()),
                                static_cast<std::uint64_t>(now.tv_sec),
                                static_cast<std::uint64_t>(now.tv_nsec), ++made};
    std::uint64_t number = 0;
    for (int rank = 0; rank < count; ++rank)
        number = join_communicator(id, sizeof id, rank, count, devices ? devices[rank] : rank);
    const Inside inside;
    const int status = call();
    for (int rank = 0; comms && rank < count && is_made(status); ++rank)
        guarded(Source::nccl, [&] { note(comms + rank, number); });
    return status;
}

}  // namespace
}  // namespace mp::raw

namespace abi = mp::raw::abi;

MP_HOOK int ncclCommInitRank(void** comm, int ranks, abi::NcclUniqueId id, int rank) {
    MP_REAL(ncclCommInitRank);
    return mp::raw::join(comm, &id, 1, rank, ranks, [&] { return next(comm, ranks, id, rank); });
}

MP_HOOK int ncclCommInitRankConfig(void** comm, int ranks, abi::NcclUniqueId id, int rank, void* config) {
    MP_REAL(ncclCommInitRankConfig);
    return mp::raw::join(comm, &id, 1, rank, ranks, [&] { return next(comm, ranks, id, rank, config); });
}

// Their number and their order are the same for every rank.
MP_HOOK int ncclCommInitRankScalable(void** comm, int ranks, int rank, int count, abi::NcclUniqueId* ids,
                                     void* config) {
    MP_REAL(ncclCommInitRankScalable);
    return mp::raw::join(comm, ids, count, rank, ranks,
                         [&] { return next(comm, ranks, rank, count, ids, config); });
}

MP_HOOK int ncclCommInitAll(void** comms, int count, const int* devices) {
    MP_REAL(ncclCommInitAll);
    return mp::raw::join_all(comms, count, devices, [&] { return next(comms, count, devices); });
}

MP_HOOK int ncclCommSplit(void* parent, int color, int key, void** comm, void* config) {
    MP_REAL(ncclCommSplit);
    return mp::raw::part(parent, color, comm, [&] { return next(parent, color, key, comm, config); });
}

// All ranks that stay are one part.
MP_HOOK int ncclCommShrink(void* parent, int* excluded, int count, void** comm, void* config, int flags) {
    MP_REAL(ncclCommShrink);
    return mp::raw::part(parent, mp::raw::kRemaining, comm,
                         [&] { return next(parent, excluded, count, comm, config, flags); });
}

MP_HOOK int ncclCommDestroy(void* comm) {
    MP_REAL(ncclCommDestroy);
    mp::raw::forget_communicator(comm);
    const mp::raw::Inside inside;
    return next(comm);
}

MP_HOOK int ncclCommAbort(void* comm) {
    MP_REAL(ncclCommAbort);
    mp::raw::forget_communicator(comm);
    const mp::raw::Inside inside;
    return next(comm);
}
