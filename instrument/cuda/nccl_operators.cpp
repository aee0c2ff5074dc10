// Operators of NCCL that a program makes: a sum of what each rank sends times a scalar of its own.

#include "instrument/cuda/nccl_operators.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "instrument/cuda/dtypes.hpp"
#include "instrument/cuda/nccl_hooks.hpp"
#include "instrument/cuda/per_process.hpp"
#include "kernels/cuda/product.hpp"

namespace mp::raw {
namespace {

struct Operators {
    std::mutex mutex;
    std::map<std::pair<const void*, int>, double> factors;  // those that are known
};
constinit PerProcess<Operators> g_operators;

// A scalar in device memory is read when the reduction runs, and may be another one each time.
std::optional<double> scalar_of_host(const void* scalar, int type, int residence) {
    const DType dtype = dtype_of_nccl(type);
    const bool is_read =
        dtype == DType::fp64 || dtype == DType::fp32 || dtype == DType::fp16 || dtype == DType::bf16;
    if (residence != abi::kNcclScalarOfHost || !scalar || !is_read) return std::nullopt;
    return cuda::element(dtype, scalar, 0);
}

// NCCL gives the number of an operator again when it was destroyed.
void note_operator(const void* comm, int op, std::optional<double> factor) {
    Operators& all = g_operators.get();
    const std::lock_guard lock(all.mutex);
    all.factors.erase({comm, op});
    if (factor) all.factors.emplace(std::pair(comm, op), *factor);
}

}  // namespace

std::optional<double> factor_of_operator(const void* comm, int op) noexcept {
    Operators& all = g_operators.get();
    const std::lock_guard lock(all.mutex);
    const auto found = all.factors.find({comm, op});
    return found == all.factors.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace mp::raw

namespace abi = mp::raw::abi;

MP_HOOK int ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int residence, void* comm) {
    MP_REAL(ncclRedOpCreatePreMulSum);
    std::optional<double> factor;
    // Before the call: the program may free its scalar at once.
    mp::raw::guarded(mp::raw::Source::nccl,
                     [&] { factor = mp::raw::scalar_of_host(scalar, type, residence); });
    const mp::raw::Inside inside;
    const int status = next(op, scalar, type, residence, comm);
    if (status == 0 && op)
        mp::raw::guarded(mp::raw::Source::nccl, [&] { mp::raw::note_operator(comm, *op, factor); });
    return status;
}

MP_HOOK int ncclRedOpDestroy(int op, void* comm) {
    MP_REAL(ncclRedOpDestroy);
    mp::raw::guarded(mp::raw::Source::nccl, [&] { mp::raw::note_operator(comm, op, std::nullopt); });
    const mp::raw::Inside inside;
    return next(op, comm);
}
