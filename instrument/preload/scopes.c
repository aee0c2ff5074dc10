// The functions of mptrace.h. They are in this library because the program's references to them are
// resolved when it starts, before an adapter exists. Calls before the attach are ignored: there is no op
// yet.
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

// C has no cast from an object pointer to a function pointer.
#define FORWARD(adapter, name)                                 \
    do {                                                       \
        void* const symbol = dlsym(adapter, "mptrace_" #name); \
        __typeof__(atomic_load(&g_##name)) function = NULL;    \
        memcpy(&function, &symbol, sizeof symbol);             \
        atomic_store(&g_##name, function);                     \
    } while (0)

void mp_forward_scopes(void* adapter) {
    FORWARD(adapter, layer_push);
    FORWARD(adapter, layer_pop);
    FORWARD(adapter, loss);
    FORWARD(adapter, step);
}

MP_EXPORT void mptrace_layer_push(const char* name) {
    void (*const forward)(const char*) = atomic_load_explicit(&g_layer_push, memory_order_relaxed);
    if (forward) forward(name);
}

MP_EXPORT void mptrace_layer_pop(void) {
    void (*const forward)(void) = atomic_load_explicit(&g_layer_pop, memory_order_relaxed);
    if (forward) forward();
}

MP_EXPORT void mptrace_loss(const void* tensor) {
    void (*const forward)(const void*) = atomic_load_explicit(&g_loss, memory_order_relaxed);
    if (forward) forward(tensor);
}

MP_EXPORT void mptrace_step(int skipped, double loss_scale) {
    void (*const forward)(int, double) = atomic_load_explicit(&g_step, memory_order_relaxed);
    if (forward) forward(skipped, loss_scale);
}
