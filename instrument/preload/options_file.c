#define _GNU_SOURCE
#include "instrument/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static size_t read_whole(const char* path, char* buffer, size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    size_t used = 0;
    while (used < size) {
        const ssize_t got = read(file, buffer + used, size - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    close(file);
    return used;
}

static const char* value_of(const char* line, const char* key) {
    const size_t length = strlen(key);
    return strncmp(line, key, length) == 0 && line[length] == '=' ? line + length + 1 : NULL;
}

bool mp_read_options(const char* path, struct OptionsFile* into) {
    into->adapters = "";
    into->quiet = false;
    const size_t size = read_whole(path, into->text, kOptionsSize - 1);
    // A file that fills the buffer may be truncated.
    if (size == 0 || size == kOptionsSize - 1) return false;
    into->text[size] = '\0';

    for (char* line = into->text; *line;) {
        char* const end = strchr(line, '\n');  // a newline inside a value is escaped as \n
        if (end) *end = '\0';
        const char* value = value_of(line, "adapters");
        if (value) into->adapters = value;
        value = value_of(line, "quiet");
        if (value) into->quiet = strcmp(value, "1") == 0;
        line = end ? end + 1 : line + strlen(line);
    }
    return true;
}

bool mp_next_element(const char** cursor, char* out, size_t size) {
    const char* p = *cursor;
    if (!*p) return false;
    size_t used = 0;
    for (; *p && *p != ':'; ++p) {
        char c = *p;
        if (c == '\\' && p[1]) {
            ++p;
            c = *p == 'n' ? '\n' : *p;
        }
        if (used < size) out[used] = c;
        ++used;
    }
    out[used < size ? used : 0] = '\0';
    *cursor = *p ? p + 1 : p;
    return true;
}
