// Ranks of one communicator, each a process, and what they move and reduce.
//
//   ranks pipeline   each rank sends to the next one, so that the one in the middle makes more calls; then they reduce
//   ranks moves      every call that moves or reduces, with arguments that differ; then on a shrunk communicator
//   ranks late       a communicator that does not block
//
// Prints what each rank received, in the order of the ranks.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/instrument/cuda/device_tensor.hpp"

namespace {

constexpr int kRanks = 3;

void check(ncclResult_t result, const char* what) {
    if (result == ncclSuccess) return;
    std::fprintf(stderr, "%s: error %d\n", what, int{result});
    std::exit(1);
}

struct Range {
    explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
    ~Range() { nvtxRangePop(); }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
};

// Elements in device memory that each rank has others of.
template <class T>
struct Tensor : DeviceTensor<T> {
    Tensor(std::size_t count, int rank) : DeviceTensor<T>(values(count, rank)) {}

private:
    static std::vector<T> values(std::size_t count, int rank) {
        std::vector<T> out(count);
        for (std::size_t i = 0; i < count; ++i)
            out[i] = T(static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 5) % 23) * 0.125f - 1);
        return out;
    }
};

struct Rank {
    int rank;
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;

    void wait() const {
        ncclResult_t state = ncclInProgress;
        while (state == ncclInProgress) check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
        check(state, "a late call");
        cudaStreamSynchronize(stream);
    }
};

void pipeline(const Rank& r) {
    Tensor<__half> activations(900, r.rank);
    Tensor<__nv_bfloat16> gradients(1 << 15, r.rank);
    for (int step = 0; step < 5; ++step) {
        const Range range("Train step " + std::to_string(step));
        if (r.rank > 0)
            check(ncclRecv(activations, 900, ncclFloat16, r.rank - 1, r.comm, r.stream), "ncclRecv");
        if (r.rank + 1 < kRanks)
            check(ncclSend(activations, 900, ncclFloat16, r.rank + 1, r.comm, r.stream), "ncclSend");
        for (int i = 0; i < 2; ++i)
            check(ncclAllReduce(gradients, gradients, 1 << 15, ncclBfloat16, ncclSum, r.comm, r.stream),
                  "ncclAllReduce");
    }
    r.wait();
    activations.print("activations");
    gradients.print("gradients");
}

// No two of these have the same op, type, amount and root.
void move(const Rank& r) {
    Tensor<__nv_bfloat16> reduced(300, r.rank), most(300, 9), gathered(130 * kRanks, 9), own(130, r.rank);
    Tensor<__half> sent(500, r.rank), told(500, 9), message(900, r.rank), all(170 * kRanks, r.rank),
        part(170, 9);
    Tensor<float> weights(700, r.rank), from(110 * kRanks, r.rank), to(110 * kRanks, 9);
    check(ncclReduce(reduced, most, 300, ncclBfloat16, ncclMax, 1, r.comm, r.stream), "ncclReduce");
    check(ncclBroadcast(sent, told, 500, ncclFloat16, 2, r.comm, r.stream), "ncclBroadcast");
    check(ncclBcast(weights, 700, ncclFloat32, 1, r.comm, r.stream), "ncclBcast");
    if (r.rank == 0) check(ncclSend(message, 900, ncclFloat16, 2, r.comm, r.stream), "ncclSend");
    if (r.rank == 2) check(ncclRecv(message, 900, ncclFloat16, 0, r.comm, r.stream), "ncclRecv");
    check(ncclAlltoAll(from, to, 110, ncclFloat32, r.comm, r.stream), "ncclAlltoAll");
    check(ncclGather(own, gathered, 130, ncclBfloat16, 2, r.comm, r.stream), "ncclGather");
    check(ncclScatter(all, part, 170, ncclFloat16, 1, r.comm, r.stream), "ncclScatter");
    r.wait();
    most.print("reduce");
    told.print("broadcast");
    weights.print("bcast");
    message.print("message");
    to.print("all_to_all");
    gathered.print("gather");
    part.print("scatter");
}

void reduce_without_one(const Rank& r) {
    int excluded[] = {1};
    if (r.rank == excluded[0]) return;
    Rank of_two{r.rank, nullptr, r.stream};
    check(ncclCommShrink(r.comm, excluded, 1, &of_two.comm, nullptr, NCCL_SHRINK_DEFAULT), "ncclCommShrink");
    Tensor<float> data(1 << 15, r.rank);
    for (int step = 0; step < 5; ++step) {
        const Range range("Train step " + std::to_string(step + 1));
        for (int i = 0; i < 2; ++i)
            check(ncclAllReduce(data, data, 1 << 15, ncclFloat32, ncclSum, of_two.comm, r.stream),
                  "ncclAllReduce");
    }
    of_two.wait();
    data.print("shrunk");
    check(ncclCommDestroy(of_two.comm), "ncclCommDestroy");
}

// All ranks split the communicator after one of them was left out of a smaller one.
void reduce_in_a_part(const Rank& r) {
    Rank part{r.rank, nullptr, r.stream};
    check(ncclCommSplit(r.comm, 0, r.rank, &part.comm, nullptr), "ncclCommSplit");
    Tensor<__half> data(1 << 10, r.rank);
    {
        const Range range("Train step 6");
        check(ncclAllReduce(data, data, 1 << 10, ncclFloat16, ncclSum, part.comm, r.stream), "ncclAllReduce");
    }
    part.wait();
    data.print("part");
    check(ncclCommDestroy(part.comm), "ncclCommDestroy");
}

void moves(const Rank& r) {
    {
        const Range range("Train step 0");
        move(r);
    }
    reduce_without_one(r);
    reduce_in_a_part(r);
}

void expect_in_progress(ncclResult_t result, const char* what) {
    if (result != ncclInProgress) check(result == ncclSuccess ? ncclInternalError : result, what);
}

// Each call returns before its work is launched.
void late(const Rank& r) {
    Tensor<__nv_bfloat16> data(1 << 15, r.rank);
    Tensor<float> losses(64, r.rank);
    for (int step = 0; step < 3; ++step) {
        const Range range("Train step " + std::to_string(step));
        expect_in_progress(ncclAllReduce(data, data, 1 << 15, ncclBfloat16, ncclSum, r.comm, r.stream),
                           "ncclAllReduce");
        r.wait();
        check(ncclGroupStart(), "ncclGroupStart");
        check(ncclAllReduce(losses, losses, 64, ncclFloat32, ncclSum, r.comm, r.stream), "ncclAllReduce");
        check(ncclReduceScatter(data, data, 1 << 13, ncclBfloat16, ncclSum, r.comm, r.stream),
              "ncclReduceScatter");
        expect_in_progress(ncclGroupEnd(), "ncclGroupEnd");
        r.wait();
    }
    data.print("data");
    losses.print("losses");
}

void run_rank(const std::string& how, Rank r, const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = how != "late";
    cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking);
    const ncclResult_t made = ncclCommInitRankConfig(&r.comm, kRanks, id, r.rank, &config);
    how == "late" ? expect_in_progress(made, "ncclCommInitRankConfig")
                  : check(made, "ncclCommInitRankConfig");
    r.wait();
    how == "pipeline" ? pipeline(r) : how == "moves" ? moves(r) : late(r);
    check(ncclCommDestroy(r.comm), "ncclCommDestroy");
    std::fflush(stdout);
}

std::string all_of(int file) {
    std::string text;
    char part[4096];
    for (ssize_t n = 0; (n = read(file, part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(n));
    return text;
}

}  // namespace

int main(int, char** words) {
    ncclUniqueId id;
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    int outputs[kRanks], failures = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
        int ends[2];
        if (pipe(ends) != 0) return 1;
        outputs[rank] = ends[0];
        if (fork() == 0) {
            dup2(ends[1], STDOUT_FILENO);
            run_rank(words[1], Rank{rank}, id);
            std::exit(0);
        }
        close(ends[1]);
    }
    for (int rank = 0; rank < kRanks; ++rank) std::printf("rank %d\n%s", rank, all_of(outputs[rank]).c_str());
    for (int status = 0; wait(&status) > 0;) failures += status != 0;
    std::puts(failures == 0 ? "done" : "failed");
}
