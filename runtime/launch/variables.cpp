#include "runtime/launch/variables.hpp"

#include <unistd.h>

#include <algorithm>

#include "kernels/base/paths.hpp"
#include "runtime/launch/layout.hpp"
#include "runtime/trace/options.hpp"

namespace mp::launch {
namespace {

bool assigns(std::string_view entry, std::string_view name) {
    return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

// `before` without the entries that `ours` selects. Returned byte for byte when there are none: an empty
// entry in PYTHONPATH means the working directory and must stay.
template <typename Ours>
std::string without(std::string_view before, std::string_view separators, Ours ours) {
    std::string out;
    bool first = true, dropped = false;
    for (std::string_view rest = before;;) {
        const std::size_t at = rest.find_first_of(separators);
        const std::string_view entry = rest.substr(0, at);
        if (ours(entry)) {
            dropped = true;
        } else {
            if (!first) out += separators[0];
            out += entry;
            first = false;
        }
        if (at == std::string_view::npos) break;
        rest.remove_prefix(at + 1);
    }
    return dropped ? out : std::string(before);
}

bool is_ours(std::string_view path) {
    const std::string_view name = file_name(path);
    return name == kPreloadName || name == kCudaName;
}

std::string joined(std::string_view first, const std::string& rest) {
    return std::string(first) + (rest.empty() ? "" : ":" + rest);
}

}  // namespace

Variables Variables::of_this_process() {
    std::vector<std::string> entries;
    for (char** entry = ::environ; entry && *entry; ++entry) entries.emplace_back(*entry);
    return Variables(std::move(entries));
}

const char* Variables::get(std::string_view name) const {
    for (const std::string& entry : entries_) {
        if (assigns(entry, name)) return entry.c_str() + name.size() + 1;
    }
    return nullptr;
}

void Variables::set(std::string_view name, std::string_view value) {
    const std::string entry = std::string(name) + "=" + std::string(value);
    const auto same = [&](const std::string& e) { return assigns(e, name); };
    const auto found = std::find_if(entries_.begin(), entries_.end(), same);
    if (found == entries_.end()) {
        entries_.push_back(entry);
        return;
    }
    *found = entry;
    // If a variable is assigned twice, a shell uses the last and getenv the first, so keep only one.
    entries_.erase(std::remove_if(found + 1, entries_.end(), same), entries_.end());
}

void Variables::unset(std::string_view name) {
    std::erase_if(entries_, [&](const std::string& e) { return assigns(e, name); });
}

std::vector<char*> Variables::pointers() const {
    std::vector<char*> out;
    for (const std::string& entry : entries_) out.push_back(const_cast<char*>(entry.c_str()));
    out.push_back(nullptr);
    return out;
}

std::string without_preload(std::string_view before) {
    return without(before, ": ", [](std::string_view entry) { return is_ours(entry); });
}

std::string with_preload(std::string_view before, std::string_view library) {
    return joined(library, without_preload(before));
}

std::string without_shim(std::string_view before) {
    return without(before, ":",
                   [](std::string_view entry) { return entry.ends_with("/" + std::string(kShimPlace)); });
}

std::string with_shim(std::string_view before, std::string_view directory) {
    return joined(directory, without_shim(before));
}

void set_if_free(Variables& variables, std::string_view name, std::string_view library) {
    const char* const value = variables.get(name);
    if (!value || !*value || is_ours(value)) variables.set(name, library);
}

Variables untraced(Variables variables) {
    variables.unset(trace::kOptionsVariable);
    const auto restore = [&variables](const char* name, std::string (*edit)(std::string_view)) {
        const char* value = variables.get(name);
        if (!value) return;
        const std::string left = edit(value);
        if (left.empty() && *value) {
            variables.unset(name);
        } else {
            variables.set(name, left);
        }
    };
    restore("LD_PRELOAD", without_preload);
    restore("PYTHONPATH", without_shim);
    for (const char* const name : kCudaPlaces) {
        const char* const value = variables.get(name);
        if (value && is_ours(value)) variables.unset(name);
    }
    return variables;
}

bool fits_preload(std::string_view path) { return path.find_first_of(": \t\n") == std::string_view::npos; }
bool fits_python_path(std::string_view path) { return path.find(':') == std::string_view::npos; }

}  // namespace mp::launch
