// A fake libtorch_cpu.so: a build id, and a constructor that prints when it is initialised.
#include <time.h>

int fake_torch_ready(void);

static int g_ready;

__attribute__((constructor)) static void start(void) {
    // Long enough for another thread to look at a half-initialised library.
    const struct timespec a_while = {0, 2000000};
    nanosleep(&a_while, 0);
    g_ready = 1;
}

int fake_torch_ready(void) { return g_ready; }
