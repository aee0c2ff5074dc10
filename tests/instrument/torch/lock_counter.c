// For locks_test.py: LD_PRELOAD of this library counts the calls of pthread_mutex_lock that come from the adapter.
// When the process ends, the count is written to $LOCK_COUNTER_OUT. Safe from any thread.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSites = 4096 };

// One entry per call site. A site whose entry is taken by another one is looked up each time.
static struct {
    _Atomic(uintptr_t) address;
    atomic_int ours;  // 1: yes, 2: no
} sites[kSites];
static atomic_ulong locks;

static int is_of_adapter(void* address) {
    const size_t at = ((uintptr_t)address >> 2) % kSites;
    if (atomic_load(&sites[at].address) != (uintptr_t)address) {
        Dl_info info;
        const int ours = dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, "libmptrace_torch_");
        if (atomic_load(&sites[at].address) != 0) return ours;
        atomic_store(&sites[at].ours, ours ? 1 : 2);
        atomic_store(&sites[at].address, (uintptr_t)address);
    }
    return atomic_load(&sites[at].ours) == 1;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
    static int (*volatile real)(pthread_mutex_t*);
    if (!real) real = (int (*)(pthread_mutex_t*))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    if (is_of_adapter(__builtin_return_address(0))) atomic_fetch_add(&locks, 1);
    return real(mutex);
}

__attribute__((destructor)) static void write_count(void) {
    const char* const path = getenv("LOCK_COUNTER_OUT");
    FILE* const out = path ? fopen(path, "w") : NULL;
    if (!out) return;
    fprintf(out, "%lu\n", atomic_load(&locks));
    fclose(out);
}
