#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include "tests/fakes/cuda/faults.hpp"

// The last call that a fake was handed. With MP_FAKE_CUDA_CALLS=only the calls that tools replace do nothing else: they
// return what MP_FAKE_CUDA asks for, and arguments may have values that no device could work with.
namespace mp::fake {

void remember(const std::string& call);  // part of the fake libcuda.so.1, as the next two
std::string last_call();
bool only_remembers();

// The name, and the bytes of each argument.
template <class... Arguments>
std::string text_of_call(const char* name, const Arguments&... arguments) {
    std::string text = name;
    const auto add = [&text](std::span<const std::byte> bytes) {
        text += ' ';
        for (std::size_t i = bytes.size(); i-- > 0;) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(bytes[i]));
            text += digits;
        }
    };
    (add(std::as_bytes(std::span(&arguments, 1))), ...);
    return text;
}

template <class... Arguments>
bool is_only_remembered(const char* name, const Arguments&... arguments) {
    if (!only_remembers()) return false;
    remember(text_of_call(name, arguments...));
    return true;
}

}  // namespace mp::fake

// At the begin of a fake function.
#define MP_REMEMBER(Result, name, ...)                                 \
    if (mp::fake::is_only_remembered(name __VA_OPT__(, ) __VA_ARGS__)) \
    return static_cast<Result>(mp::fake::fault(name))
