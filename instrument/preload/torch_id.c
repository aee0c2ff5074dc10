#define _GNU_SOURCE
#include "instrument/preload/preload.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char kTorchName[] = "libtorch_cpu.so";  // Debian adds ".1.13"
enum { kIdBytes = 8 };

static size_t padded(size_t size) { return (size + 3u) & ~(size_t)3; }

static bool id_from_notes(const uint8_t* at, size_t left, char id[kIdSize]) {
    while (left >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const size_t name = padded(note.n_namesz), description = padded(note.n_descsz);
        if (name > left || description > left || sizeof note + name + description > left) return false;
        const uint8_t* const bytes = at + sizeof note + name;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + sizeof note, "GNU", 4) == 0 &&
            note.n_descsz > 0) {
            const size_t count = note.n_descsz < kIdBytes ? note.n_descsz : kIdBytes;
            for (size_t i = 0; i < count; ++i) {
                id[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
                id[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
            }
            id[2 * count] = '\0';
            return true;
        }
        at = bytes + description;
        left -= sizeof note + name + description;
    }
    return false;
}

// A note that is not in a loaded segment exists in the file only.
static bool is_loaded(const struct dl_phdr_info* library, const ElfW(Phdr) * part) {
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const ElfW(Phdr)* const load = &library->dlpi_phdr[i];
        if (load->p_type == PT_LOAD && part->p_vaddr >= load->p_vaddr &&
            part->p_vaddr + part->p_memsz <= load->p_vaddr + load->p_memsz) {
            return true;
        }
    }
    return false;
}

static int visit(struct dl_phdr_info* library, size_t size, void* out) {
    (void)size;
    char* const id = out;
    const char* const slash = strrchr(library->dlpi_name, '/');
    const char* const name = slash ? slash + 1 : library->dlpi_name;
    if (strncmp(name, kTorchName, sizeof kTorchName - 1) != 0) return 0;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const ElfW(Phdr)* const part = &library->dlpi_phdr[i];
        if (part->p_type != PT_NOTE || !is_loaded(library, part)) continue;
        if (id_from_notes((const uint8_t*)(library->dlpi_addr + part->p_vaddr), part->p_memsz, id)) return 1;
    }
    struct stat file;
    const bool known = stat(library->dlpi_name, &file) == 0;
    snprintf(id, kIdSize, "size-%llu", known ? (unsigned long long)file.st_size : 0);
    return 1;
}

bool mp_find_torch(char id[kIdSize]) { return dl_iterate_phdr(visit, id) != 0; }
