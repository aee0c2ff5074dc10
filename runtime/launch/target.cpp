#include "runtime/launch/target.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "kernels/base/input_file.hpp"
#include "kernels/base/paths.hpp"
#include "runtime/launch/elf.hpp"
#include "runtime/launch/words.hpp"

namespace mp::launch {
namespace {

constexpr int kMostInterpreters = 4;          // BINPRM_MAX_RECURSION
constexpr std::size_t kLongestShebang = 256;  // BINPRM_BUF_SIZE
constexpr std::size_t kMostCandidates = 64;

Found refused(int status, std::string_view name, std::string_view why, std::string hint = "") {
    return {
        .path = {}, .status = status, .error = {shell_word(name) + ": " + std::string(why), std::move(hint)}};
}

// 0, or the errno that execve would set.
int execute_error(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return errno;
    if (!S_ISREG(info.st_mode)) return EACCES;
    return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

int status_of(int error) { return error == ENOENT || error == ENOTDIR ? kNotFound : kNotExecutable; }

// The file is setuid or similar, so ld.so ignores LD_PRELOAD (AT_SECURE).
bool is_secure(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return false;
    if ((info.st_mode & S_ISUID) && info.st_uid != ::getuid()) return true;
    const bool sets_group = (info.st_mode & S_ISGID) && (info.st_mode & S_IXGRP);
    if (sets_group && info.st_gid != ::getgid()) return true;
    return ::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

void judge_elf(const std::string& path, Target& target) {
    target.program = path;
    const auto refuse = [&target](Traceable how, std::string why) {
        target.traceable = how;
        target.reason = std::move(why);
    };
    const Result<ElfFacts> own = read_elf("/proc/self/exe");
    const Result<ElfFacts> facts = read_elf(path);
    if (!facts) return;  // only the kernel may read it
    if (is_secure(path))
        return refuse(Traceable::no, "it runs as another user or with capabilities (setuid)");
    if (!own) return;
    if (facts->bits != own->bits || facts->machine != own->machine ||
        facts->little_endian != own->little_endian)
        return refuse(Traceable::no,
                      std::to_string(facts->bits) + "-bit or of another machine than mp-trace");
    if (facts->interpreter.empty()) return refuse(Traceable::children_only, "statically linked");
    if (!own->interpreter.empty() && file_name(facts->interpreter) != file_name(own->interpreter))
        return refuse(Traceable::no, "it uses another C library (" + printable(facts->interpreter) + ")");
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (true) {
        const std::size_t begin = text.find_first_not_of(" \t");
        if (begin == std::string_view::npos) return words;
        text.remove_prefix(begin);
        const std::size_t end = text.find_first_of(" \t");
        words.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return words;
        text.remove_prefix(end);
    }
}

// pip writes   #!/bin/sh   '''exec' "/a/long/path/python3" "$0" "$@"   when a "#!" line would be too long.
std::string python_of_sh_trick(std::string_view bytes) {
    const std::size_t line = bytes.find('\n');
    if (line == std::string_view::npos) return {};
    bytes.remove_prefix(line + 1);
    if (!bytes.starts_with("'''exec' ")) return {};
    bytes.remove_prefix(std::strlen("'''exec' "));
    bytes = bytes.substr(0, bytes.find('\n'));
    if (bytes.starts_with('"')) return std::string(bytes.substr(1, bytes.find('"', 1) - 1));
    return std::string(bytes.substr(0, bytes.find(' ')));
}

}  // namespace

Found find_command(std::string_view name, const char* path_variable) {
    if (name.empty()) return refused(kNotFound, name, "no such command");
    if (name.find('/') != std::string_view::npos) {
        const std::string path(name);
        const int error = execute_error(path);
        if (error) return refused(status_of(error), name, std::strerror(error));
        return {.path = path, .status = 0, .error = {}};
    }
    int best = ENOENT;
    std::string_view rest = path_variable ? path_variable : "/bin:/usr/bin";
    for (;;) {
        const std::size_t colon = rest.find(':');
        const std::string directory(rest.substr(0, colon));
        const std::string path =
            directory.empty() ? "./" + std::string(name) : directory + "/" + std::string(name);
        const int error = execute_error(path);
        if (!error) return {.path = path, .status = 0, .error = {}};
        if (error == EACCES) best = EACCES;
        if (colon == std::string_view::npos) break;
        rest.remove_prefix(colon + 1);
    }
    if (best == EACCES) return refused(kNotExecutable, name, "found in PATH, but not executable");
    return refused(
        kNotFound, name, "not found in PATH",
        execute_error(std::string(name)) == 0 ? "./" + std::string(name) + " is one, if you mean it" : "");
}

bool is_python_name(std::string_view name) {
    static constexpr std::string_view kPython = "python";
    if (!name.starts_with(kPython)) return false;
    name.remove_prefix(kPython.size());
    if (name.ends_with("-dbg")) name.remove_suffix(4);
    const bool letter = name.size() > 1 && std::strchr("tdm", name.back());
    if (letter) name.remove_suffix(1);
    return name.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::vector<std::string> shebang_of(std::string_view bytes) {
    if (!bytes.starts_with("#!")) return {};
    bytes =
        bytes.substr(2, bytes.find('\n') == std::string_view::npos ? kLongestShebang : bytes.find('\n') - 2);
    const auto trim = [&bytes] {
        while (!bytes.empty() && std::strchr(" \t\r", bytes.back())) bytes.remove_suffix(1);
        bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t"), bytes.size()));
    };
    trim();
    if (bytes.empty()) return {};
    const std::size_t end = bytes.find_first_of(" \t");
    std::vector<std::string> out{std::string(bytes.substr(0, end))};
    if (end == std::string_view::npos) return out;
    bytes.remove_prefix(end);
    trim();
    if (!bytes.empty()) out.emplace_back(bytes);
    return out;
}

std::string program_of_env(std::vector<std::string> arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string& word = arguments[i];
        if (word.starts_with("-S") || word.starts_with("--split-string")) {
            // "-S" and the next argument, or both in one "#!" argument: split it here and continue.
            const bool is_short = word.starts_with("-S");
            std::string rest =
                is_short ? word.substr(2) : word.substr(std::min(word.find('=') + 1, word.size()));
            if (rest.empty() && i + 1 < arguments.size()) {
                rest = arguments[i + 1];
                arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            }
            const std::vector<std::string> words = words_of(rest);
            arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
            arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), words.begin(), words.end());
            --i;
            if (arguments.size() > kMostCandidates) return {};
        } else if (word == "-u" || word == "--unset" || word == "-C" || word == "--chdir") {
            ++i;
        } else if (word == "--") {
            continue;
        } else if (!word.starts_with("-") && word.find('=') == std::string::npos) {
            return word;
        }
    }
    return {};
}

Inspected inspect(const std::string& path, const Variables& variables) {
    Inspected out;
    out.target.path = path;
    std::string at = path;
    for (int depth = 0; depth <= kMostInterpreters; ++depth) {
        const std::string bytes = start_of_file(at, 4 * kLongestShebang);
        if (bytes.starts_with("\x7f"
                              "ELF")) {
            judge_elf(at, out.target);
            if (is_python_name(file_name(at))) out.target.python = at;
            return out;
        }
        // A shim called python (pyenv, conda) is a shell script that starts the actual interpreter.
        if (is_python_name(file_name(at))) out.target.python = at;
        const std::vector<std::string> line = shebang_of(bytes);
        if (line.empty()) return out;  // a script without "#!", run by a shell; or an unreadable file
        if (const std::string python = python_of_sh_trick(bytes); !python.empty()) out.target.python = python;
        if (const int error = execute_error(line[0])) {
            out.status = status_of(error);
            out.error = {
                shell_word(at) + ": its interpreter " + shell_word(line[0]) + ": " + std::strerror(error),
                line[0].ends_with('\r') ? "the file has Windows line ends" : ""};
            return out;
        }
        at = line[0];
        if (file_name(at) != "env") continue;
        const std::string program = program_of_env({line.begin() + 1, line.end()});
        const Found found = find_command(program, variables.get("PATH"));
        if (found.status) return out;  // env will report the error, with its own exit status
        at = found.path;
    }
    return out;
}

std::vector<std::string> torch_candidates(const std::vector<std::string>& command) {
    static constexpr std::array<std::string_view, 22> kStarters{
        "mpirun",  "mpiexec", "mpiexec.hydra", "orterun", "prterun",  "srun",    "env",    "numactl",
        "taskset", "nice",    "ionice",        "nohup",   "time",     "timeout", "stdbuf", "setsid",
        "chrt",    "xargs",   "hwloc-bind",    "prlimit", "unbuffer", "mp-trace"};
    if (command.empty()) return {};
    std::vector<std::string> out{command[0]};
    if (std::find(kStarters.begin(), kStarters.end(), file_name(command[0])) == kStarters.end()) return out;
    for (std::size_t i = 1; i < command.size() && out.size() < kMostCandidates; ++i) {
        const std::string& word = command[i];
        if (word.empty() || word.starts_with('-') || word.find('=') != std::string::npos) continue;
        out.push_back(word);
        if (is_python_name(file_name(word))) break;
    }
    return out;
}

}  // namespace mp::launch
