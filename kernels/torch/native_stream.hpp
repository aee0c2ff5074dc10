#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include "kernels/cuda/driver.hpp"

namespace mp {

// The driver's handle of a stream, from c10::cuda::CUDAStream::stream(). Torch's CUDA headers need the toolkit, so the
// method is looked up in the library that has the guard. A CUDAStream has one field, its c10::Stream (in torch 1.13 to
// 2.15), and the method is not virtual.
inline cuda::Stream native_stream_of_c10_cuda(const c10::impl::DeviceGuardImplInterface& guard,
                                              const c10::Stream& stream) {
    using Handle = cuda::Stream (*)(const c10::Stream*);
    static const auto handle = [&]() -> Handle {
        Dl_info library{};
        const void* const functions_of_guard = *reinterpret_cast<void* const*>(&guard);
        if (!dladdr(functions_of_guard, &library)) return nullptr;
        void* const loaded = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        return loaded ? reinterpret_cast<Handle>(dlsym(loaded, "_ZNK3c104cuda10CUDAStream6streamEv"))
                      : nullptr;
    }();
    TORCH_CHECK(handle, "mp: this torch does not tell the driver's handle of a stream");
    return handle(&stream);
}

// The same for each device; torch tells it from 2.11 on. Throws where the handle is not known: a null handle is a
// stream.
template <typename Guard = c10::impl::DeviceGuardImplInterface>
cuda::Stream native_stream(const Guard& guard, const c10::Stream& stream) {
    if constexpr (requires { guard.getStreamNativeHandle(stream); })
        return static_cast<cuda::Stream>(guard.getStreamNativeHandle(stream));
    else
        return native_stream_of_c10_cuda(guard, stream);
}

}  // namespace mp
