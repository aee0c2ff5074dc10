#pragma once

#include <stdbool.h>
#include <stddef.h>

// libmptrace_preload.so is loaded by LD_PRELOAD into every process below `mp-trace --`. It uses C and libc
// only, because it is loaded into shells, compilers and everything else that a training script starts.
// Without MP_TRACE_OPTIONS, and in a set-user-ID program, it only forwards two calls.
//
// Its only task is to load the adapter that matches the libtorch of this process. At that moment libtorch
// must be mapped and initialised, and no other thread may be inside it. This holds just before main(), and
// when the outermost dlopen() that loaded libtorch returns.

#define MP_OPTIONS_VARIABLE "MP_TRACE_OPTIONS"

enum {
    kPathSize = 4096,     // PATH_MAX; longer names are rejected, never cut
    kIdSize = 32,         // 16 hex digits, or "size-" and a number, and the terminator
    kOptionsSize = 65536  // an options file is about 1 kB
};

// --- options_file.c ---

// The part of the options file (runtime/trace/options.hpp) that is needed before any C++ code runs.
struct OptionsFile {
    char text[kOptionsSize];
    const char* adapters;  // raw value: elements separated by ':', each escaped with '\'
    bool quiet;
};

// False when the file cannot be read completely; then `into` has no adapters and is not quiet.
bool mp_read_options(const char* path, struct OptionsFile* into);

// Unescapes the element at *cursor into `out` and advances. False at the end of the list. An element that
// does not fit in `size` becomes empty.
bool mp_next_element(const char** cursor, char* out, size_t size);

// --- torch_id.c ---

// Whether libtorch_cpu is mapped, and its adapter ID: the first 16 hex digits of its GNU build id, or
// "size-<bytes of the file>" when it has none. build-adapter computes the same ID from the file.
bool mp_find_torch(char id[kIdSize]);

// --- helper_process.c ---

// Whether this is one of Python's own helpers (resource tracker, fork server, torch's compile workers),
// which may import torch but never train. `is_child_by_fork`: a fork server's children are not helpers.
bool mp_is_helper_process(bool is_child_by_fork);

// --- message.c ---

// One line on stderr, "mp-trace: " + the parts up to a null pointer. Never blocks, never raises SIGPIPE.
void mp_say(const char* const* parts);

// --- scopes.c ---

// Forwards the calls of mptrace.h to the adapter from now on.
void mp_forward_scopes(void* adapter);

// --- attach.c ---

// Stores the name of the options file. Called once, before main(). With an empty or missing name the
// library does nothing.
void mp_arm(const char* options_path);
// True while an attach may still happen in this process.
bool mp_is_armed(void);
// Attaches if libtorch is loaded: at most once per process, whatever the result. Restores errno and
// dlerror().
void mp_attach_if_torch_is_here(void);
