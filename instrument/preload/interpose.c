#define _GNU_SOURCE
#include "instrument/preload/preload.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// The two functions of libc that this library replaces. All other symbols are hidden.
#define MP_EXPORT __attribute__((visibility("default")))

typedef int (*Main)(int, char**, char**);
typedef int (*StartMain)(Main, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
typedef void* (*Dlopen)(const char*, int);

static Main g_main;
static Dlopen g_dlopen;
static bool g_main_runs;  // before main() a constructor may call dlopen() while libtorch is partly
                          // initialised

static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }

static Dlopen real_dlopen(void) {
    // Two threads may both look it up; the result is the same.
    Dlopen found = __atomic_load_n(&g_dlopen, __ATOMIC_ACQUIRE);
    if (!found) {
        void* const symbol = next("dlopen");
        memcpy(&found, &symbol, sizeof symbol);
        __atomic_store_n(&g_dlopen, found, __ATOMIC_RELEASE);
    }
    return found;
}

static int traced_main(int argc, char** argv, char** environment) {
    __atomic_store_n(&g_main_runs, true, __ATOMIC_RELEASE);
    mp_attach_if_torch_is_here();
    return g_main(argc, argv, environment);
}

MP_EXPORT int __libc_start_main(Main program, int argc, char** argv, void (*init)(void), void (*fini)(void),
                                void (*loader_fini)(void), void* stack_end) {
    StartMain start;
    void* const symbol = next("__libc_start_main");
    memcpy(&start, &symbol, sizeof symbol);
    mp_arm(secure_getenv(MP_OPTIONS_VARIABLE));
    if (!mp_is_armed()) return start(program, argc, argv, init, fini, loader_fini, stack_end);
    real_dlopen();
    g_main = program;
    return start(traced_main, argc, argv, init, fini, loader_fini, stack_end);
}

#if defined(__x86_64__) || defined(__aarch64__)

// dlopen() of a bare name searches the RUNPATH of its caller, which glibc identifies by the return address.
// Such a call must therefore be a jump, and this library does not see its return. A call by path does not
// depend on the caller (unless it contains "$ORIGIN"); it is made from here, so that the attach can follow
// it.
//
// Never attach inside another dlopen(): libtorch may be mapped but not yet initialised. Calls by path are
// counted. A bare-name call is still running if its return address is still on the stack.
static _Thread_local int t_depth;
static _Thread_local bool t_nested;  // the outermost call by path was made inside one by bare name
static _Thread_local struct {
    uintptr_t stack;   // the stack pointer of the caller
    uintptr_t caller;  // the return address
} t_bare;

#if defined(__x86_64__)
enum { kBelow = 0, kAbove = 8 };  // the return address is at the stack pointer itself
#else
enum { kBelow = 512, kAbove = 0 };  // somewhere in dlopen's own frame; its top bits may be a signature
#endif

static bool is_mapped(uintptr_t address) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    return mincore((void*)(address & ~(page - 1)), page, &resident) == 0;
}

// A stale return address may remain after its call and delay the attach to a later dlopen(), but a running
// call is always detected. The stack may belong to a coroutine and be unmapped by now, hence is_mapped.
static bool bare_name_call_runs(uintptr_t stack) {
    if (t_bare.stack == 0 || stack >= t_bare.stack) return false;
    const uintptr_t mask = ((uintptr_t)1 << 48) - 1;
    for (uintptr_t at = t_bare.stack - kBelow; at < t_bare.stack + kAbove; at += sizeof at) {
        if (at < stack) continue;
        if (!is_mapped(at)) return false;
        if (((*(const uintptr_t*)at ^ t_bare.caller) & mask) == 0) return true;
    }
    return false;
}

static void* dlopen_by_path(const char* name, int mode) {
    ++t_depth;
    void* const handle = real_dlopen()(name, mode);
    --t_depth;
    if (handle && t_depth == 0 && !t_nested && __atomic_load_n(&g_main_runs, __ATOMIC_ACQUIRE)) {
        mp_attach_if_torch_is_here();
    }
    return handle;
}

// Returns the function that the stub below jumps to, with the same arguments.
__attribute__((used, visibility("hidden"))) Dlopen mp_dlopen_route(const char* name, int mode,
                                                                   uintptr_t stack, uintptr_t caller) {
    const Dlopen real = real_dlopen();
    if (!mp_is_armed()) return real;
    const bool by_path = name && strchr(name, '/') && !strchr(name, '$') && !(mode & RTLD_NOLOAD);
    if (t_depth == 0) {
        t_nested = bare_name_call_runs(stack);
        if (!by_path && !t_nested) {
            t_bare.stack = stack;
            t_bare.caller = caller;
        }
    }
    return by_path ? dlopen_by_path : real;
}

#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl dlopen\n"
    ".type dlopen, @function\n"
    ".p2align 4\n"
    "dlopen:\n"
    ".cfi_startproc\n"
    "endbr64\n"
    "pushq %rdi\n"
    ".cfi_adjust_cfa_offset 8\n"
    "pushq %rsi\n"
    ".cfi_adjust_cfa_offset 8\n"
    "leaq 16(%rsp), %rdx\n"
    "movq 16(%rsp), %rcx\n"
    "subq $8, %rsp\n"  // calls need alignment to 16 bytes
    ".cfi_adjust_cfa_offset 8\n"
    "call mp_dlopen_route\n"
    "addq $8, %rsp\n"
    ".cfi_adjust_cfa_offset -8\n"
    "popq %rsi\n"
    ".cfi_adjust_cfa_offset -8\n"
    "popq %rdi\n"
    ".cfi_adjust_cfa_offset -8\n"
    "jmp *%rax\n"
    ".cfi_endproc\n"
    ".size dlopen, . - dlopen\n");
#else
__asm__(
    ".text\n"
    ".globl dlopen\n"
    ".type dlopen, %function\n"
    ".p2align 4\n"
    "dlopen:\n"
    ".cfi_startproc\n"
    "hint #34\n"  // bti c
    "stp x29, x30, [sp, #-32]!\n"
    ".cfi_adjust_cfa_offset 32\n"
    ".cfi_offset x29, -32\n"
    ".cfi_offset x30, -24\n"
    "stp x0, x1, [sp, #16]\n"
    "mov x29, sp\n"
    "add x2, sp, #32\n"
    "mov x3, x30\n"
    "bl mp_dlopen_route\n"
    "mov x16, x0\n"
    "ldp x0, x1, [sp, #16]\n"
    "ldp x29, x30, [sp], #32\n"
    ".cfi_restore x29\n"
    ".cfi_restore x30\n"
    ".cfi_adjust_cfa_offset -32\n"
    "br x16\n"
    ".cfi_endproc\n"
    ".size dlopen, . - dlopen\n");
#endif

#endif  // on other architectures only programs that are linked with libtorch attach
