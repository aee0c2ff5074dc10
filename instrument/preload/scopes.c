// The functions of mptrace.h. They are in this library because the program's references to them are
// resolved when it starts, before an adapter exists. Until the adapter of a libtorch has attached, calls go to
// libmptrace_cuda.so, which has functions of the same names and is the next library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "instrument/preload/mptrace.h"
#include "instrument/preload/preload.h"

#define MP_EXPORT __attribute__((visibility("default")))

static void (*_Atomic g_layer_push)(const char*);
static void (*_Atomic g_layer_pop)(void);
static void (*_Atomic g_loss)(const void*);
static void (*_Atomic g_step)(int, double);
static void (*_Atomic g_tensor)(const void*, int, const long long*, int, int, const char*);

// C has no cast from an object pointer to a function pointer.
#define FORWARD(adapter, name)                                 \
    do {                                                       \
        void* const symbol = dlsym(adapter, "mptrace_" #name); \
        __typeof__(atomic_load(&g_##name)) function = NULL;    \
        memcpy(&function, &symbol, sizeof symbol);             \
        atomic_store(&g_##name, function);                     \
    } while (0)

// The function of libmptrace_cuda.so, or null. Looked up once; a second thread finds the same.
#define NEXT(forward, name)                                          \
    do {                                                             \
        static _Atomic bool looked_up = false;                       \
        if (!forward && mp_is_armed() && !atomic_load(&looked_up)) { \
            void* const symbol = dlsym(RTLD_NEXT, "mptrace_" #name); \
            memcpy(&forward, &symbol, sizeof symbol);                \
            if (forward) atomic_store(&g_##name, forward);           \
            atomic_store(&looked_up, true);                          \
        }                                                            \
    } while (0)

void mp_forward_scopes(void* adapter) {
    FORWARD(adapter, layer_push);
    FORWARD(adapter, layer_pop);
    FORWARD(adapter, loss);
    FORWARD(adapter, step);
    atomic_store(&g_tensor, NULL);  // torch knows its tensors
    // From here on the adapter alone observes this process.
    void (*retire)(void) = NULL;
    void* const symbol = dlsym(RTLD_DEFAULT, "mptrace_cuda_retire");
    memcpy(&retire, &symbol, sizeof symbol);
    if (retire) retire();
}

MP_EXPORT void mptrace_layer_push(const char* name) {
    void (*forward)(const char*) = atomic_load_explicit(&g_layer_push, memory_order_relaxed);
    NEXT(forward, layer_push);
    if (forward) forward(name);
}

MP_EXPORT void mptrace_layer_pop(void) {
    void (*forward)(void) = atomic_load_explicit(&g_layer_pop, memory_order_relaxed);
    NEXT(forward, layer_pop);
    if (forward) forward();
}

MP_EXPORT void mptrace_loss(const void* tensor) {
    void (*const forward)(const void*) = atomic_load_explicit(&g_loss, memory_order_relaxed);
    if (forward) forward(tensor);
}

MP_EXPORT void mptrace_step(int skipped, double loss_scale) {
    void (*forward)(int, double) = atomic_load_explicit(&g_step, memory_order_relaxed);
    NEXT(forward, step);
    if (forward) forward(skipped, loss_scale);
}

MP_EXPORT void mptrace_tensor(const void* data, int dtype, const long long* sizes, int dims, int role,
                              const char* name) {
    void (*forward)(const void*, int, const long long*, int, int, const char*) =
        atomic_load_explicit(&g_tensor, memory_order_relaxed);
    NEXT(forward, tensor);
    if (forward) forward(data, dtype, sizes, dims, role, name);
}
