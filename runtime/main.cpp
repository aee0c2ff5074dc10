// The command line of mp-trace. Starting a program is runtime/launch, reading recordings runtime/trace and
// runtime/report; this file reads options, prints, and turns results into exit codes.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>

#include "kernels/base/stats.hpp"
#include "kernels/base/version.hpp"
#include "runtime/launch/build_adapter.hpp"
#include "runtime/launch/doctor/doctor.hpp"
#include "runtime/launch/layout.hpp"
#include "runtime/launch/run.hpp"
#include "runtime/launch/say.hpp"
#include "runtime/launch/values.hpp"
#include "runtime/launch/words.hpp"
#include "runtime/trace/dump.hpp"
#include "runtime/trace/reader.hpp"
#include "runtime/verbs/gate.hpp"
#include "runtime/verbs/report.hpp"

namespace {

namespace po = boost::program_options;
using namespace mp;
using namespace mp::launch;

constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

constexpr std::string_view kExamples =
    R"(mp-trace runs an unmodified mixed-precision training and says what its precision costs.

  mp-trace -- python train.py                          watch: dtypes, loss scale, skipped steps
  mp-trace --mode trajectory -- python train.py        with an fp32 twin from step 0
  mp-trace --mode step --steps 100:1000:100 -- python train.py
  mp-trace -- torchrun --nproc-per-node 8 train.py     around the launcher ...
  torchrun --no-python --nproc-per-node 8 mp-trace run -- python train.py
  mpirun -np 8 mp-trace -o run.%j -- ./train           ... or inside it: the ranks share one directory
  mp-trace info mp-trace.1763                          what was recorded
  mp-trace report mp-trace.1763 --html report.html     what went wrong first, where, and what to change
  mp-trace gate mp-trace.1763 --lint lint.sarif        one verdict for CI; 0 passed, 1 failed, 3 inconclusive
  mp-trace dump mp-trace.1763/r0.c0.node1.p1763.mpt    every record of one file
  mp-trace doctor                                      what can be traced on this machine, and why not
  mp-trace build-adapter --python .venv/bin/python     for its torch; run does it by itself when it is missing

Exit status of run: the program's own, or death by the same signal; 125 when mp-trace could not
prepare the run, 126 when the program is not executable, 127 when it is not found: then nothing has
started. The other verbs: 0 done, 1 failed, 2 a usage error.

)";

constexpr std::string_view kKeys = R"(
Names may hold %p process, %h host, %r rank, %l local rank, %s world size, %j job, %c restart count,
%t start time, %q{VAR} an environment variable, and %% for '%'.
)";

// One line of --help. Without a value name the option is a switch; `repeats` may be given again.
struct OptionText {
    const char* names = "";
    const char* value = nullptr;
    const char* help = "";
    bool repeats = false;
};

using Options = std::vector<OptionText>;

struct Verb {
    std::string_view name;
    const char* usage = "";  // what follows the options
    Options options;
    int usage_error = kUsage;
    int (*go)(const po::variables_map&, const std::vector<std::string>& rest) = nullptr;
};

const std::vector<Verb>& verbs();
bool is_switch(const po::variables_map& map, const char* name) { return map.count(name) > 0; }
std::string text_of(const po::variables_map& map, const char* name) {
    return map.count(name) ? map[name].as<std::string>() : std::string();
}

int fail(int code, const Error& error) {
    say("error: " + error.message);
    if (!error.hint.empty()) say("hint: " + error.hint);
    return code;
}

// A reader that went away has read what it wanted; anything else that is not written is an error.
int print(const std::string& text) {
    if (say_on(STDOUT_FILENO, text) || errno == EPIPE) return kGood;
    return fail(kFailed, {std::string("standard output: ") + std::strerror(errno), ""});
}

// --- verbs ---

// Reads --NAME with `parse` where it is given.
template <typename Parse, typename T>
Status read(const po::variables_map& map, const char* name, Parse parse, T& into) {
    if (!map.count(name)) return Done{};
    auto value = parse(map[name].as<std::string>());
    if (!value) return Error{"--" + std::string(name) + ": " + value.error().message, value.error().hint};
    into = std::move(*value);
    return Done{};
}

int run_verb(const po::variables_map& map, const std::vector<std::string>& command) {
    RunRequest request;
    request.command = command;
    for (const Status& status :
         {read(map, "mode", parse_mode, request.mode), read(map, "steps", parse_steps, request.steps),
          read(map, "ranks", parse_ranks, request.ranks), read(map, "budget", parse_size, request.budget)}) {
        if (!status) return fail(kPreflightFailed, status.error());
    }
    for (const auto& [name, into] : {std::pair{"output", &request.output},
                                     {"save-twin", &request.save_twin},
                                     {"save-real", &request.save_real}}) {
        if (!map.count(name)) continue;
        *into = text_of(map, name);
        if (into->empty())
            return fail(kPreflightFailed, {"--" + std::string(name) + ": the name is empty", ""});
    }
    if (map.count("adapters")) request.adapters = map["adapters"].as<std::vector<std::string>>();
    request.eager = is_switch(map, "eager");
    request.free_ints = is_switch(map, "free-ints");
    request.quiet = is_switch(map, "quiet");
    request.build = !is_switch(map, "no-build");
    return run(request);
}

bool is_directory(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// A file appears whole or not at all. Devices and pipes are written to directly.
Status write_file(const std::string& path, const std::string& text) {
    struct stat info{};
    const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
    const std::string name = special ? path : path + ".new-" + std::to_string(::getpid());
    const int fd =
        ::open(name.c_str(), special ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return Error{shell_word(path) + ": " + std::strerror(errno), ""};
    bool written = say_on(fd, text);
    int error = errno;
    if (::close(fd) != 0 && written) written = false, error = errno;
    if (written && !special && ::rename(name.c_str(), path.c_str()) != 0) written = false, error = errno;
    if (written) return Done{};
    if (!special) ::unlink(name.c_str());
    return Error{shell_word(path) + ": " + std::strerror(error), ""};
}

std::vector<std::string> list_of(const po::variables_map& map, const char* name) {
    return map.count(name) ? map[name].as<std::vector<std::string>>() : std::vector<std::string>();
}

// Where a text goes: a file, or standard output where there is no name.
int put(const std::string& file, const std::string& text) {
    if (file.empty()) return print(text);
    const Status written = write_file(file, text);
    return written ? kGood : fail(kFailed, written.error());
}

int report_verb(const po::variables_map& map, const std::vector<std::string>& words) {
    if (words.size() != 1) return fail(kUsage, {"report: of which run?", "mp-trace report mp-trace.1763"});
    for (const char* name : {"json", "html"}) {
        if (map.count(name) && text_of(map, name).empty())
            return fail(kUsage, {"--" + std::string(name) + ": the name is empty",
                                 std::string("--") + name + " FILE"});
    }
    const trace::ReportRequest request{.directory = words[0],
                                       .text = is_switch(map, "text"),
                                       .html = text_of(map, "html"),
                                       .json = text_of(map, "json"),
                                       .lint = list_of(map, "lint"),
                                       .policies = list_of(map, "policy")};
    if (const Status good = trace::check_report(request); !good) return fail(kUsage, good.error());
    const Result<trace::ReportRun> done = trace::run_report(request);
    if (!done) return fail(kFailed, done.error());
    for (const Error& error : done->warnings) say("warning: " + error.message);
    for (const auto& [file, text] : done->texts) {
        if (const int status = put(file, text); status != kGood) return status;
    }
    return kGood;
}

int summary_verb(const po::variables_map&, const std::vector<std::string>& words) {
    if (words.size() != 1) return fail(kUsage, {"summary: of which run?", "mp-trace summary mp-trace.1763"});
    const Result<std::string> text = trace::summary_of(words[0]);
    if (!text) return fail(kFailed, text.error());
    (void)say_on(STDERR_FILENO, *text);
    return kGood;
}

int gate_verb(const po::variables_map& map, const std::vector<std::string>& words) {
    if (words.size() != 1) return fail(kUsage, {"gate: of which run?", "mp-trace gate mp-trace.1763"});
    const trace::GateRequest request{.directory = words[0],
                                     .rules = text_of(map, "rules"),
                                     .lint = list_of(map, "lint"),
                                     .policies = list_of(map, "policy"),
                                     .outputs = list_of(map, "output"),
                                     .strict = is_switch(map, "strict"),
                                     .color = ::isatty(STDOUT_FILENO) == 1};
    const Result<trace::GateRun> done = trace::run_gate(request);
    if (!done) return fail(kUsage, done.error());
    for (const auto& [file, text] : done->texts) {
        const Status written = file.empty() ? Status(Done{}) : write_file(file, text);
        if (!written) return fail(kUsage, written.error());
        if (file.empty() && print(text) != kGood) return kUsage;
    }
    return done->exit;
}

int info_verb(const po::variables_map&, const std::vector<std::string>& words) {
    if (words.size() != 1) return fail(kUsage, {"info: of which run?", "mp-trace info mp-trace.1763"});
    if (is_directory(words[0])) {
        const Result<trace::Run> whole = trace::read_run(words[0]);
        return whole ? print(trace::info_text(*whole)) : fail(kFailed, whole.error());
    }
    const Result<trace::Recording> one = trace::read_recording(words[0]);
    return one ? print(trace::info_text(*one)) : fail(kFailed, one.error());
}

int dump_verb(const po::variables_map&, const std::vector<std::string>& words) {
    if (words.size() != 1)
        return fail(kUsage, {"dump: of which recording?", "mp-trace dump mp-trace.1763/*.mpt"});
    if (is_directory(words[0]))
        return fail(kUsage,
                    {"dump: " + shell_word(words[0]) + " is a directory", "name one of its .mpt files"});
    const Result<trace::Recording> one = trace::read_recording(words[0]);
    return one ? print(trace::dump_text(*one)) : fail(kFailed, one.error());
}

int doctor_verb(const po::variables_map& map, const std::vector<std::string>& words) {
    if (!words.empty())
        return fail(kUsage, {"doctor: " + shell_word(words[0]) + " is no option", "mp-trace doctor --help"});
    DoctorRequest request;
    request.python = text_of(map, "python");
    request.only = text_of(map, "only");
    request.json = is_switch(map, "json");
    request.self_test = is_switch(map, "self-test");
    if (map.count("adapters")) request.adapters = map["adapters"].as<std::vector<std::string>>();
    return run_doctor(request);
}

int build_adapter_verb(const po::variables_map& map, const std::vector<std::string>& words) {
    if (!words.empty())
        return fail(kUsage, {"build-adapter: " + shell_word(words[0]) + " is no option",
                             "--torch DIR or --python EXE"});
    if (map.count("torch") && map.count("python"))
        return fail(kUsage, {"build-adapter: --torch and --python name two torches", "give one of them"});
    for (const char* name : {"torch", "python", "out"}) {
        if (map.count(name) && text_of(map, name).empty())
            return fail(kUsage, {"--" + std::string(name) + ": the name is empty", ""});
    }
    return run_build_adapter({.torch = text_of(map, "torch"),
                              .python = text_of(map, "python"),
                              .out = text_of(map, "out"),
                              .force = is_switch(map, "force"),
                              .quiet = is_switch(map, "quiet")});
}

int version_verb(const po::variables_map&, const std::vector<std::string>&) {
    const Result<Layout> layout = own_layout();
    std::string out = "mp-trace " + std::string(kVersion) + "\n";
    if (layout) {
        out += "preload: " + printable(layout->preload) + "\n";
        out += "adapter sources: " + printable(layout->sources) + "\n";
    }
    return print(out);
}

int help_verb(const po::variables_map&, const std::vector<std::string>&);

const std::vector<Verb>& verbs() {
    static const std::vector<Verb> all{
        {.name = "run",
         .usage = "[--] command ...",
         // clang-format off: a table
         .options = {{"output,o", "DIR", "run directory, a name with keys (default: mp-trace.%p, in a launcher %j)"},
                     {"mode", "MODE", "watch (default), local, step or trajectory"},
                     {"steps", "A:B:N", "steps A, A+N, ... below B (default: all)"},
                     {"ranks", "LIST", "record these: 0,8-15 (default: all)"},
                     {"budget", "SIZE", "of a recording, with K, M or G (default: 256M)"},
                     {"save-twin", "FILE", "the twin's tensors at the end, as safetensors: twin.%r.safetensors"},
                     {"save-real", "FILE", "the program's own, in the same shape"},
                     {"eager", nullptr, "run torch.compile regions eagerly, so that they are observed"},
                     {"free-ints", nullptr, "let the twin keep its own integer results"},
                     {"adapters", "DIR", "look for adapters here first; repeatable", true},
                     {"no-build", nullptr, "do not build a missing adapter"},
                     {"quiet,q", nullptr, "not a line of ours on stderr"},
                     {"help,h", nullptr, "this text"}},
         .usage_error = kPreflightFailed,
         .go = run_verb},
        {.name = "report",
         .usage = "DIR",
         .options = {{"html", "FILE", "one page that needs no network"},
                     {"text", nullptr, "verdict, first cause and a table of the steps on standard output (default)"},
                     {"json", "FILE", "everything, for machines; '-' is standard output"},
                     {"policy", "P", "check this precision too: fsdp:param=bf16,reduce=fp32; repeatable", true},
                     {"lint", "FILE", "mp-lint's JSON or SARIF: which findings does the run confirm? repeatable", true},
                     {"stats", nullptr, "time of each stage and sizes, on standard error"},
                     {"help,h", nullptr, "this text"}},
         .go = report_verb},
        {.name = "summary",
         .usage = "DIR",
         .options = {{"help,h", nullptr, "this text"}},
         .go = summary_verb},
        {.name = "gate",
         .usage = "DIR",
         .options = {{"rules", "FILE", "limits, suppressions and policies (default: mp-gate.toml where there is one)"},
                     {"lint", "FILE", "findings of mp-lint, JSON or SARIF; repeatable", true},
                     {"policy", "POLICY", "fsdp:param=bf16,reduce=fp32; autocast:cuda=bf16; a list; repeatable", true},
                     {"strict", nullptr, "warnings fail too"},
                     {"output", "FORMAT[=FILE]", "text (default), json, junit, sarif or github; repeatable", true},
                     {"stats", nullptr, "time of each stage and sizes, on standard error"},
                     {"help,h", nullptr, "this text"}},
         .go = gate_verb},
        {.name = "info", .usage = "DIR|FILE", .options = {{"help,h", nullptr, "this text"}}, .go = info_verb},
        {.name = "dump", .usage = "FILE", .options = {{"help,h", nullptr, "this text"}}, .go = dump_verb},
        {.name = "doctor",
         .usage = "",
         .options = {{"json", nullptr, "for machines"},
                     {"python", "EXE", "whose torch (default: python3)"},
                     {"self-test", nullptr, "trace known operations and check what is recorded"},
                     {"only", "SECTION", "launcher, environment, torch, tf32, bf16, cupti or cpu"},
                     {"adapters", "DIR", "look for adapters here first; repeatable", true},
                     {"help,h", nullptr, "this text"}},
         .go = doctor_verb},
        {.name = "build-adapter",
         .usage = "",
         .options = {{"torch", "DIR", "site-packages/torch, an unpacked libtorch, or a prefix like /usr"},
                     {"python", "EXE", "the torch that it imports (default: python3)"},
                     {"out", "DIR", "default: $XDG_CACHE_HOME/mp-trace/adapters or ~/.cache/mp-trace/adapters"},
                     {"force", nullptr, "although there is one"},
                     {"quiet,q", nullptr, "errors only"},
                     {"help,h", nullptr, "this text"}},
         .go = build_adapter_verb},
        {.name = "version", .usage = "", .options = {{"help,h", nullptr, "this text"}}, .go = version_verb},
        {.name = "help", .usage = "[verb]", .options = {{"help,h", nullptr, "this text"}}, .go = help_verb},
    };
    // clang-format on
    return all;
}

const Verb* verb_called(std::string_view name) {
    for (const Verb& verb : verbs()) {
        if (verb.name == name) return &verb;
    }
    return nullptr;
}

po::options_description described(const Verb& verb) {
    po::options_description all("Options of " + std::string(verb.name));
    for (const OptionText& o : verb.options) {
        if (o.repeats) {
            auto* list = po::value<std::vector<std::string>>()->composing()->value_name(o.value);
            all.add_options()(o.names, list, o.help);
        } else if (o.value) {
            all.add_options()(o.names, po::value<std::string>()->value_name(o.value), o.help);
        } else {
            all.add_options()(o.names, o.help);
        }
    }
    return all;
}

std::string usage_of(const Verb& verb) {
    const std::string name = verb.name == "run" ? "[run]" : std::string(verb.name);
    return "Usage: mp-trace " + name + " [options]" + (*verb.usage ? " " : "") + verb.usage + "\n";
}

std::string general_help() {
    std::ostringstream out;
    out << usage_of(verbs().front()) << "       mp-trace VERB --help\n\n"
        << kExamples << described(verbs().front()) << kKeys;
    return out.str();
}

std::string help_of(const Verb& verb) {
    if (verb.name == "run" || verb.name == "help") return general_help();
    std::ostringstream out;
    out << usage_of(verb) << "\n" << described(verb);
    return out.str();
}

std::string hint_for_verb(const std::string& word) {
    std::vector<std::string_view> names;
    for (const Verb& verb : verbs()) names.push_back(verb.name);
    std::string hint = did_you_mean(word, names);
    return hint.empty() ? "to trace a command: mp-trace -- " + shell_word(word) + " ..." : hint;
}

int help_verb(const po::variables_map&, const std::vector<std::string>& words) {
    if (words.empty()) return print(general_help());
    const Verb* verb = verb_called(words[0]);
    if (!verb) return fail(kUsage, {"no verb is called " + shell_word(words[0]), hint_for_verb(words[0])});
    return print(help_of(*verb));
}

// --- options ---

// Whether a word is an option of `verb` whose value is the next word ("-o", "--mode").
bool takes_next_word(const Verb& verb, std::string_view word) {
    for (const OptionText& o : verb.options) {
        if (!o.value) continue;
        const std::string_view names(o.names);
        const std::size_t comma = names.find(',');
        if (word.starts_with("--") && word.substr(2) == names.substr(0, comma)) return true;
        if (comma != std::string_view::npos && word.size() == 2 && word[0] == '-' &&
            word[1] == names[comma + 1])
            return true;
    }
    return false;
}

// Where the traced command begins in the words behind `run`: behind the first "--", or at the first word that
// is neither an option nor an option's value. The command's own options are none of ours.
struct Split {
    std::vector<std::string> ours;
    std::vector<std::string> command;
};
Split split_run(const Verb& verb, const std::vector<std::string>& words) {
    std::size_t at = 0;
    while (at < words.size() && words[at] != "--" && words[at].size() > 1 && words[at][0] == '-')
        at += takes_next_word(verb, words[at]) && at + 1 < words.size() && words[at + 1] != "--" ? 2 : 1;
    Split out{.ours = {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at)}, .command = {}};
    if (at < words.size() && words[at] == "--") ++at;
    out.command.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    return out;
}

Error unknown_option(const Verb& verb, const std::string& option) {
    std::vector<std::string> names;
    for (const OptionText& o : verb.options) {
        const std::string all(o.names);
        names.push_back("--" + all.substr(0, all.find(',')));
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::string hint = did_you_mean(option.substr(0, option.find('=')), views);
    if (hint.empty()) hint = "'mp-trace " + std::string(verb.name) + " --help' lists the options";
    return {std::string(verb.name) + ": unknown option " + shell_word(option), hint};
}

int go(const Verb& verb, const std::vector<std::string>& words) {
    Split split{.ours = words, .command = {}};
    if (verb.name == "run") split = split_run(verb, words);
    po::options_description all = described(verb);
    all.add_options()("word", po::value<std::vector<std::string>>(), "");
    po::positional_options_description positional;
    if (verb.name != "run") positional.add("word", -1);
    po::variables_map map;
    try {
        namespace style = po::command_line_style;
        po::store(po::command_line_parser(split.ours)
                      .options(all)
                      .positional(positional)
                      .style(style::default_style & ~style::allow_guessing)
                      .run(),
                  map);
    } catch (const po::unknown_option& e) {
        return fail(verb.usage_error, unknown_option(verb, e.get_option_name()));
    } catch (const po::error& e) {
        return fail(verb.usage_error, {std::string(verb.name) + ": " + e.what(),
                                       "'mp-trace " + std::string(verb.name) + " --help' lists the options"});
    }
    if (map.count("help")) return print(help_of(verb));
    if (map.count("word")) split.command = map["word"].as<std::vector<std::string>>();
    const int status = verb.go(map, split.command);
    if (map.count("stats")) say_on(STDERR_FILENO, Stats::of_process().text("mp-trace"));
    return status;
}

int dispatch(std::vector<std::string> words) {
    if (words.empty()) {
        say_on(STDERR_FILENO, general_help());
        return kUsage;
    }
    const std::string first = words[0];
    if (first == "--version") return version_verb({}, {});
    if (const Verb* verb = verb_called(first)) return go(*verb, {words.begin() + 1, words.end()});
    const bool has_command = std::find(words.begin(), words.end(), "--") != words.end();
    const bool asks_help = first == "--help" || first == "-h";
    if (has_command || asks_help) {
        // "mp-trace rnu -- x": a mistyped verb is no command.
        if (!first.starts_with("-"))
            return fail(kPreflightFailed, {"no verb is called " + shell_word(first), hint_for_verb(first)});
        return go(*verb_called("run"), words);
    }
    if (!first.starts_with("-"))
        return fail(kUsage, {"no verb is called " + shell_word(first), hint_for_verb(first)});
    static constexpr std::array<std::string_view, 2> kGeneral{"--help", "--version"};
    std::string hint = did_you_mean(first, kGeneral);
    return fail(kUsage, {"neither a verb nor a command: " + shell_word(first),
                         hint.empty() ? "mp-trace [options] -- command" : hint});
}

// A closed standard stream would give its number to the next file opened, and our text to that file. The
// traced program finds it closed again: what fills it closes on exec.
void fill_standard_streams() {
    for (const int fd : {0, 1, 2}) {
        if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDWR | O_CLOEXEC);
    }
}

}  // namespace

int main(int argc, char** argv) {
    fill_standard_streams();
    try {
        return dispatch(argc > 0 ? std::vector<std::string>(argv + 1, argv + argc)
                                 : std::vector<std::string>());
    } catch (const std::exception& e) {
        return fail(kPreflightFailed, {std::string("internal error: ") + e.what(), ""});
    }
}
