/* Calls NCCL through a library that is opened with dlopen, as extension modules of Python do.
 *
 *   loading_program MODULE [torch TORCH] [again]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int call(const char* path, int keep) {
    void* const module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*reduce)(void) = NULL;
    void* const symbol = module ? dlsym(module, "module_reduce") : NULL;
    memcpy(&reduce, &symbol, sizeof symbol);
    if (!reduce) return -1;
    const int status = reduce();
    if (!keep) dlclose(module);
    return status;
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    if (argc > 3 && strcmp(argv[2], "torch") == 0 && !dlopen(argv[3], RTLD_NOW | RTLD_LOCAL)) return 3;
    for (int i = 0; i < 3; ++i) printf("%d\n", call(argv[1], i == 2));
    printf("error: %s\n", dlerror() ? "left behind" : "none");
    return 0;
}
