#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mp::launch {

// The environment of a program to be: "NAME=value" in the order found, as execve takes it. Entries that are
// no assignments are kept, because the program may look at them.
class Variables {
public:
    static Variables of_this_process();
    explicit Variables(std::vector<std::string> entries) : entries_(std::move(entries)) {}

    // The value getenv would find; null when unset. Valid until the next change.
    const char* get(std::string_view name) const;
    void set(std::string_view name, std::string_view value);
    void unset(std::string_view name);

    const std::vector<std::string>& entries() const { return entries_; }
    // For execve: null-terminated, valid until the next change.
    std::vector<char*> pointers() const;

private:
    std::vector<std::string> entries_;
};

// LD_PRELOAD with `library` first and what was there behind it, in its order. A preload of ours that an
// mp-trace further out has put there is taken out: two of them would attach twice.
std::string with_preload(std::string_view before, std::string_view library);
// LD_PRELOAD without any preload of ours.
std::string without_preload(std::string_view before);

// The same for PYTHONPATH and the directory of the shim.
std::string with_shim(std::string_view before, std::string_view directory);
std::string without_shim(std::string_view before);

// The environment in which a helper of ours runs (a compiler, the probing interpreter): as the user has it,
// without what an mp-trace further out has added.
Variables untraced(Variables);

// ld.so splits LD_PRELOAD at blanks and colons and knows no quoting; Python splits PYTHONPATH at colons.
bool fits_preload(std::string_view path);
bool fits_python_path(std::string_view path);

}  // namespace mp::launch
