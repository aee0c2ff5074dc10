#include "runtime/launch/torch_finder.hpp"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/base/child.hpp"
#include "kernels/base/input_file.hpp"
#include "kernels/base/paths.hpp"
#include "runtime/launch/elf.hpp"
#include "runtime/launch/layout.hpp"
#include "runtime/launch/words.hpp"

namespace mp::launch {
namespace {

// An interpreter on a slow network file system needs some seconds. One that needs longer than this will not
// answer.
constexpr ChildLimits kPatience{.milliseconds = 30'000};

// Without -I, because the program will import a torch in the user's site or on PYTHONPATH. The first line
// replaces the other effect of -I: no import from the working directory. The marks separate the answer from
// output of the user's sitecustomize.
constexpr const char* kProbe = R"(import sys
sys.path[:] = [p for p in sys.path if p]
import importlib.util, os
spec = importlib.util.find_spec("torch")
where = os.path.dirname(os.path.abspath(spec.origin)) if spec and spec.origin else ""
sys.stdout.flush()
os.write(1, b"\0torch\0" + os.fsencode(where) + b"\0" + os.fsencode(sys.prefix) + b"\0")
)";
constexpr std::string_view kMark{"\0torch\0", 7};

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string version_file(const std::string& package) {
    constexpr std::size_t kMost = 4096;
    return start_of_file(package + "/version.py", kMost);
}

bool has_headers(const std::string& root) { return exists(root + "/include/ATen/ATen.h"); }

// Debian splits the package: the library is in /usr/lib/<machine>, its headers are in /usr/include.
std::string root_of(const std::string& library) {
    constexpr int kLevels = 4;
    std::string at = real_path(library);
    for (int i = 0; i < kLevels && at != "/"; ++i) {
        at = parent_of(at);
        if (has_headers(at)) return at;
    }
    return {};
}

Result<Torch> torch_from(const std::string& library, const std::string& package) {
    const Result<std::string> id = adapter_id(library);
    if (!id) return id.error();
    Torch torch{.library = library,
                .root = has_headers(package) ? package : root_of(library),
                .id = *id,
                .version = version_in(version_file(package))};
    if (!torch.version.empty()) return torch;
    torch.version = version_in(version_file(parent_of(parent_of(library))));
    // libtorch_cpu.so.1.13.0
    const std::string real = real_path(library);
    const std::size_t suffix = real.rfind(".so.");
    if (torch.version.empty() && suffix != std::string::npos) torch.version = real.substr(suffix + 4);
    return torch;
}

std::vector<std::string> matches(const std::string& pattern) {
    ::glob_t found{};
    std::vector<std::string> out;
    if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
        for (std::size_t i = 0; i < found.gl_pathc; ++i) out.emplace_back(found.gl_pathv[i]);
    }
    ::globfree(&found);
    return out;
}

// A directory name with glob's special characters escaped.
std::string literal(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::strchr("*?[\\", c)) out += '\\';
        out += c;
    }
    return out;
}

std::string library_in(const std::string& directory) {
    for (const char* place : {"/lib/libtorch_cpu.so", "/lib64/libtorch_cpu.so", "/libtorch_cpu.so"}) {
        if (exists(directory + place)) return directory + place;
    }
    for (const char* pattern : {"/lib/*-linux-gnu*/libtorch_cpu.so", "/lib/*-linux-gnu*/libtorch_cpu.so.*"}) {
        const std::vector<std::string> found = matches(literal(directory) + pattern);
        if (!found.empty()) return found.front();
    }
    return {};
}

}  // namespace

std::string version_in(std::string_view text) {
    // Not the first one: torch names it in __all__ too.
    constexpr std::string_view kName = "__version__";
    std::size_t name = text.find(kName);
    while (name != std::string_view::npos && name > 0 && text[name - 1] != '\n')
        name = text.find(kName, name + kName.size());
    if (name == std::string_view::npos) return {};
    text = text.substr(name, text.find('\n', name) - name);
    const std::size_t open = text.find_first_of("'\"");
    if (open == std::string_view::npos) return {};
    const std::size_t close = text.find(text[open], open + 1);
    if (close == std::string_view::npos) return {};
    return std::string(text.substr(open + 1, close - open - 1));
}

std::string torch_in_list_line(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with("libtorch_cpu.so")) return {};
    const std::size_t arrow = line.find(" => ");
    const std::size_t address = line.rfind(" (0x");
    if (arrow == std::string_view::npos || address == std::string_view::npos || address < arrow + 4)
        return {};
    const std::string_view path = line.substr(arrow + 4, address - arrow - 4);
    return path.starts_with('/') ? std::string(path) : std::string();
}

Result<std::optional<Torch>> torch_of_python(const std::string& python, const Variables& variables) {
    const ChildEnd end = run_child({.arguments = {python, "-c", kProbe},
                                    .environment = untraced(variables).entries(),
                                    .limits = kPatience});
    const std::size_t at = end.out.rfind(kMark);
    if (at == std::string::npos)
        return Error{shell_word(python) + " does not say where its torch is: it " + describe(end, kPatience),
                     ""};
    const std::string_view answer = std::string_view(end.out).substr(at + kMark.size());
    const std::size_t first = answer.find('\0');
    const std::size_t second = first == std::string_view::npos ? first : answer.find('\0', first + 1);
    if (second == std::string_view::npos) return Error{shell_word(python) + " was cut off in its answer", ""};
    const std::string package(answer.substr(0, first));
    if (package.empty()) return std::optional<Torch>();
    std::string library = package + "/lib/libtorch_cpu.so";
    if (!exists(library))
        library = std::string(answer.substr(first + 1, second - first - 1)) + "/lib/libtorch_cpu.so";
    // A directory that is named torch but is not PyTorch.
    if (!exists(library)) return std::optional<Torch>();
    const Result<Torch> torch = torch_from(library, package);
    if (!torch) return torch.error();
    return std::optional<Torch>(*torch);
}

std::optional<Torch> torch_of_program(const std::string& program, const Variables& variables) {
    const Result<ElfFacts> facts = read_elf(program);
    if (!facts || facts->interpreter.empty()) return std::nullopt;
    // Calls the loader directly: LD_TRACE_LOADED_OBJECTS would run a program whose loader is not glibc's.
    const std::string_view loader = file_name(facts->interpreter);
    if (!loader.starts_with("ld-linux") && !loader.starts_with("ld64.so")) return std::nullopt;
    const std::string path = program.find('/') == std::string::npos ? "./" + program : program;
    const ChildEnd end = run_child({.arguments = {facts->interpreter, "--list", path},
                                    .environment = untraced(variables).entries(),
                                    .limits = kPatience});
    std::string_view rest = end.out;
    while (!rest.empty()) {
        const std::size_t line_end = rest.find('\n');
        const std::string library = torch_in_list_line(rest.substr(0, line_end));
        rest.remove_prefix(line_end == std::string_view::npos ? rest.size() : line_end + 1);
        if (library.empty()) continue;
        const Result<Torch> torch = torch_from(library, parent_of(parent_of(library)));
        if (torch) return *torch;
    }
    return std::nullopt;
}

Result<Torch> torch_at(const std::string& directory) {
    const std::string library = library_in(directory);
    if (library.empty())
        return Error{shell_word(directory) + " holds no libtorch_cpu.so",
                     "give site-packages/torch, an unpacked libtorch, or a prefix like /usr"};
    return torch_from(library, directory);
}

Result<std::optional<Torch>> torch_of_command(const std::vector<std::string>& command,
                                              const Variables& variables) {
    for (const std::string& word : torch_candidates(command)) {
        const Found found = find_command(word, variables.get("PATH"));
        if (found.status) continue;
        const Inspected inspected = inspect(found.path, variables);
        if (inspected.status) continue;
        const Target& target = inspected.target;
        if (!target.python.empty()) return torch_of_python(target.python, variables);
        if (target.program.empty() || target.traceable != Traceable::yes) continue;
        if (std::optional<Torch> torch = torch_of_program(target.program, variables)) return torch;
    }
    return std::optional<Torch>();
}

}  // namespace mp::launch
