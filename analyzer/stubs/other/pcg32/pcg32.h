// A small random generator used on both sides.
#pragma once

#include <cstdint>

struct pcg32 {
    uint64_t state;
    uint64_t inc;
    __attribute__((host, device)) pcg32();
    __attribute__((host, device)) pcg32(uint64_t, uint64_t = 1);
    __attribute__((host, device)) void seed(uint64_t, uint64_t = 1);
    __attribute__((host, device)) uint32_t next_uint();
    __attribute__((host, device)) uint32_t next_uint(uint32_t);
    __attribute__((host, device)) float next_float();
    __attribute__((host, device)) double next_double();
    __attribute__((host, device)) void advance(int64_t = (1ll << 32));
};
