#include "runtime/launch/elf.hpp"

#include <elf.h>
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "tests/runtime/launch/temporary_directory.hpp"

namespace mp::launch {
namespace {

using Elf = TemporaryDirectory;

template <typename T>
void append(std::string& out, const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Shape {
    std::string build_id;  // raw bytes; empty: no note
    bool note_is_loaded = true;
    std::string interpreter;
};

// A small but well-formed 64-bit file: header, program headers, interpreter, notes.
std::string elf_file(const Shape& shape) {
    std::string notes;
    if (!shape.build_id.empty()) {
        append(notes, Elf64_Nhdr{.n_namesz = 4, .n_descsz = 2, .n_type = 77});  // another note first
        notes += std::string("GNU\0ab\0\0", 8);
        append(notes, Elf64_Nhdr{.n_namesz = 4,
                                 .n_descsz = static_cast<Elf64_Word>(shape.build_id.size()),
                                 .n_type = NT_GNU_BUILD_ID});
        notes += std::string("GNU\0", 4) + shape.build_id;
    }
    const std::size_t interpreter_at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
    const std::string interpreter = shape.interpreter.empty() ? "" : shape.interpreter + '\0';
    const std::size_t notes_at = interpreter_at + interpreter.size();
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_machine = EM_X86_64;
    head.e_phoff = sizeof head;
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_phnum = 3;
    const auto segment = [](std::uint32_t type, std::size_t at, std::size_t size) {
        Elf64_Phdr p{};
        p.p_type = type;
        p.p_offset = p.p_vaddr = at;
        p.p_filesz = p.p_memsz = size;
        return p;
    };
    std::string out;
    append(out, head);
    append(out, segment(PT_LOAD, 0, shape.note_is_loaded ? notes_at + notes.size() : notes_at));
    append(out, segment(interpreter.empty() ? PT_NULL : PT_INTERP, interpreter_at, interpreter.size()));
    append(out, segment(PT_NOTE, notes_at, notes.size()));
    return out + interpreter + notes;
}

TEST_F(Elf, IdIsTheFirstSixteenDigitsOfTheBuildId) {
    const std::string id("\xfe\xae\xfb\xc5\x59\xe7\x42\x98\xc6\x7a", 10);
    const Result<std::string> found =
        adapter_id(write("a.so", elf_file({.build_id = id, .interpreter = ""})));
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, "feaefbc559e74298");
}

TEST_F(Elf, IdWithoutABuildIdIsTheSize) {
    const std::string file = elf_file({.build_id = "", .interpreter = ""});
    const Result<std::string> found = adapter_id(write("a.so", file));
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, "size-" + std::to_string(file.size()));
}

TEST_F(Elf, ANoteThatNoSegmentLoadsDoesNotCount) {
    const std::string file = elf_file({.build_id = "12345678", .note_is_loaded = false, .interpreter = ""});
    EXPECT_EQ(*adapter_id(write("a.so", file)), "size-" + std::to_string(file.size()));
}

TEST_F(Elf, InterpreterTellsDynamicFromStatic) {
    const auto facts =
        read_elf(write("a", elf_file({.build_id = "", .interpreter = "/lib64/ld-linux-x86-64.so.2"})));
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->bits, 64);
    EXPECT_EQ(facts->interpreter, "/lib64/ld-linux-x86-64.so.2");
    const auto own = read_elf("/proc/self/exe");
    ASSERT_TRUE(own);
    EXPECT_FALSE(own->interpreter.empty());
    EXPECT_TRUE(read_elf(write("b", elf_file({})))->interpreter.empty());
}

// elf_file() and a table of symbols behind it, all of them names of units.
std::string with_units(const std::vector<std::string>& units) {
    std::string names(1, '\0'), symbols;
    const auto add = [&symbols](std::size_t name, unsigned char info) {
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<Elf64_Word>(name);
        symbol.st_info = info;
        append(symbols, symbol);
    };
    for (const std::string& unit : units) {
        add(names.size(), ELF64_ST_INFO(STB_LOCAL, STT_FILE));
        names += unit + '\0';
    }
    add(1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC));
    std::string out = elf_file({});
    Elf64_Ehdr head{};
    std::memcpy(&head, out.data(), sizeof head);
    head.e_shoff = out.size() + symbols.size() + names.size();
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shnum = 2;
    std::memcpy(out.data(), &head, sizeof head);
    Elf64_Shdr table{}, text{};
    table.sh_type = SHT_SYMTAB;
    table.sh_offset = out.size();
    table.sh_size = symbols.size();
    table.sh_link = 1;
    text.sh_type = SHT_STRTAB;
    text.sh_offset = out.size() + symbols.size();
    text.sh_size = names.size();
    out += symbols + names;
    append(out, table);
    append(out, text);
    return out;
}

TEST_F(Elf, UnitsHaveTheNamesOfTheirSources) {
    const std::vector<std::string> units = {"tmpxft_00007169_00000000-6_train_gpt2.cudafe1.cpp",
                                            "tmpxft_00005dfc_00000000-6_zero.compute_90.cudafe1.cpp",
                                            "kept.cudafe1.cpp", "main.cpp", "main.cpp"};
    EXPECT_THAT(unit_names(write("a", with_units(units))),
                testing::ElementsAre("kept.cu", "main.cpp", "train_gpt2.cu", "zero.cu"));
    EXPECT_THAT(unit_names("/proc/self/exe"), testing::Contains("elf_test.cpp"));
    EXPECT_THAT(unit_names(write("stripped", elf_file({}))), testing::IsEmpty());
    EXPECT_THAT(unit_names(write("text", "text")), testing::IsEmpty());
}

TEST_F(Elf, OtherFilesAreErrors) {
    for (const char* text : {"", "#!/bin/sh\n",
                             "\x7f"
                             "ELF",
                             "\x7f"
                             "ELF\2\1\1"})
        EXPECT_FALSE(read_elf(write("x", text)));
    EXPECT_FALSE(read_elf(path("gone")));
    EXPECT_FALSE(read_elf(path()));
    EXPECT_FALSE(adapter_id(write("y", "text")));
}

TEST_F(Elf, DamagedFilesNeverCrash) {
    const std::string notes = elf_file({.build_id = "0123456789abcdef0123", .interpreter = "/lib64/ld.so"});
    const std::string units = with_units({"tmpxft_00007169_00000000-6_a.cudafe1.cpp", "tmpxft_.cudafe1.cpp"});
    std::mt19937 random(4);
    for (int i = 0; i < 3000; ++i) {
        std::string bad = i % 2 == 0 ? notes : units;
        for (std::size_t k = 0; k <= random() % 4; ++k)
            bad[random() % bad.size()] = static_cast<char>(random());
        if (random() % 4 == 0) bad.replace(32, 8, 8, '\xff');  // e_phoff
        if (random() % 4 == 0) bad.resize(random() % bad.size());
        const std::string file = write("bad", bad);
        (void)read_elf(file);
        (void)adapter_id(file);
        (void)unit_names(file);
    }
}

}  // namespace
}  // namespace mp::launch
