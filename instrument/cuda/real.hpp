#pragma once

#include <dlfcn.h>

#include <atomic>

namespace mp::raw {

// A function of a library that is open; null: it has none of this name.
template <class Function>
void find(void* library, const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(library, name));
}

// The address that `name` would have for the code at `caller` if this library were not loaded: the next one in the
// global scope, else the one that the caller's own library depends on, else that of any loaded library, first of those
// whose file names begin with `library`. `is_certain`: it is the same for every caller and stays so, because the
// library that has it is kept loaded from now on.
void* find_real(const char* name, const char* library, const void* caller, bool& is_certain) noexcept;

// A function of a library of which this one has a wrapper.
template <class Function>
class Real {
public:
    constexpr Real(const char* name, const char* library) : name_(name), library_(library) {}

    Function get(const void* caller) noexcept {
        void* at = at_.load(std::memory_order_relaxed);
        if (!at) {
            bool is_certain = false;
            at = find_real(name_, library_, caller, is_certain);
            if (is_certain) at_.store(at, std::memory_order_relaxed);
        }
        return reinterpret_cast<Function>(at);
    }

private:
    const char* name_;
    const char* library_;
    std::atomic<void*> at_{nullptr};
};

}  // namespace mp::raw
