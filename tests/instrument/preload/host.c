// A program under LD_PRELOAD. `host COMMAND...`; its output is compared with and without the library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 8, kForks = 1000 };

static char** g_arguments;
static int g_failed;

static void say(const char* text) {
    if (write(1, text, strlen(text)) < 0) _exit(9);
}

static void* open_now(const char* name) {
    void* const handle = dlopen(name, RTLD_NOW);
    say(handle ? "opened\n" : "not opened\n");
    return handle;
}

static void show_errors(const char* name) {
    errno = 77;
    void* const handle = dlopen(name, RTLD_NOW);
    const int number = errno;
    const char* const text = dlerror();
    printf("%d errno %d dlerror %s\n", handle != NULL, number, text ? text : "none");
    fflush(stdout);
}

static void* open_in_thread(void* barrier) {
    pthread_barrier_wait(barrier);
    if (!dlopen(g_arguments[2], RTLD_NOW)) g_failed = 1;
    return NULL;
}

static void* fork_in_thread(void* barrier) {
    pthread_barrier_wait(barrier);
    for (int i = 0; i < kForks / kThreads; ++i) {
        const pid_t child = fork();
        // Only what may be done after a fork of a threaded process, and this library's way through dlopen.
        if (child == 0) _exit(dlopen(NULL, RTLD_NOW) ? 42 : 1);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 42 << 8) g_failed = 1;
    }
    return NULL;
}

static int in_threads(void* (*work)(void*)) {
    pthread_barrier_t barrier;
    pthread_t threads[kThreads];
    pthread_barrier_init(&barrier, NULL, kThreads);
    for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, &barrier);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    return g_failed;
}

static int open_by_library(const char* library, const char* name) {
    void* const handle = dlopen(library, RTLD_NOW);
    void* const symbol = handle ? dlsym(handle, "library_open_bare") : NULL;
    int (*open_bare)(const char*) = NULL;
    memcpy(&open_bare, &symbol, sizeof symbol);
    return open_bare ? open_bare(name) : -1;
}

static int in_child(const char* name) {
    const pid_t child = fork();
    if (child == 0) _exit(open_now(name) ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

int main(int argc, char** argv) {
    g_arguments = argv;
    const char* const command = argc > 1 ? argv[1] : "";
    const char* const name = argc > 2 ? argv[2] : "";
    say("main\n");
    if (strcmp(command, "open") == 0) {
        for (int i = 2; i < argc; ++i) open_now(argv[i]);
    } else if (strcmp(command, "errors") == 0) {
        for (int i = 2; i < argc; ++i) show_errors(argv[i]);
    } else if (strcmp(command, "noload") == 0) {
        say(dlopen(name, RTLD_NOW | RTLD_NOLOAD) ? "there\n" : "not there\n");
    } else if (strcmp(command, "namespace") == 0) {
        say(dlmopen(LM_ID_NEWLM, name, RTLD_NOW) ? "opened apart\n" : "not opened apart\n");
    } else if (strcmp(command, "by-library") == 0) {
        printf("found %d\n", open_by_library(name, argv[3]));
    } else if (strcmp(command, "threads") == 0) {
        return in_threads(open_in_thread);
    } else if (strcmp(command, "forks") == 0) {
        if (!open_now(name)) return 1;
        return in_threads(fork_in_thread);
    } else if (strcmp(command, "child") == 0) {
        return in_child(name) ? 1 : 0;
    } else if (strcmp(command, "unset") == 0) {
        clearenv();
        open_now(name);
    } else if (strcmp(command, "exit") == 0) {
        return atoi(name);
    } else if (strcmp(command, "signal") == 0) {
        signal(atoi(name), SIG_DFL);
        raise(atoi(name));
    }
    return 0;
}
