// The extensions of NVTX: memory with names, and ranges with payloads that a schema describes. Each module of the
// program that uses one calls InitializeInjectionNvtxExtension once with slots for its functions.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "instrument/cuda/nvtx.hpp"
#include "instrument/cuda/per_process.hpp"
#include "instrument/cuda/process.hpp"

namespace mp::raw::nvtx {
namespace {

// ---- Memory. -----------------------------------------------------------------------------------------

// Element i of an array whose elements may be longer than those that this knows.
template <class T>
const T* element(const void* all, std::size_t stride, std::size_t i) {
    return stride < sizeof(T) ? nullptr
                              : reinterpret_cast<const T*>(static_cast<const char*>(all) + i * stride);
}

// Calls `use` for the elements of a batch, in a process that is observed.
template <class T, class Batch, class Use>
void for_each(const Batch* batch, const void* Batch::* elements, const Use& use) noexcept {
    Run* const r = run();
    if (!r || !batch || !is_armed(Source::nvtx)) return;
    guarded(Source::nvtx, [&] {
        for (std::size_t i = 0; batch->*elements && i < batch->count; ++i)
            if (const T* const e = element<T>(batch->*elements, batch->stride, i)) use(r->names(), *e, i);
    });
}

// Handles are the addresses: the program only hands them back.
const void* register_heap(const void*, const abi::NvtxHeap* heap) {
    const void* handle = nullptr;
    Run* const r = run();
    if (!r || !heap || !is_armed(Source::nvtx)) return handle;
    guarded(Source::nvtx, [&] {
        if (heap->type != abi::kMemoryVirtual || heap->range_size < sizeof(abi::NvtxVirtualRange)) return;
        const auto& range = *static_cast<const abi::NvtxVirtualRange*>(heap->range);
        handle = range.at;
        r->names().set(range.at, range.bytes, text_of(static_cast<int>(heap->message_type), heap->message));
    });
    return handle;
}
void unregister_heap(const void*, const void* heap) {
    Run* const r = run();
    if (r && heap) guarded(Source::nvtx, [&] { r->names().end(heap); });
}
void register_regions(const void*, const abi::NvtxRegions* regions) {
    if (!regions || regions->type != abi::kMemoryVirtual) return;
    for_each<abi::NvtxVirtualRange>(regions, &abi::NvtxRegions::ranges,
                                    [&](MemoryNames& names, const auto& range, std::size_t i) {
                                        names.set(range.at, range.bytes);
                                        if (regions->handles) regions->handles[i] = range.at;
                                    });
}
void resize_regions(const void*, const abi::NvtxResizedRegions* regions) {
    if (!regions || regions->type != abi::kMemoryVirtual) return;
    for_each<abi::NvtxVirtualRange>(
        regions, &abi::NvtxResizedRegions::ranges,
        [](MemoryNames& names, const auto& range, std::size_t) { names.resize(range.at, range.bytes); });
}
void unregister_regions(const void*, const abi::NvtxEndedRegions* regions) {
    for_each<const void*>(regions, &abi::NvtxEndedRegions::references,
                          [](MemoryNames& names, const void* const& at, std::size_t) { names.end(at); });
}
void name_regions(const void*, const abi::NvtxRegionNames* regions) {
    for_each<abi::NvtxRegionName>(regions, &abi::NvtxRegionNames::names,
                                  [](MemoryNames& names, const auto& n, std::size_t) {
                                      names.name(n.region, text_of(static_cast<int>(n.message_type), n.name));
                                  });
}

// ---- Payloads. ---------------------------------------------------------------------------------------

struct Entry {
    std::uint64_t type = 0, flags = 0;
    std::size_t offset = 0;
    std::string name;
};
struct Schema {
    std::string name;
    std::vector<Entry> entries;  // those whose place is known
};

// By their ids; those of the program's choice and ours do not meet. They live as long as the process.
struct Schemas {
    std::mutex mutex;
    std::map<std::uint64_t, Schema> all;
    std::uint64_t next = abi::kFirstDynamicSchema;
};
constinit PerProcess<Schemas> g_schemas;
Schemas& schemas() { return g_schemas.get(); }

constexpr std::size_t kMostSchemas = 4096, kMostEntries = 64;

// The predefined types, by their numbers: bytes, and whether they are signed integers, other integers or neither.
struct Type {
    std::size_t bytes;
    char kind;
};
Type type_of(std::uint64_t type) {
    static constexpr Type kTypes[] = {{0, 0},   {1, 's'}, {1, 'u'}, {2, 's'}, {2, 'u'}, {4, 's'},
                                      {4, 'u'}, {8, 's'}, {8, 'u'}, {8, 's'}, {8, 'u'}, {1, 's'},
                                      {1, 'u'}, {2, 's'}, {2, 'u'}, {4, 's'}, {4, 'u'}, {8, 's'},
                                      {8, 'u'}, {4, 0},   {8, 0},   {16, 0},  {8, 'u'}, {8, 'u'}};
    if (type < std::size(kTypes)) return kTypes[type];
    return type == abi::kEntryText || type == abi::kEntryUtf8 || type == abi::kEntryRegistered
               ? Type{sizeof(void*), 't'}
               : Type{0, 0};
}

// The entries up to the first whose size is not known here, where the later ones have no offsets of their own.
Schema schema_of(const abi::NvtxSchema& s) {
    Schema schema;
    if ((s.mask & abi::kSchemaName) != 0 && s.name) schema.name = s.name;
    const std::size_t pack = (s.mask & abi::kSchemaPack) != 0 ? s.pack : 0;
    std::size_t at = 0;
    bool known = true;
    for (std::size_t i = 0; s.entries && i < std::min(s.count, kMostEntries); ++i) {
        const abi::NvtxSchemaEntry& e = s.entries[i];
        const Type type = type_of(e.type);
        const bool plain = (e.flags & ~abi::kEntryMessage) == abi::kEntryPlain && type.bytes > 0;
        known = (known || e.offset > 0) && plain;
        if (!known) continue;
        const std::size_t align = pack > 0 ? std::min(pack, type.bytes) : type.bytes;
        at = e.offset > 0 ? e.offset : (at + align - 1) / align * align;
        schema.entries.push_back({e.type, e.flags, at, e.name ? e.name : ""});
        at += type.bytes;
    }
    return schema;
}

std::uint64_t register_schema(const void*, const abi::NvtxSchema* schema) {
    std::uint64_t id = 0;
    if (!schema || !run()) return id;
    guarded(Source::nvtx, [&] {
        const std::lock_guard lock(schemas().mutex);
        if (schemas().all.size() >= kMostSchemas) return;
        id = (schema->mask & abi::kSchemaId) != 0 ? schema->id : schemas().next++;
        if (schema->type == abi::kSchemaStatic) schemas().all[id] = schema_of(*schema);
    });
    return id;
}
// Enumerations describe values that are not read.
std::uint64_t register_enumeration(const void*, const void*) {
    std::uint64_t id = 0;
    guarded(Source::nvtx, [&] {
        const std::lock_guard lock(schemas().mutex);
        id = schemas().next++;
    });
    return id;
}

std::int64_t integer(const void* at, Type type) {
    std::int64_t value = 0;
    std::memcpy(&value, at, type.bytes);
    const auto unused = 64 - 8 * static_cast<unsigned>(type.bytes);
    return type.kind == 's' ? static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused
                            : value;
}

std::string text_at(const void* at, std::uint64_t type) {
    const void* text = nullptr;
    std::memcpy(&text, at, sizeof text);
    return text_of(type == abi::kEntryRegistered ? abi::kNvtxRegistered : abi::kNvtxAscii, {text});
}

bool counts(const std::string& name) {
    return name == "layer" || name == "block" || name == "stage" || name == "step" || name == "iteration" ||
           name == "iter";
}

int range_push_payload(const void* domain, const abi::NvtxPayload* payloads, std::size_t count) {
    guarded(Source::nvtx, [&] { push(id_of(domain), name_of_payloads(payloads, count, {})); });
    return abi::kNvtxNotTracked;
}
int range_pop_payload(const void* domain, const abi::NvtxPayload*, std::size_t) {
    pop(id_of(domain));
    return abi::kNvtxNotTracked;
}
std::uint64_t range_start_payload(const void*, const abi::NvtxPayload* payloads, std::size_t count) {
    std::uint64_t id = 0;
    guarded(Source::nvtx, [&] { id = start(name_of_payloads(payloads, count, {})); });
    return id;
}
void range_end_payload(const void*, std::uint64_t id, const abi::NvtxPayload*, std::size_t) { end(id); }

// The integer of that name in a payload; an address is one.
std::int64_t field(const Schema& schema, const abi::NvtxPayload& payload, std::string_view name,
                   std::int64_t otherwise) {
    for (const Entry& e : schema.entries) {
        const Type type = type_of(e.type);
        if (e.name != name || type.kind == 0 || e.offset + type.bytes > payload.bytes) continue;
        return integer(static_cast<const char*>(payload.data) + e.offset, type);
    }
    return otherwise;
}

// What mptrace_nvtx_tensor() of mptrace.h says.
NamedTensor tensor_of(const Schema& schema, const abi::NvtxPayload& payload) {
    const auto number = [&](std::string_view name, std::int64_t otherwise) {
        return field(schema, payload, name, otherwise);
    };
    NamedTensor tensor{};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): NVTX gives the address as an integer
    tensor.data = reinterpret_cast<const void*>(number("data", 0));
    tensor.dtype = static_cast<DType>(number("dtype", 0));
    tensor.role = static_cast<int>(number("role", 0));
    tensor.elements = number("size0", 1) * number("size1", 1) * number("size2", 1) * number("size3", 1);
    for (const Entry& e : schema.entries)
        if (e.type == abi::kEntryText && e.name == "name" && e.offset + sizeof(void*) <= payload.bytes)
            tensor.name = text_at(static_cast<const char*>(payload.data) + e.offset, e.type);
    return tensor;
}

void mark_payload(const void*, const abi::NvtxPayload* payloads, std::size_t count) {
    Run* const r = run();
    if (!r || !is_armed(Source::nvtx)) return;
    guarded(Source::nvtx, [&] {
        std::vector<NamedTensor> told;
        {
            const std::lock_guard lock(schemas().mutex);
            for (std::size_t i = 0; payloads && i < count; ++i) {
                const auto found = schemas().all.find(payloads[i].schema);
                if (found == schemas().all.end() || !payloads[i].data) continue;
                if (found->second.name == "mptrace.tensor")
                    told.push_back(tensor_of(found->second, payloads[i]));
            }
        }
        for (NamedTensor& tensor : told)
            if (tensor.data && tensor.elements > 0) r->name_tensor(std::move(tensor));
    });
}
// What it is without a tool.
std::uint8_t domain_is_enabled(const void*) { return 1; }

// ---- Slots. ------------------------------------------------------------------------------------------

template <class Function>
void put(const abi::NvtxSegment& segment, std::size_t slot, Function function) {
    if (slot < segment.slots) segment.functions[slot] = reinterpret_cast<std::intptr_t>(function);
}

// The slots are the ids of nvToolsExtMem.h and of nvToolsExtPayload.h.
void attach_memory(const abi::NvtxSegment& s) {
    put(s, 0, register_heap);
    put(s, 1, unregister_heap);
    put(s, 3, register_regions);
    put(s, 4, resize_regions);
    put(s, 5, unregister_regions);
    put(s, 6, name_regions);
}
void attach_payloads(const abi::NvtxSegment& s) {
    put(s, 0, register_schema);
    put(s, 1, register_enumeration);
    put(s, 2, mark_payload);
    put(s, 3, range_push_payload);
    put(s, 4, range_pop_payload);
    put(s, 5, range_start_payload);
    put(s, 6, range_end_payload);
    put(s, 7, domain_is_enabled);
}

int attach(abi::NvtxExtension* extension) {
    if (!extension || extension->size < sizeof *extension || !run()) return 0;
    if (extension->segments_count != 1 || !extension->segments || !extension->segments->functions) return 0;
    if (extension->module == abi::kNvtxMemory) attach_memory(*extension->segments);
    if (extension->module == abi::kNvtxPayload) attach_payloads(*extension->segments);
    return extension->module == abi::kNvtxMemory || extension->module == abi::kNvtxPayload;
}

}  // namespace

std::string name_of_payloads(const abi::NvtxPayload* payloads, std::size_t count, std::string name) {
    std::string of_schema;
    const bool named = !name.empty();
    const std::lock_guard lock(schemas().mutex);
    for (std::size_t i = 0; payloads && i < count; ++i) {
        const auto found = schemas().all.find(payloads[i].schema);
        if (found == schemas().all.end() || !payloads[i].data) continue;
        if (of_schema.empty()) of_schema = found->second.name;
        const auto* const data = static_cast<const char*>(payloads[i].data);
        for (const Entry& e : found->second.entries) {
            const Type type = type_of(e.type);
            if (e.offset + type.bytes > payloads[i].bytes) continue;
            if (type.kind == 't') {
                if (!named && (name.empty() || (e.flags & abi::kEntryMessage) != 0))
                    name = text_at(data + e.offset, e.type);
            } else if (type.kind != 0 && counts(e.name)) {
                const std::int64_t number = integer(data + e.offset, type);
                name = name.empty() ? e.name + " " + std::to_string(number) : with_number(name, number);
            }
        }
    }
    return name.empty() ? of_schema : name;
}

}  // namespace mp::raw::nvtx

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    mp::raw::abi::NvtxExtension* extension) {
    int attached = 0;
    mp::raw::guarded(mp::raw::Source::nvtx, [&] { attached = mp::raw::nvtx::attach(extension); });
    return attached;
}
