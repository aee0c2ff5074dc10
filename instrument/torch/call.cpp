#include "instrument/torch/call.hpp"

#include "instrument/torch/tensors.hpp"

namespace mp::twin {

bool shares_memory(const Call& call, const at::Tensor& t) {
    bool shared = false;
    for (const IValue& argument : call.real)
        for_each_tensor(argument, [&](const at::Tensor& a) {
            shared |= a.has_storage() && t.has_storage() &&
                      a.storage().unsafeGetStorageImpl() == t.storage().unsafeGetStorageImpl();
        });
    return shared;
}

bool gathers_bytes(const Call& call) {
    if (call.info.rule != Rule::collective || !call.info.moves_bytes || call.info.base != "_allgather_base")
        return false;
    bool found = false;
    for (const IValue& argument : call.real)
        for_each_tensor(argument, [&](const at::Tensor& t) { found |= t.scalar_type() == at::kByte; });
    return found;
}

}  // namespace mp::twin
