#include "runtime/launch/elf.hpp"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/input_file.hpp"

namespace mp::launch {
namespace {

constexpr std::size_t kMostHeaders = 512;       // real files have about ten
constexpr std::size_t kLongestNotes = 1 << 16;  // real ones: below 200 bytes
constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kMostSections = 1 << 16;  // as many as e_shnum can count
constexpr std::size_t kLargestTable =
    64 << 20;  // of symbols, and of their names; those of an LLVM tool have 20 MiB

class ElfFile {
public:
    explicit ElfFile(const std::string& path) : file_(path) {}

    bool is_open() const { return file_.is_open(); }

    // Reads `into` completely from `offset`; false when that fails.
    bool read(std::uint64_t offset, std::span<std::byte> into) const {
        return read_at(file_.get(), offset, into.data(), into.size()) == into.size();
    }

    template <typename T>
    bool read_value(std::uint64_t offset, T& value) const {
        return read(offset, std::as_writable_bytes(std::span(&value, 1)));
    }

private:
    InputFile file_;
};

std::string hex(std::span<const std::byte> bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (const std::byte b : bytes) {
        out += kDigits[std::to_integer<unsigned>(b) >> 4];
        out += kDigits[std::to_integer<unsigned>(b) & 15];
    }
    return out;
}

// A note has a name and a descriptor, each padded to four bytes.
std::string build_id_in(std::span<const std::byte> notes) {
    const auto padded = [](std::size_t n) { return (n + 3) & ~std::size_t{3}; };
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr head{};
        std::memcpy(&head, notes.data(), sizeof head);
        notes = notes.subspan(sizeof head);
        if (head.n_namesz > notes.size() || padded(head.n_namesz) > notes.size()) return {};
        const bool gnu = head.n_namesz == 4 && std::memcmp(notes.data(), "GNU", 4) == 0;
        notes = notes.subspan(padded(head.n_namesz));
        if (head.n_descsz > notes.size()) return {};
        if (gnu && head.n_type == NT_GNU_BUILD_ID) return hex(notes.first(head.n_descsz));
        notes = notes.subspan(std::min(padded(head.n_descsz), notes.size()));
    }
    return {};
}

void read_interpreter(const ElfFile& file, const Elf64_Phdr& header, ElfFacts& facts) {
    std::array<char, kLongestPath> text{};
    const std::size_t size = std::min<std::size_t>(header.p_filesz, text.size() - 1);
    if (!file.read(header.p_offset, std::as_writable_bytes(std::span(text).first(size)))) return;
    facts.interpreter = text.data();
}

// The preload reads the library in memory, so a note outside of loaded segments does not count.
bool is_loaded(const Elf64_Phdr& part, std::span<const Elf64_Phdr> headers) {
    return std::any_of(headers.begin(), headers.end(), [&part](const Elf64_Phdr& load) {
        return load.p_type == PT_LOAD && part.p_vaddr >= load.p_vaddr && part.p_memsz <= load.p_memsz &&
               part.p_vaddr - load.p_vaddr <= load.p_memsz - part.p_memsz;
    });
}

void read_notes(const ElfFile& file, const Elf64_Phdr& header, ElfFacts& facts) {
    if (!facts.build_id.empty()) return;
    std::vector<std::byte> notes(std::min<std::size_t>(header.p_filesz, kLongestNotes));
    if (file.read(header.p_offset, notes)) facts.build_id = build_id_in(notes);
}

// The bytes of a section; empty when it is too large or outside of the file.
std::vector<std::byte> section(const ElfFile& file, const Elf64_Shdr& header) {
    if (header.sh_size > kLargestTable) return {};
    std::vector<std::byte> bytes(header.sh_size);
    if (!file.read(header.sh_offset, bytes)) return {};
    return bytes;
}

// "train.cu" of nvcc's "tmpxft_00007169_00000000-6_train.cudafe1.cpp", or "..._train.compute_90.cudafe1.cpp" for one
// architecture; other names as they are.
std::string source_name(std::string_view unit) {
    constexpr std::string_view kEnd = ".cudafe1.cpp", kBegin = "tmpxft_";
    if (!unit.ends_with(kEnd)) return std::string(unit);
    unit.remove_suffix(kEnd.size());
    unit = unit.substr(0, unit.rfind(".compute_"));
    if (unit.starts_with(kBegin))
        for (int i = 0; i < 3; ++i) unit.remove_prefix(std::min(unit.find('_') + 1, unit.size()));
    return std::string(unit) + ".cu";
}

// The names of STT_FILE symbols.
std::set<std::string> file_names(std::span<const std::byte> symbols, std::span<const std::byte> names) {
    const std::string_view text(reinterpret_cast<const char*>(names.data()), names.size());
    std::set<std::string> found;
    for (; symbols.size() >= sizeof(Elf64_Sym); symbols = symbols.subspan(sizeof(Elf64_Sym))) {
        Elf64_Sym symbol{};
        std::memcpy(&symbol, symbols.data(), sizeof symbol);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FILE || symbol.st_name >= text.size()) continue;
        const std::string_view name = text.substr(symbol.st_name);
        if (name.front() != '\0') found.insert(source_name(name.substr(0, name.find('\0'))));
    }
    return found;
}

}  // namespace

std::vector<std::string> unit_names(const std::string& path) {
    const Result<ElfFacts> facts = read_elf(path);
    if (!facts || facts->bits != 64 || !facts->little_endian) return {};
    const ElfFile file(path);
    Elf64_Ehdr head{};
    if (!file.read_value(0, head) || head.e_shentsize != sizeof(Elf64_Shdr)) return {};
    std::vector<Elf64_Shdr> sections(std::min<std::size_t>(head.e_shnum, kMostSections));
    if (!file.read(head.e_shoff, std::as_writable_bytes(std::span(sections)))) return {};
    std::set<std::string> names;
    for (const Elf64_Shdr& header : sections)
        if (header.sh_type == SHT_SYMTAB && header.sh_link < sections.size())
            names.merge(file_names(section(file, header), section(file, sections[header.sh_link])));
    return {names.begin(), names.end()};
}

Result<ElfFacts> read_elf(const std::string& path) {
    const ElfFile file(path);
    if (!file.is_open()) return Error{path + ": " + std::strerror(errno), ""};
    Elf64_Ehdr head{};
    std::array<unsigned char, EI_NIDENT> ident{};
    if (!file.read_value(0, ident) || std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0)
        return Error{path + ": not an ELF file", ""};
    ElfFacts facts;
    facts.bits = ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
    facts.little_endian = ident[EI_DATA] == ELFDATA2LSB;
    // e_machine has the same offset in both classes.
    if (!file.read_value(offsetof(Elf64_Ehdr, e_machine), facts.machine))
        return Error{path + ": not an ELF file", ""};
    if (facts.bits != 64 || !facts.little_endian) return facts;
    if (!file.read_value(0, head)) return Error{path + ": not an ELF file", ""};
    if (head.e_phentsize != sizeof(Elf64_Phdr)) return facts;
    std::vector<Elf64_Phdr> headers(std::min<std::size_t>(head.e_phnum, kMostHeaders));
    if (!file.read(head.e_phoff, std::as_writable_bytes(std::span(headers)))) return facts;
    for (const Elf64_Phdr& header : headers) {
        if (header.p_type == PT_INTERP) read_interpreter(file, header, facts);
        if (header.p_type == PT_NOTE && is_loaded(header, headers)) read_notes(file, header, facts);
    }
    return facts;
}

Result<std::string> adapter_id(const std::string& libtorch_cpu) {
    const Result<ElfFacts> facts = read_elf(libtorch_cpu);
    if (!facts) return facts.error();
    if (!facts->build_id.empty()) return facts->build_id.substr(0, 16);
    struct stat info{};
    if (::stat(libtorch_cpu.c_str(), &info) != 0)
        return Error{libtorch_cpu + ": " + std::strerror(errno), ""};
    return "size-" + std::to_string(info.st_size);
}

}  // namespace mp::launch
