/* Takes CUPTI's only place in the process that it is preloaded into, before mp-trace can, as another profiler does.
 *
 *     cc -shared -fPIC -o holder.so cupti_holder.c -ldl; LD_PRELOAD=holder.so mp-trace -- PROGRAM
 *
 * The name of the subscriber is told by cuptiSubscribe_v2 alone, whose parameters begin with these fields. */
#include <dlfcn.h>
#include <stddef.h>

struct parameters {
    size_t size;
    const char* name;
    char* holder;
    size_t holder_size;
};

static void ignore(void* user, int domain, unsigned id, const void* data) {
    (void)user, (void)domain, (void)id, (void)data;
}

__attribute__((constructor)) static void hold(void) {
    void* const library = dlopen("libcupti.so.13", RTLD_NOW);
    if (!library) return;
    typedef int (*Subscribe)(void**, void*, void*, struct parameters*);
    const Subscribe named = (Subscribe)dlsym(library, "cuptiSubscribe_v2");
    int (*const plain)(void**, void*, void*) =
        (int (*)(void**, void*, void*))dlsym(library, "cuptiSubscribe");
    static char former[256];
    static void* handle;
    struct parameters ours = {sizeof ours, "another profiler", former, sizeof former};
    if (named && named(&handle, (void*)ignore, NULL, &ours) == 0) return;
    if (plain) plain(&handle, (void*)ignore, NULL);
}
