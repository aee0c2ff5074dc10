#include "runtime/launch/build_adapter.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "kernels/base/child.hpp"
#include "kernels/base/escape.hpp"
#include "kernels/base/files.hpp"
#include "runtime/launch/layout.hpp"
#include "runtime/launch/say.hpp"
#include "runtime/launch/words.hpp"

namespace mp::launch {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A build alone takes one to two minutes; with one compiler per core of a small node, several.
constexpr auto kLongestBuild = 20min;
constexpr std::size_t kKeptOutput = 256u << 10;
constexpr std::size_t kShownLines = 15;

std::string text_of(const std::string& path) {
    std::string text;
    read_file(path, text);
    return text;
}

std::string stamp_of(const std::string& out, const std::string& id) { return out + "/." + id + ".sources"; }
std::string log_of(const std::string& out, const std::string& id) { return out + "/" + id + ".log"; }

// The library is code that runs in the user's programs, so only the user may write to its directory.
Status make_private(const std::string& out) {
    std::error_code error;
    const fs::perms before = fs::status(out, error).permissions();
    if (before == fs::perms::unknown || !fs::exists(out, error)) {
        fs::create_directories(parent_of(out), error);
        if (::mkdir(out.c_str(), 0700) != 0 && errno != EEXIST)
            return Error{shell_word(out) + ": " + std::strerror(errno),
                         "choose another directory: --out DIR"};
    }
    struct stat info{};
    if (::stat(out.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
        return Error{shell_word(out) + ": not a directory", "choose another directory: --out DIR"};
    if (info.st_uid != ::geteuid() && info.st_uid != 0)
        return Error{shell_word(out) + ": belongs to another user", "choose another directory: --out DIR"};
    if (info.st_mode & S_IWOTH)
        return Error{shell_word(out) + ": everybody may write there", "chmod o-w " + shell_word(out)};
    return Done{};
}

// Locked from construction until the process ends.
class Lock {
public:
    explicit Lock(const std::string& path)
        : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
    ~Lock() {
        if (fd_ >= 0) ::close(fd_);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    Status take(const std::function<void()>& when_waiting) {
        if (fd_ < 0) return Error{std::strerror(errno), ""};
        const auto deadline = Clock::now() + kLongestBuild;
        bool said = false;
        while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK && errno != EINTR) return Error{std::strerror(errno), ""};
            if (Clock::now() >= deadline) return Error{"another process is building it and does not end", ""};
            if (!said && when_waiting) when_waiting();
            said = true;
            std::this_thread::sleep_for(100ms);
        }
        return Done{};
    }

private:
    int fd_;
};

struct Ended {
    bool good = false;
    std::string output;  // the end of the output
    std::string why;     // "exited with status 1"
};

// Calls `each` for every line that is not empty, as soon as it is complete.
class Lines {
public:
    explicit Lines(const std::function<void(const std::string&)>& each) : each_(each) {}
    void add(std::string_view text) {
        for (const char c : text) {
            if (c != '\n' && c != '\r') {
                line_ += c;
            } else {
                if (each_ && !line_.empty()) each_(line_);
                line_.clear();
            }
        }
    }

private:
    const std::function<void(const std::string&)>& each_;
    std::string line_;
};

// In our own process group, so that Ctrl-C also ends the compiler.
Ended run_step(const std::vector<std::string>& command, const Variables& variables,
               const Progress& progress) {
    Ended ended;
    Lines lines(progress.state);
    const ChildEnd child =
        run_child({.arguments = command,
                   .environment = variables.entries(),
                   .limits = {.milliseconds = std::chrono::milliseconds(kLongestBuild).count()},
                   .own_group = false,
                   .on_output = [&](std::string_view text) {
                       ended.output += text;
                       if (ended.output.size() > 2 * kKeptOutput)
                           ended.output.erase(0, ended.output.size() - kKeptOutput);
                       lines.add(text);
                   }});
    ended.good = child.good();
    if (!ended.good) ended.why = child.timed_out ? "took too long" : describe(child, {});
    return ended;
}

bool is_command(const char* name, const Variables& variables) {
    return find_command(name, variables.get("PATH")).status == 0;
}

std::string called(const Torch& torch) { return torch.version.empty() ? "torch" : "torch " + torch.version; }

// Stores the result of a failed build, for the ranks that waited for it and for the user.
Error remember_failure(const Torch& torch, const AdapterBuild& build, const std::string& step,
                       const Ended& ended) {
    const std::string log = log_of(build.out, torch.id);
    const bool kept = replace_file(log, ended.output);
    std::string first = telling_lines(ended.output, 1);
    if (first.empty()) first = ended.why;
    Error error{"no adapter for " + called(torch) + ": " + step + " failed: " + first +
                    (kept ? " (log: " + shell_word(log) + ")" : ""),
                telling_lines(ended.output, kShownLines)};
    replace_file(build.out + "/." + torch.id + ".failed", error.message);
    return error;
}

Result<std::string> build_locked(const Torch& torch, const AdapterBuild& build) {
    const std::string place = build.out + "/.build-" + torch.id;
    const std::string made = place + "/out/" + adapter_file(torch.id);
    std::error_code error;
    fs::remove_all(place, error);  // files of a killed build
    if (!fs::create_directories(place + "/out", error))
        return Error{shell_word(place) + ": " + error.message(), ""};

    // Computed before the compiler reads the sources: if they change during the build, the result counts as
    // outdated.
    const std::string fingerprint = fingerprint_of(build.sources);
    if (build.progress.line)
        build.progress.line("building the adapter for " + called(torch) + ", once, about 1-2 minutes, in " +
                            shell_word(build.out));
    Variables variables = untraced(build.variables);
    std::vector<std::string> configure{"cmake", "-S", build.sources + "/instrument/torch", "-B",
                                       place + "/build"};
    if (is_command("ninja", variables)) configure.insert(configure.end(), {"-G", "Ninja"});
    configure.insert(configure.end(),
                     {"-DCMAKE_BUILD_TYPE=Release", "-DMP_TORCH_ROOT=" + torch.root,
                      "-DMP_ADAPTER_OUT=" + place + "/out", "-DMP_MEASURE_LIB=" + build.measure});
    Ended ended = run_step(configure, variables, build.progress);
    std::string step = "configuring";
    if (ended.good) {
        ended = run_step({"cmake", "--build", place + "/build"}, variables, build.progress);
        step = "compiling";
    }
    if (build.progress.state) build.progress.state("");
    if (ended.good && ::access(made.c_str(), R_OK) != 0) {
        ended = {.good = false, .output = {}, .why = "the build made no " + adapter_file(torch.id)};
        step = "building";
    }
    if (!ended.good) {
        const Error failure = remember_failure(torch, build, step, ended);
        fs::remove_all(place, error);
        return failure;
    }
    // The stamp first: a library without a stamp counts as outdated and is only built once more.
    const std::string file = build.out + "/" + adapter_file(torch.id);
    replace_file(stamp_of(build.out, torch.id), fingerprint);
    fs::rename(place + "/out/" + optimizer_file(torch.id), build.out + "/" + optimizer_file(torch.id), error);
    if (::rename(made.c_str(), file.c_str()) != 0)
        return Error{shell_word(file) + ": " + std::strerror(errno), ""};
    for (const std::string& old : {build.out + "/." + torch.id + ".failed", log_of(build.out, torch.id)})
        fs::remove(old, error);
    fs::remove_all(place, error);
    return file;
}

bool is_built(const Torch& torch, const AdapterBuild& build) {
    return !find_adapter({build.out}, torch.id).empty() && !is_outdated(build.out, torch.id, build.sources);
}

}  // namespace

std::string telling_lines(const std::string& output, std::size_t lines) {
    std::vector<std::string_view> all;
    std::string_view rest = output;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        if (const std::string_view line = rest.substr(0, end); !line.empty()) all.push_back(line);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    const auto is_error = [](std::string_view line) {
        return line.find("error:") != line.npos || line.find("Error:") != line.npos ||
               line.find("CMake Error") != line.npos || line.find("No such file") != line.npos;
    };
    auto from = std::find_if(all.begin(), all.end(), is_error);
    if (from == all.end()) from = all.end() - static_cast<std::ptrdiff_t>(std::min(lines, all.size()));
    std::string out;
    for (; from != all.end() && lines > 0; ++from, --lines)
        out += (out.empty() ? "" : "\n") + std::string(*from);
    return out;
}

std::string fingerprint_of(const std::string& sources) {
    std::vector<std::string> files;
    std::error_code error;
    for (const char* room : {"instrument/torch", "runtime/trace", "kernels/base", "kernels/numerics",
                             "kernels/cpu", "kernels/torch"}) {
        for (fs::recursive_directory_iterator at(sources + "/" + room, error), end; !error && at != end;
             at.increment(error)) {
            if (at->is_regular_file(error)) files.push_back(at->path().string());
        }
        error.clear();
    }
    if (files.empty()) return {};
    std::sort(files.begin(), files.end());
    std::string all;
    for (const std::string& file : files) {
        const std::string text = text_of(file);
        all += file.substr(sources.size()) + '\0' + std::to_string(text.size()) + '\0' + text;
    }
    static constexpr char kHex[] = "0123456789abcdef";
    std::uint64_t value = hash_bytes(all);
    std::string out(16, '0');
    for (auto digit = out.rbegin(); digit != out.rend(); ++digit, value >>= 4) *digit = kHex[value & 15];
    return out;
}

bool is_outdated(const std::string& directory, const std::string& id, const std::string& sources) {
    const std::string now = fingerprint_of(sources);
    return !now.empty() && text_of(stamp_of(directory, id)) != now;
}

Result<std::string> build_adapter(const Torch& torch, const AdapterBuild& build) {
    if (torch.root.empty())
        return Error{
            "no adapter for " + called(torch) + ": its headers are not installed (include/ATen/ATen.h)",
            "on Debian: apt install libtorch-dev"};
    if (::access((build.sources + "/instrument/torch/CMakeLists.txt").c_str(), R_OK) != 0)
        return Error{
            "no adapter for " + called(torch) + ": its sources are missing in " + shell_word(build.sources),
            "install mp-trace again"};
    if (!is_command("cmake", build.variables))
        return Error{"no adapter for " + called(torch) + ": cmake is not in PATH",
                     "apt install cmake g++ ninja-build"};
    if (const Status made = make_private(build.out); !made) return made.error();
    if (!build.force && is_built(torch, build)) return build.out + "/" + adapter_file(torch.id);

    const auto began = fs::file_time_type::clock::now();
    bool waited = false;
    Lock lock(build.out + "/." + torch.id + ".lock");
    const Status locked = lock.take([&] {
        waited = true;
        if (build.progress.line)
            build.progress.line("another process is building the adapter for " + called(torch) + "; waiting");
    });
    if (!locked) return Error{"no adapter for " + called(torch) + ": " + locked.error().message, ""};
    if ((!build.force || waited) && is_built(torch, build)) return build.out + "/" + adapter_file(torch.id);
    const std::string failed = build.out + "/." + torch.id + ".failed";
    std::error_code error;
    if (waited && fs::last_write_time(failed, error) >= began && !error) return Error{text_of(failed), ""};
    return build_locked(torch, build);
}

int run_build_adapter(const BuildAdapterRequest& request) {
    const auto fail = [](int code, const Error& e) {
        say("error: " + e.message);
        if (!e.hint.empty()) say_text(e.hint);
        return code;
    };
    const Variables variables = Variables::of_this_process();
    const Result<Layout> layout = own_layout();
    if (!layout) return fail(2, layout.error());
    // cmake runs in another directory, so no path may be relative.
    const auto from_here = [](const std::string& path) {
        std::error_code error;
        const fs::path whole = path.empty() ? fs::path() : fs::absolute(path, error);
        return error ? path : whole.string();
    };
    std::string out = from_here(request.out);
    if (out.empty()) out = adapter_cache([&](const char* name) { return variables.get(name); });
    if (out.empty())
        return fail(2, {"HOME is not set, so there is no cache", "mp-trace build-adapter --out DIR"});

    Result<Torch> torch = Error{};
    if (!request.torch.empty()) {
        torch = torch_at(from_here(request.torch));
    } else {
        const std::string python = request.python.empty() ? "python3" : request.python;
        const Found found = find_command(python, variables.get("PATH"));
        if (found.status) return fail(2, {"--python " + found.error.message, found.error.hint});
        const Result<std::optional<Torch>> of_python = torch_of_python(found.path, variables);
        if (!of_python) return fail(2, of_python.error());
        if (!*of_python)
            return fail(
                2, {shell_word(found.path) + " has no torch", "--python EXE or --torch DIR names another"});
        torch = **of_python;
    }
    if (!torch) return fail(2, torch.error());

    const bool terminal = ::isatty(STDERR_FILENO) && !request.quiet;
    const Result<std::string> built = build_adapter(
        *torch, {.sources = layout->sources,
                 .measure = layout->measure,
                 .out = out,
                 .force = request.force,
                 .variables = variables,
                 .progress = {.line = request.quiet ? std::function<void(const std::string&)>() : say,
                              .state = terminal ? say_state : std::function<void(const std::string&)>()}});
    if (!built) return fail(1, built.error());
    const std::string line = *built + "\n";
    return say_on(STDOUT_FILENO, line) ? 0 : 1;
}

}  // namespace mp::launch
