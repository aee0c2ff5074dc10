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

}  // namespace mp::twin
