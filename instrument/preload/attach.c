#define _GNU_SOURCE
#include "instrument/preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char g_options_path[kPathSize];
static pid_t g_started_as;
static atomic_bool g_armed;
static struct OptionsFile g_options;  // static, because it is too large for a thread's stack; only one
                                      // thread uses it

void mp_arm(const char* options_path) {
    const size_t size = options_path ? strlen(options_path) : 0;
    if (size == 0 || size >= sizeof g_options_path) return;
    // A copy, because the program may change its environment.
    memcpy(g_options_path, options_path, size + 1);
    g_started_as = getpid();
    atomic_store(&g_armed, true);
}

bool mp_is_armed(void) { return atomic_load_explicit(&g_armed, memory_order_acquire); }

static void refuse(const char* what, const char* detail, const char* hint) {
    if (g_options.quiet) return;
    mp_say((const char* const[]){what, detail, hint, "; the program runs untraced", NULL});
}

static bool find_adapter(const char* id, char path[kPathSize]) {
    const char* cursor = g_options.adapters;
    char folder[kPathSize];
    while (mp_next_element(&cursor, folder, sizeof folder)) {
        const int size = snprintf(path, kPathSize, "%s/libmptrace_torch_%s.so", folder, id);
        if (size > 0 && size < kPathSize && folder[0] && access(path, R_OK) == 0) return true;
    }
    return false;
}

// Whether an adapter's own text names another torch than this one. This is tested without loading it,
// because loading it would load the libtorch that it was linked with. An adapter that names no torch is
// accepted.
static bool names_another_torch(const char* path, const char* id) {
    static const char kMark[] = "mptrace-adapter-for-torch:";
    static char text[1 << 16];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t kept = 0;
    bool other = false;
    for (ssize_t got; !other && (got = read(fd, text + kept, sizeof text - kept)) > 0;) {
        const size_t size = kept + (size_t)got;
        const char* mark = text;
        while ((mark = memmem(mark, size - (size_t)(mark - text), kMark, sizeof kMark - 1))) {
            const char* const named = mark + sizeof kMark - 1;
            if ((size_t)(named - text) + kIdSize > size) break;  // continues in the next piece
            // The mark without an id is the constant of this comparison itself, in other builds of this
            // library.
            other = named[0] && strncmp(named, id, kIdSize) != 0;
            if (other) break;
            mark = named;
        }
        const size_t tail = sizeof kMark - 1 + kIdSize;
        kept = size < tail ? size : tail;
        memmove(text, text + size - kept, kept);
    }
    close(fd);
    return other;
}

static void attach(const char* id) {
    if (mp_is_helper_process(getpid() != g_started_as)) return;
    if (!mp_read_options(g_options_path, &g_options)) {
        refuse("cannot read the options file ", g_options_path, "");
        return;
    }
    char path[kPathSize];
    if (!find_adapter(id, path)) {
        refuse("no adapter for the torch of this process (", id, "), `mp-trace build-adapter` makes one");
        return;
    }
    if (names_another_torch(path, id)) {
        refuse("the adapter is for another torch: ", path, ", `mp-trace build-adapter` makes the right one");
        return;
    }
    void* const adapter = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!adapter) {
        const char* const why = dlerror();
        refuse("the adapter does not load: ", why ? why : path, ", `mp-trace build-adapter` makes a new one");
        return;
    }
    int (*attach_adapter)(const char*) = NULL;
    void* const symbol = dlsym(adapter, "mptrace_attach");
    memcpy(&attach_adapter, &symbol, sizeof symbol);  // C has no cast from an object pointer to a function
                                                      // pointer
    if (!attach_adapter) {
        refuse("the adapter has no mptrace_attach: ", path, ", `mp-trace build-adapter` makes a new one");
    } else if (attach_adapter(g_options_path) != 0) {
        refuse("the adapter refused this process: ", path, "");
    } else {
        mp_forward_scopes(adapter);
    }
}

// With libtorch the dispatcher shows the collectives. NCCL would load the library for CUDA programs for nothing.
static void take_back_the_place_at_nccl(void) {
    static const char kOurs[] = "/libmptrace_cuda.so";
    const char* const plugin = getenv("NCCL_PROFILER_PLUGIN");
    const size_t size = plugin ? strlen(plugin) : 0;
    if (size >= sizeof kOurs && strcmp(plugin + size - (sizeof kOurs - 1), kOurs) == 0)
        unsetenv("NCCL_PROFILER_PLUGIN");
}

void mp_attach_if_torch_is_here(void) {
    char id[kIdSize];
    if (!mp_is_armed()) return;
    const int before = errno;
    // The exchange makes sure that this runs once per process. A second thread continues without waiting,
    // and a child that is forked meanwhile is disarmed.
    if (mp_find_torch(id) && atomic_exchange(&g_armed, false)) {
        take_back_the_place_at_nccl();
        attach(id);
        dlerror();  // the program must not see our dlopen errors
    }
    errno = before;
}
