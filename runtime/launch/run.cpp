#include "runtime/launch/run.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "runtime/launch/build_adapter.hpp"
#include "runtime/launch/run_directory.hpp"
#include "runtime/launch/say.hpp"
#include "runtime/launch/torch_finder.hpp"
#include "runtime/launch/values.hpp"
#include "runtime/launch/words.hpp"

namespace mp::launch {
namespace {

bool has_twin(trace::Mode mode) { return mode == trace::Mode::step || mode == trace::Mode::trajectory; }

trace::Environment lookup(const Variables& variables) {
    return [&variables](const char* name) { return variables.get(name); };
}

bool is_directory(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

int refuse(int status, const Error& error) {
    say("error: " + error.message);
    if (!error.hint.empty()) say("hint: " + error.hint);
    return status;
}

// Makes a pattern absolute; a '%' in `base` is not a key.
std::string absolute_pattern(const std::string& pattern, const std::string& base) {
    if (pattern.starts_with('/')) return pattern;
    std::string escaped;
    for (const char c : base) escaped += c == '%' ? std::string("%%") : std::string(1, c);
    return absolute(pattern, escaped);
}

Result<std::string> save_pattern(const char* option, const std::string& pattern, const Surroundings& around) {
    if (pattern.empty()) return std::string();
    const std::string whole = absolute_pattern(pattern, around.working_directory);
    const Result<std::string> name =
        trace::expand_pattern(whole, around.identity, lookup(around.variables), around.unix_seconds);
    if (!name) return Error{std::string(option) + ": " + name.error().message, name.error().hint};
    if (is_directory(*name))
        return Error{std::string(option) + ": " + shell_word(*name) + " is a directory",
                     "name a file: model.%r.safetensors"};
    // If the directory's name contains keys, each rank has its own directory, and the names are not known
    // yet.
    const std::string directory = parent_of(*name);
    const bool fixed = parent_of(whole).find('%') == std::string::npos;
    if (fixed && !is_directory(directory))
        return Error{std::string(option) + ": " + shell_word(directory) + " is not a directory",
                     "mkdir -p " + shell_word(directory)};
    return whole;
}

Result<Surroundings> look_around() {
    Surroundings around;
    around.variables = Variables::of_this_process();
    around.identity = trace::identity_of_process(lookup(around.variables));
    around.parent_pid = ::getppid();
    around.unix_seconds = std::time(nullptr);
    char* here = ::getcwd(nullptr, 0);
    const int error = here ? ENOENT : errno;
    around.working_directory = here ? here : "";
    std::free(here);
    // After a change of root the path is "(unreachable)/...".
    if (!around.working_directory.starts_with('/'))
        return Error{std::string("the working directory: ") + std::strerror(error), "cd to one that exists"};
    Result<Layout> layout = own_layout();
    if (!layout) return layout.error();
    around.layout = std::move(*layout);
    return around;
}

Status check_installation(const Layout& layout) {
    if (::access(layout.preload.c_str(), R_OK) != 0)
        return Error{shell_word(layout.preload) + ": " + std::strerror(errno),
                     "mp-trace is not wholly installed"};
    if (!is_directory(layout.shim))
        return Error{shell_word(layout.shim) + ": no such directory", "mp-trace is not wholly installed"};
    if (!fits_preload(layout.preload) || !fits_python_path(layout.shim))
        return Error{shell_word(layout.preload) + ": LD_PRELOAD can hold no path with blanks or colons",
                     "install mp-trace in another place"};
    return Done{};
}

// Builds the adapter for the program's torch when there is none. If that fails, the program still runs,
// untraced, and a line gives the reason.
void provide_adapter(const RunRequest& request, const Surroundings& around, const trace::Options& options) {
    const Result<std::optional<Torch>> torch = torch_of_command(request.command, around.variables);
    const auto say_unless_quiet = [&request](const std::string& line) {
        if (!request.quiet) say(line);
    };
    if (!torch) return say_unless_quiet(torch.error().message);
    if (!*torch) return;
    const std::string cache = adapter_cache(lookup(around.variables));
    const std::string found = find_adapter(options.adapters, (*torch)->id);
    const bool in_cache = !cache.empty() && found == cache + "/" + adapter_file((*torch)->id);
    if (!found.empty() && !(in_cache && is_outdated(cache, (*torch)->id, around.layout.sources))) return;
    if (cache.empty())
        return say_unless_quiet("no adapter for torch " + (*torch)->version +
                                ", and neither HOME nor XDG_CACHE_HOME says where to build one");
    const bool first = around.identity.rank.value <= 0;
    const bool terminal = ::isatty(STDERR_FILENO) && !request.quiet && first;
    const auto silent = std::function<void(const std::string&)>();
    const Result<std::string> built = build_adapter(
        **torch,
        {.sources = around.layout.sources,
         .measure = around.layout.measure,
         .out = cache,
         .force = false,
         .variables = around.variables,
         .progress = {.line = request.quiet ? silent : say, .state = terminal ? say_state : silent}});
    if (!built) say_unless_quiet(built.error().message + "; the program runs untraced");
}

// Returns only on failure.
int become(const RunRequest& request, const std::string& path, const Variables& environment) {
    std::vector<char*> argv, variables = environment.pointers();
    for (const std::string& word : request.command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execve(path.c_str(), argv.data(), variables.data());
    if (errno == ENOEXEC) {
        // For a script without "#!" execvp starts the shell, so do the same here.
        argv[0] = const_cast<char*>(path.c_str());
        argv.insert(argv.begin(), const_cast<char*>("/bin/sh"));
        ::execve("/bin/sh", argv.data(), variables.data());
    }
    return errno;
}

int refuse_exec(const RunRequest& request, int error) {
    return refuse(error == ENOENT || error == ENOTDIR ? kNotFound : kNotExecutable,
                  {shell_word(request.command[0]) + ": " + std::strerror(error),
                   error == E2BIG ? "arguments and environment are too large together" : ""});
}

}  // namespace

bool is_left_out(const RunRequest& request, const trace::Identity& id) {
    if (has_twin(request.mode) || request.ranks.empty() || !id.rank.known()) return false;
    return std::none_of(request.ranks.begin(), request.ranks.end(), [&id](const trace::RankRange& r) {
        return id.rank.value >= r.first && id.rank.value <= r.last;
    });
}

Result<trace::Options> options_of(const RunRequest& request, const Surroundings& around) {
    trace::Options options{.run_dir = {},
                           .mode = request.mode,
                           .steps = request.steps,
                           .ranks = request.ranks,
                           .budget = request.budget,
                           .overhead = request.overhead,
                           .adapters = {},
                           .save_twin = {},
                           .save_real = {},
                           .eager = request.eager,
                           .device_times = request.device_times,
                           .free_ints = request.free_ints,
                           .twin_noise = request.twin_noise,
                           .step_range = request.step_range,
                           .quiet = request.quiet,
                           .tool = around.layout.tool};
    if (!request.save_twin.empty() && !has_twin(request.mode))
        return Error{"--save-twin: mode " + std::string(name_of(request.mode)) + " has no twin",
                     "add --mode trajectory or --mode step"};
    if (request.twin_noise && request.mode != trace::Mode::trajectory)
        return Error{
            "--twin-noise: mode " + std::string(name_of(request.mode)) + " has no twin that lives on",
            "add --mode trajectory"};
    const std::string pattern =
        request.output.empty() ? default_run_directory(around.identity, around.parent_pid) : request.output;
    const Result<std::string> name =
        trace::expand_pattern(pattern, around.identity, lookup(around.variables), around.unix_seconds);
    if (!name) return Error{"-o: " + name.error().message, name.error().hint};
    if (name->empty()) return Error{"-o: the name is empty", "-o DIR"};
    options.run_dir = absolute(*name, around.working_directory);
    for (const auto& [option, from, into] :
         {std::tuple{"--save-twin", &request.save_twin, &options.save_twin},
          std::tuple{"--save-real", &request.save_real, &options.save_real}}) {
        Result<std::string> checked = save_pattern(option, *from, around);
        if (!checked) return checked.error();
        *into = std::move(*checked);
    }
    for (const std::string& directory : request.adapters) {
        const std::string path = absolute(directory, around.working_directory);
        if (!is_directory(path)) return Error{"--adapters: " + shell_word(path) + " is not a directory", ""};
        options.adapters.push_back(path);
    }
    options.adapters.push_back(around.layout.adapters);
    const std::string cache = adapter_cache(lookup(around.variables));
    if (!cache.empty()) options.adapters.push_back(cache);
    return options;
}

Result<Variables> environment_of(const Surroundings& around, const std::string& options_file) {
    const Status installed = check_installation(around.layout);
    if (!installed) return installed.error();
    Variables out = around.variables;
    const auto value = [&out](const char* name) {
        const char* text = out.get(name);
        return std::string(text ? text : "");
    };
    out.set(trace::kOptionsVariable, options_file);
    std::string preload = with_preload(value("LD_PRELOAD"), around.layout.preload);
    if (::access(around.layout.cuda.c_str(), R_OK) == 0) {
        // Behind the user's own libraries, which may replace the same functions.
        preload += ":" + around.layout.cuda;
        for (const char* const name : kCudaPlaces) set_if_free(out, name, around.layout.cuda);
    }
    out.set("LD_PRELOAD", preload);
    out.set("PYTHONPATH", with_shim(value("PYTHONPATH"), around.layout.shim));
    return out;
}

std::string start_line(const trace::Options& options, const std::string& run_directory,
                       const std::string& working_directory) {
    std::string what;
    switch (options.mode) {
        case trace::Mode::local:
            what = "each op beside its fp32 self";
            break;
        case trace::Mode::step:
            what = "fp32 twin of single steps";
            break;
        case trace::Mode::trajectory:
            what = "fp32 twin from step 0";
            break;
        case trace::Mode::off:
        case trace::Mode::watch:
            what = "watching dtypes, loss scale, skipped steps, collectives";
            break;
    }
    if (const std::string steps = text_of(options.steps); !steps.empty()) what += ", steps " + steps;
    std::string shown = run_directory;
    const std::string below = working_directory == "/" ? "/" : working_directory + "/";
    if (shown.starts_with(below) && shown.size() > below.size()) shown.erase(0, below.size());
    return what + " → " + shell_word(shown + (shown.ends_with('/') ? "" : "/"));
}

int run(const RunRequest& request) {
    if (request.command.empty())
        return refuse(kPreflightFailed, {"no command", "mp-trace -- python train.py"});
    const Result<Surroundings> around = look_around();
    if (!around) return refuse(kPreflightFailed, around.error());
    const Result<trace::Options> checked = options_of(request, *around);
    if (!checked) return refuse(kPreflightFailed, checked.error());
    trace::Options options = *checked;
    const Status installed = check_installation(around->layout);
    if (!installed) return refuse(kPreflightFailed, installed.error());

    const Found found = find_command(request.command[0], around->variables.get("PATH"));
    if (found.status) return refuse(found.status, found.error);
    const Inspected inspected = inspect(found.path, around->variables);
    if (inspected.status) return refuse(inspected.status, inspected.error);
    const Target& target = inspected.target;

    if (target.traceable == Traceable::no || is_left_out(request, around->identity)) {
        if (target.traceable == Traceable::no && !request.quiet)
            say(shell_word(request.command[0]) + " is not traceable: " + target.reason +
                "; it runs on as it is");
        return refuse_exec(request, become(request, found.path, around->variables));
    }
    const bool shared = !around->identity.launcher.empty();
    const Status usable = check_run_directory(options.run_dir, shared);
    if (!usable) return refuse(kPreflightFailed, usable.error());
    if (request.build) provide_adapter(request, *around, options);

    const Result<RunDirectory> directory = make_run_directory(options.run_dir, shared);
    if (!directory) return refuse(kPreflightFailed, directory.error());
    options.run_dir = directory->path;
    const Result<std::string> file = write_options_file(directory->path, around->identity, options);
    if (!file) {
        remove_run(*directory, {});
        return refuse(kPreflightFailed, file.error());
    }
    const Result<Variables> environment = environment_of(*around, *file);
    if (!environment) {
        remove_run(*directory, *file);
        return refuse(kPreflightFailed, environment.error());
    }
    if (!request.quiet && around->identity.rank.value <= 0) {
        if (target.traceable == Traceable::children_only)
            say(shell_word(request.command[0]) + " is not traceable: " + target.reason +
                "; what it starts is traced");
        say(start_line(options, options.run_dir, around->working_directory));
    }
    const int error = become(request, found.path, *environment);
    remove_run(*directory, *file);
    return refuse_exec(request, error);
}

}  // namespace mp::launch
