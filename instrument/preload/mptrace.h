/* What a C++ program may tell mp-trace about itself. Nothing to link: the symbols are weak, and absent when
 * the program does not run under `mp-trace --`, so test them before the call.
 *
 *     if (mptrace_layer_push) mptrace_layer_push("blocks.2.fc2");
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

#ifdef __cplusplus
}
#endif

#endif
