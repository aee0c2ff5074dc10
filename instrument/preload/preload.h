#pragma once

#include <stdbool.h>
#include <stddef.h>

// libmptrace_preload.so: what LD_PRELOAD brings into every process below `mp-trace --`. C and libc only,
// because it lands in shells, compilers and everything else a training script starts. Without
// MP_TRACE_OPTIONS (or in a set-user-ID program) it forwards two calls and does nothing else.
//
// Its one job: load the adapter that matches the libtorch of this process, at a moment when libtorch is
// mapped and initialised and no other thread of ours can be inside it: just before main(), or when the
// outermost dlopen() that brought libtorch returns.

#define MP_OPTIONS_VARIABLE "MP_TRACE_OPTIONS"

enum {
    kPathSize = 4096,     // PATH_MAX; longer names are refused, never cut
    kIdSize = 32,         // 16 hex digits, or "size-" and a number, and the end
    kOptionsSize = 65536  // an options file is about 1 kB
};

// --- options_file.c ---

// The part of the options file (runtime/trace/options.hpp) that matters before C++ is there.
struct OptionsFile {
    char text[kOptionsSize];
    const char* adapters;  // raw value: elements separated by ':', each escaped with '\'
    bool quiet;
};

// False when the file cannot be read whole; `into` then has no adapters and is not quiet.
bool mp_read_options(const char* path, struct OptionsFile* into);

// Unescapes the element at *cursor into `out` and moves on. False at the end of the list. An element that
// does not fit in `size` comes out empty.
bool mp_next_element(const char** cursor, char* out, size_t size);

// --- torch_id.c ---

// Whether libtorch_cpu is mapped, and its adapter ID: the first 16 hex digits of its GNU build id; without
// one "size-<bytes of the file>". build-adapter computes the same from the file.
bool mp_find_torch(char id[kIdSize]);

// --- helper_process.c ---

// Whether this is one of Python's own helpers (resource tracker, fork server, torch's compile workers),
// which may import torch but never train. `is_child_by_fork`: a fork server's children are not helpers.
bool mp_is_helper_process(bool is_child_by_fork);

// --- message.c ---

// One line on stderr, "mp-trace: " + the parts up to a null pointer. Never blocks, never raises SIGPIPE.
void mp_say(const char* const* parts);

// --- scopes.c ---

// From here on what the program says by mptrace.h reaches the adapter.
void mp_forward_scopes(void* adapter);

// --- attach.c ---

// Remembers the options file. Called once, before main(); an empty or missing name leaves everything inert.
void mp_arm(const char* options_path);
// True while an attach may still happen in this process.
bool mp_is_armed(void);
// Attaches if libtorch is here: once per process, whatever comes of it. Keeps errno and dlerror() clean.
void mp_attach_if_torch_is_here(void);
