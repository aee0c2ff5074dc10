#include "kernels/cuda/outcome.hpp"

namespace mp::cuda {

const char* name_of(Status status) noexcept {
    switch (status) {
        case Status::ok:
            return "ok";
        case Status::no_kernels:
            return "no kernels";
        case Status::no_driver:
            return "no driver";
        case Status::no_context:
            return "no context";
        case Status::refused:
            return "refused by the driver";
        case Status::unsupported:
            return "unsupported tensor";
        case Status::capturing:
            return "stream is capturing";
    }
    return "unknown";
}

}  // namespace mp::cuda
