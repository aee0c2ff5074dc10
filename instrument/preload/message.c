#define _GNU_SOURCE
#include "instrument/preload/preload.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Blocks SIGPIPE during the write, so that a closed stderr does not kill the program. Removes a pending
// SIGPIPE that the write caused.
// ours.
static void write_without_sigpipe(const char* text, size_t size) {
    sigset_t pipe_only, before, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    if (pthread_sigmask(SIG_BLOCK, &pipe_only, &before) != 0) return;
    const ssize_t written = write(STDERR_FILENO, text, size);
    if (written < 0 && !was_pending) {
        const struct timespec now = {0, 0};
        sigtimedwait(&pipe_only, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void mp_say(const char* const* parts) {
    char line[2 * kPathSize];
    size_t used = 0;
    for (const char* part = "mp-trace: "; part; part = *parts++) {
        for (; *part && used < sizeof line - 1; ++part) {
            line[used++] = (unsigned char)*part < ' ' ? '?' : *part;  // a path may contain a newline
        }
    }
    line[used++] = '\n';
    // Do not block on a full pipe without a reader.
    struct pollfd error = {STDERR_FILENO, POLLOUT, 0};
    if (poll(&error, 1, 0) == 1 && (error.revents & POLLOUT)) write_without_sigpipe(line, used);
}
