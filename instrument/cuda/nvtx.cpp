// NVTX ranges. Each module of the program that uses NVTX calls InitializeInjectionNvtx2 once with its own table of
// functions, into which ours are put. A domain is one by its name, whatever module made it. Everything that returns a
// value returns what it would without a tool, except handles, which the program only hands back.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cwchar>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "instrument/cuda/abi.hpp"
#include "instrument/cuda/activity.hpp"
#include "instrument/cuda/nvtx.hpp"
#include "instrument/cuda/per_process.hpp"
#include "instrument/cuda/process.hpp"
#include "instrument/cuda/range_names.hpp"

namespace mp::raw {
namespace {

constexpr std::uint32_t kDefaultDomain = 0, kLibraryDomain = 1;

struct Domain {
    std::uint32_t id;
};

// Registered strings and domains, by their texts. The program keeps the addresses, so nothing is ever removed.
struct Names {
    std::mutex mutex;
    std::map<std::string, Domain, std::less<>> domains;
    std::map<std::string, int, std::less<>> strings;
    std::map<std::uint64_t, std::int64_t>
        open;  // ranges between start and end that name a step, and its number
    std::uint64_t ranges = 0;
};

constinit PerProcess<Names> g_names;
Names& names() { return g_names.get(); }

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// Libraries mark their own calls, which say nothing about the program. NVIDIA writes cuBLAS, cuDNN, cuFile: a program's
// domain may be "custom" or "curriculum".
bool is_library(std::string_view domain) {
    constexpr std::array<std::string_view, 12> kNames{"NCCL",    "CCCL",   "CUB",      "thrust",
                                                      "libcudf", "cublas", "cublasLt", "cudnn",
                                                      "CUBLAS",  "CUDNN",  "cudf",     "cuml"};
    return std::ranges::find(kNames, domain) != kNames.end() || domain.starts_with("NVSHMEM") ||
           (domain.size() > 2 && domain.starts_with("cu") && is_upper(domain[2]));
}

std::string narrow(const wchar_t* wide) {
    std::string out;
    for (; *wide; ++wide) out += *wide < 0x80 ? static_cast<char>(*wide) : '?';
    return out;
}

}  // namespace

std::string nvtx::domains() {
    const std::lock_guard lock(names().mutex);
    std::string text;
    for (const auto& [name, domain] : names().domains)
        text += (text.empty() ? "" : ", ") + name + (domain.id == kLibraryDomain ? " (of a library)" : "");
    return text;
}

void nvtx::push(std::uint32_t domain, std::string_view name) noexcept {
    Run* const r = run();
    if (!r || !is_armed(Source::nvtx) || Inside::any() || domain == kLibraryDomain) return;
    guarded(Source::nvtx, [&] {
        ThreadRanges& open = ranges();
        const std::int64_t step = step_of_range(name, r->options().step_range);
        if (step >= 0) {
            // The step is not a part of the path: each has another name.
            open.push(open.place, domain, r->begin_step(step));
            return;
        }
        const Place& inner = r->enter(open.place, name);
        open.push(inner.id, domain, false);
        activity::moved_to(open.place);
    });
}

void nvtx::pop(std::uint32_t domain) noexcept {
    Run* const r = run();
    if (!r || !is_armed(Source::nvtx) || Inside::any() || domain == kLibraryDomain) return;
    guarded(Source::nvtx, [&] {
        bool unbalanced = false;
        if (ranges().pop(domain, unbalanced)) r->end_step();
        activity::moved_to(ranges().place);
        if (unbalanced) r->note(trace::NoteKind::not_observed, "NVTX: a pop without a range");
    });
}

std::string nvtx::text_of(int type, abi::NvtxMessage message) {
    if (!message.pointer) return {};
    switch (type) {
        case abi::kNvtxAscii:
            return static_cast<const char*>(message.pointer);
        case abi::kNvtxWide:
            return narrow(static_cast<const wchar_t*>(message.pointer));
        case abi::kNvtxRegistered:
            return *static_cast<const std::string*>(message.pointer);
        default:
            return {};
    }
}

std::string nvtx::with_number(const std::string& name, std::int64_t number) {
    const Run* const r = run();
    std::string numbered = name + " " + std::to_string(number);
    const bool is_a_part =
        r && number >= 0 && !name.empty() && step_of_range(name, {}) < 0 && !is_numbered_layer(name) &&
        (is_numbered_layer(numbered) || step_of_range(numbered, r->options().step_range) >= 0);
    return is_a_part ? numbered : name;
}

std::uint32_t nvtx::id_of(const void* domain) {
    return domain ? static_cast<const Domain*>(domain)->id : kDefaultDomain;
}

// Ranges with a start and an end may cross threads, so they are no place. One can be a step.
std::uint64_t nvtx::start(std::string_view name) noexcept {
    std::uint64_t id = 0;
    Run* const r = run();
    if (!r || !is_armed(Source::nvtx) || Inside::any()) return 0;
    guarded(Source::nvtx, [&] {
        const std::int64_t step = step_of_range(name, r->options().step_range);
        if (step < 0 || !r->begin_step_apart(step)) return;
        const std::lock_guard lock(names().mutex);
        id = ++names().ranges;
        names().open[id] = step;
    });
    return id;
}

void nvtx::end(std::uint64_t id) noexcept {
    Run* const r = run();
    if (!r || id == 0) return;
    guarded(Source::nvtx, [&] {
        std::int64_t step = -1;
        {
            const std::lock_guard lock(names().mutex);
            const auto found = names().open.find(id);
            if (found == names().open.end()) return;
            step = found->second;
            names().open.erase(found);
        }
        r->end_step_apart(step);
    });
}

namespace {

using nvtx::end;
using nvtx::id_of;
using nvtx::pop;
using nvtx::push;
using nvtx::start;

std::string name_of(const abi::NvtxAttributes* attributes) {
    if (!attributes) return {};
    std::string name = nvtx::text_of(attributes->message_type, attributes->message);
    switch (attributes->payload_type) {
        case abi::kNvtxUint64:
        case abi::kNvtxInt64:
            return nvtx::with_number(name, static_cast<std::int64_t>(attributes->payload));
        case abi::kNvtxUint32:
        case abi::kNvtxInt32:
            return nvtx::with_number(name, static_cast<std::int32_t>(attributes->payload));
        case abi::kNvtxPayloads:
            // NOLINTNEXTLINE(performance-no-int-to-ptr): NVTX gives the address as an integer
            return nvtx::name_of_payloads(reinterpret_cast<const abi::NvtxPayload*>(attributes->payload),
                                          static_cast<std::size_t>(attributes->payloads), std::move(name));
        default:
            return name;
    }
}

// ---- What NVTX calls. --------------------------------------------------------------------------------

int range_push_a(const char* name) {
    if (name) push(kDefaultDomain, name);
    return abi::kNvtxNotTracked;
}
int range_push_w(const wchar_t* name) {
    if (name) guarded(Source::nvtx, [name] { push(kDefaultDomain, narrow(name)); });
    return abi::kNvtxNotTracked;
}
int range_push_ex(const abi::NvtxAttributes* attributes) {
    guarded(Source::nvtx, [&] { push(kDefaultDomain, name_of(attributes)); });
    return abi::kNvtxNotTracked;
}
int range_pop() {
    pop(kDefaultDomain);
    return abi::kNvtxNotTracked;
}
std::uint64_t range_start_a(const char* name) { return name ? start(name) : 0; }
std::uint64_t range_start_w(const wchar_t* name) {
    std::uint64_t id = 0;
    if (name) guarded(Source::nvtx, [&] { id = start(narrow(name)); });
    return id;
}
std::uint64_t range_start_ex(const abi::NvtxAttributes* attributes) {
    std::uint64_t id = 0;
    guarded(Source::nvtx, [&] { id = start(name_of(attributes)); });
    return id;
}
void range_end(std::uint64_t id) { end(id); }

int domain_push_ex(const void* domain, const abi::NvtxAttributes* attributes) {
    guarded(Source::nvtx, [&] { push(id_of(domain), name_of(attributes)); });
    return abi::kNvtxNotTracked;
}
int domain_pop(const void* domain) {
    pop(id_of(domain));
    return abi::kNvtxNotTracked;
}
std::uint64_t domain_start_ex(const void* domain, const abi::NvtxAttributes* attributes) {
    return id_of(domain) == kLibraryDomain ? 0 : range_start_ex(attributes);
}
void domain_end(const void*, std::uint64_t id) { end(id); }

const void* domain_create_a(const char* name) {
    const void* out = nullptr;
    guarded(Source::nvtx, [&] {
        Names& all = names();
        const std::string text = name ? name : "";
        const std::lock_guard lock(all.mutex);
        const auto next = static_cast<std::uint32_t>(kLibraryDomain + 1 + all.domains.size());
        out = &all.domains.try_emplace(text, Domain{is_library(text) ? kLibraryDomain : next}).first->second;
    });
    return out;
}
const void* domain_create_w(const wchar_t* name) {
    const void* out = nullptr;
    guarded(Source::nvtx, [&] { out = domain_create_a(name ? narrow(name).c_str() : ""); });
    return out;
}
const void* register_string_a(const void*, const char* text) {
    const void* out = nullptr;
    guarded(Source::nvtx, [&] {
        const std::lock_guard lock(names().mutex);
        out = &names().strings.try_emplace(text ? text : "", 0).first->first;
    });
    return out;
}
const void* register_string_w(const void* domain, const wchar_t* text) {
    const void* out = nullptr;
    guarded(Source::nvtx, [&] { out = register_string_a(domain, text ? narrow(text).c_str() : ""); });
    return out;
}

template <class Function>
struct Entry {
    unsigned id;
    Function function;
};

// The part of NVTX's table that is ours. Older versions have shorter tables.
template <class... Functions>
void put(abi::NvtxFunction** table, unsigned size, Entry<Functions>... entries) {
    const auto put_one = [&](const auto& entry) {
        if (entry.id < size && table[entry.id])
            *table[entry.id] = reinterpret_cast<abi::NvtxFunction>(entry.function);
    };
    (put_one(entries), ...);
}

// The ids are NvtxCallbackIdCore and NvtxCallbackIdCore2.
void put_core(abi::NvtxFunction** table, unsigned size) {
    put(table, size, Entry{4, range_start_ex}, Entry{5, range_start_a}, Entry{6, range_start_w},
        Entry{7, range_end}, Entry{8, range_push_ex}, Entry{9, range_push_a}, Entry{10, range_push_w},
        Entry{11, range_pop});
}

void put_core2(abi::NvtxFunction** table, unsigned size) {
    put(table, size, Entry{2, domain_start_ex}, Entry{3, domain_end}, Entry{4, domain_push_ex},
        Entry{5, domain_pop}, Entry{10, register_string_a}, Entry{11, register_string_w},
        Entry{12, domain_create_a}, Entry{13, domain_create_w});
}

// 0: NVTX switches itself off in this module, as without a tool.
int attach(abi::NvtxExports exports) {
    if (!exports || !run()) return 0;
    const auto* const callbacks = static_cast<const abi::NvtxCallbackTable*>(exports(abi::kNvtxCallbacks));
    if (!callbacks || callbacks->size < sizeof *callbacks || !callbacks->functions_of) return 0;
    abi::NvtxFunction** table = nullptr;
    unsigned size = 0;
    if (!callbacks->functions_of(abi::kNvtxCore, &table, &size)) return 0;
    put_core(table, size);
    // Version 2 of the interface has no domains.
    if (callbacks->functions_of(abi::kNvtxCore2, &table, &size)) put_core2(table, size);
    return 1;
}

}  // namespace
}  // namespace mp::raw

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    mp::raw::abi::NvtxExports exports) {
    int attached = 0;
    mp::raw::guarded(mp::raw::Source::nvtx, [&] { attached = mp::raw::attach(exports); });
    return attached;
}
