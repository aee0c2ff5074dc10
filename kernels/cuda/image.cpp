#include "kernels/cuda/image.hpp"

namespace mp::cuda {

#if defined(MP_CUDA_FATBIN)

asm(R"(.section .rodata
       .balign 64
       .local mp_cuda_image
mp_cuda_image:
       .incbin ")" MP_CUDA_FATBIN R"("
       .balign 8
       .previous
)");

extern "C" __attribute__((visibility("hidden"))) const unsigned char mp_cuda_image[];

bool has_image() noexcept { return true; }
const void* image() noexcept { return mp_cuda_image; }

#else

bool has_image() noexcept { return false; }
const void* image() noexcept { return nullptr; }

#endif

}  // namespace mp::cuda
