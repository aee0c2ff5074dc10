#define _GNU_SOURCE
#include "instrument/preload/preload.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// The command lines in multiprocessing/{resource_tracker,forkserver}.py and torch/_inductor/compile_worker.
// They are long enough that a user's own argument will not match.
static const char kTracker[] = "from multiprocessing.resource_tracker import main";
static const char kForkServer[] = "from multiprocessing.forkserver import main";
static const char kCompileWorker[] = "torch/_inductor/compile_worker/__main__.py";

static bool holds(const char* text, size_t size, const char* part) {
    return memmem(text, size, part, strlen(part)) != NULL;
}

bool mp_is_helper_process(bool is_child_by_fork) {
    char line[kPathSize];
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t got = read(file, line, sizeof line);
    close(file);
    if (got <= 0) return false;
    const size_t size = (size_t)got;
    return holds(line, size, kTracker) || holds(line, size, kCompileWorker) ||
           (!is_child_by_fork && holds(line, size, kForkServer));
}
