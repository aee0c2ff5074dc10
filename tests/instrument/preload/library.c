// The libraries that a host loads. Definitions choose what each does in its constructor.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int library_open_bare(const char* name);

static void say(const char* text) {
    if (write(1, text, strlen(text)) < 0) _exit(9);
}

#ifdef LIBRARY_NESTS
// As GL libraries do: a constructor that loads others, libtorch among them.
__attribute__((constructor)) static void start(void) {
    const char* const torch = getenv("HOST_TORCH");
    if (!torch || !dlopen(torch, RTLD_NOW)) say("no torch\n");
    if (!dlopen(getenv("HOST_LEAF"), RTLD_NOW)) say("no leaf\n");
    say("constructor ends\n");
}
#endif

// glibc looks for the name along the RUNPATH of this library, not of the host.
int library_open_bare(const char* name) { return dlopen(name, RTLD_NOW) != NULL; }
