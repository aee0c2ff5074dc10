/* What a C, C++ or CUDA program may tell mp-trace about itself. Nothing to link: the symbols are weak, and absent when
 * the program does not run under `mp-trace --`, so test them before the call.
 *
 *     if (mptrace_layer_push) mptrace_layer_push("blocks.2.fc2");
 *
 * In programs without torch these calls and NVTX ranges may be mixed.
 *
 * Calls must come from the thread that runs the layer. None of them throws, waits or changes a result. */
#ifndef MPTRACE_H
#define MPTRACE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The layer that runs from here to the matching pop, by its full name. Backward ops are found through it. */
__attribute__((weak)) void mptrace_layer_push(const char* name);
__attribute__((weak)) void mptrace_layer_pop(void);

/* The loss of the next backward(), a pointer to an at::Tensor of one element, where that is not its root:
 * before a loss scale, or the mean of what is summed. */
__attribute__((weak)) void mptrace_loss(const void* tensor);

/* A step of the optimizer is over. From the first call on, steps are counted by these calls alone.
 * loss_scale: the one in force; negative when there is none. */
__attribute__((weak)) void mptrace_step(int skipped, double loss_scale);

/* The formats and the roles of a tensor. */
enum {
    MPTRACE_FP64 = 1,
    MPTRACE_FP32 = 2,
    MPTRACE_FP16 = 4,
    MPTRACE_BF16 = 5,
    MPTRACE_E4M3 = 6,
    MPTRACE_E5M2 = 7
};
enum {
    MPTRACE_PARAMETER = 0,
    MPTRACE_GRADIENT = 1,
    MPTRACE_BUFFER = 2,
    MPTRACE_OPTIMIZER_STATE = 3,
    MPTRACE_MASTER = 4 /* the fp32 weights of which 16-bit parameters are copies */
};

/* Contiguous memory on the GPU that holds a tensor of the model until the program ends, or until the next call with
 * the same data. For programs without torch; with it, mp-trace knows the tensors. */
__attribute__((weak)) void mptrace_tensor(const void* data, int dtype, const long long* sizes, int dims,
                                          int role, const char* name);

#ifdef __cplusplus
}
#endif

#endif
