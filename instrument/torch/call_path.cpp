#include "instrument/torch/call_path.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace mp::twin {
namespace {

constexpr int kDeepest = 96;  // frames of torch between an op and its caller
constexpr std::size_t kOwnFrames = 2;

struct Function {
    std::uint64_t begin = 0, end = 0;  // addresses in the file
    std::string name;
};

// "sharded::BlockImpl::forward(at::Tensor, ...)" -> "BlockImpl.forward"
std::string short_name(const char* symbol) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> whole(abi::__cxa_demangle(symbol, nullptr, nullptr, &status),
                                                       std::free);
    std::string_view name = status == 0 && whole ? whole.get() : symbol;
    const std::string_view anonymous = "(anonymous namespace)::";
    std::string text(name);
    for (std::size_t at = text.find(anonymous); at != std::string::npos; at = text.find(anonymous))
        text.erase(at, anonymous.size());
    text.erase(std::min(text.find_first_of("(<"), text.size()));
    const std::size_t last = text.rfind("::");
    if (last == std::string::npos) return text;
    const std::size_t before = text.rfind("::", last - 1);
    const std::string owner = text.substr(before == std::string::npos ? 0 : before + 2,
                                          last - (before == std::string::npos ? 0 : before + 2));
    // By most conventions a class begins with a capital letter and a namespace does not.
    const bool is_class = !owner.empty() && owner.front() >= 'A' && owner.front() <= 'Z';
    return is_class ? owner + "." + text.substr(last + 2) : text.substr(last + 2);
}

// The running program: its place in memory and its functions.
class Executable {
public:
    Executable() {
        ::dl_iterate_phdr(
            [](dl_phdr_info* info, std::size_t, void* self) {
                static_cast<Executable*>(self)->place(*info);
                return 1;  // the first one is the program
            },
            this);
        read_functions();
    }

    bool contains(std::uint64_t address) const { return address >= begin_ && address < end_; }
    std::uint64_t in_file(std::uint64_t address) const { return address - base_; }

    const Function* function_at(std::uint64_t in_file) const {
        const auto after = std::upper_bound(functions_.begin(), functions_.end(), in_file,
                                            [](std::uint64_t at, const Function& f) { return at < f.begin; });
        if (after == functions_.begin()) return nullptr;
        const Function& f = *std::prev(after);
        return in_file < f.end ? &f : nullptr;
    }

private:
    void place(const dl_phdr_info& info) {
        base_ = info.dlpi_addr;
        for (int i = 0; i < info.dlpi_phnum; ++i) {
            const auto& segment = info.dlpi_phdr[i];
            if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
            begin_ = base_ + segment.p_vaddr;
            end_ = begin_ + segment.p_memsz;
        }
    }

    // A stripped program has no names. Its layers stay unknown, and only addresses are recorded.
    void read_functions() {
        const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        if (file < 0) return;
        struct stat info{};
        void* map = MAP_FAILED;
        if (::fstat(file, &info) == 0 && info.st_size > static_cast<off_t>(sizeof(Elf64_Ehdr)))
            map = ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
        ::close(file);
        if (map == MAP_FAILED) return;
        read_symbols(static_cast<const char*>(map), static_cast<std::size_t>(info.st_size));
        ::munmap(map, static_cast<std::size_t>(info.st_size));
        std::sort(functions_.begin(), functions_.end(),
                  [](const Function& a, const Function& b) { return a.begin < b.begin; });
    }

    void read_symbols(const char* bytes, std::size_t size) {
        const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes);
        if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
            return;
        const std::uint64_t count = header->e_shnum;
        if (header->e_shoff > size || count * sizeof(Elf64_Shdr) > size - header->e_shoff) return;
        const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
        for (std::uint64_t i = 0; i < count; ++i) {
            const Elf64_Shdr& s = sections[i];
            if (s.sh_type != SHT_SYMTAB || s.sh_link >= count) continue;
            const Elf64_Shdr& names = sections[s.sh_link];
            if (s.sh_offset > size || s.sh_size > size - s.sh_offset || names.sh_offset > size ||
                names.sh_size > size - names.sh_offset || names.sh_size == 0)
                return;
            if (bytes[names.sh_offset + names.sh_size - 1] != '\0') return;
            const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes + s.sh_offset);
            for (std::uint64_t k = 0; k < s.sh_size / sizeof(Elf64_Sym); ++k) {
                const Elf64_Sym& symbol = symbols[k];
                if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0 ||
                    symbol.st_name >= names.sh_size)
                    continue;
                functions_.push_back({symbol.st_value, symbol.st_value + symbol.st_size,
                                      short_name(bytes + names.sh_offset + symbol.st_name)});
            }
        }
    }

    std::uint64_t base_ = 0, begin_ = 0, end_ = 0;
    std::vector<Function> functions_;
};

// Never destroyed, because ops may run during static destructors.
const Executable& executable() {
    static const auto* const program = new Executable();
    return *program;
}

struct Frames {
    std::uint64_t own[kOwnFrames] = {};
    std::size_t count = 0;
    int depth = 0;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* given) {
    auto* const frames = static_cast<Frames*>(given);
    // A return address is the one after its call.
    const std::uint64_t address = static_cast<std::uint64_t>(_Unwind_GetIP(context)) - 1;
    if (executable().contains(address)) frames->own[frames->count++] = executable().in_file(address);
    const bool enough = frames->count == kOwnFrames || ++frames->depth >= kDeepest;
    return enough ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

CallPath CallPaths::here() {
    Frames frames;
    _Unwind_Backtrace(visit, &frames);
    if (frames.count == 0) return {};
    const Function* const inner = executable().function_at(frames.own[0]);
    const Function* const outer = frames.count > 1 ? executable().function_at(frames.own[1]) : nullptr;
    if (!inner) return {0, frames.own[0]};
    const std::uint64_t key = inner->begin * 0x9E3779B97F4A7C15ull + (outer ? outer->begin : 0);
    const std::lock_guard lock(mutex_);
    auto it = known_.find(key);
    if (it == known_.end()) {
        const bool shows_outer = outer && outer != inner && outer->name != "main";
        it = known_.emplace(key, layers_.intern(shows_outer ? outer->name + "." + inner->name : inner->name))
                 .first;
    }
    return {it->second, frames.own[0]};
}

std::string source_of_call(std::uint64_t address) {
    if (address == 0) return "";
    char text[32];
    std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(address));
    return program_invocation_short_name + std::string(text);
}

}  // namespace mp::twin
