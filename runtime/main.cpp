// The command line of mp-trace. Starting a program is runtime/launch, reading recordings runtime/trace and
// runtime/report; this file reads options, prints, and turns results into exit codes.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/cli/command_line.hpp"
#include "kernels/base/files.hpp"
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
#include "runtime/trace/info.hpp"
#include "runtime/trace/reader.hpp"
#include "runtime/verbs/gate.hpp"
#include "runtime/verbs/report.hpp"

namespace {

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
  mp-trace doctor ./train -- -DUSE_NCCL                a CUDA program: what would be seen, and its sources
  mp-trace build-adapter --python .venv/bin/python     for its torch; run does it by itself when it is missing

Exit status of run: the program's own, or death by the same signal; 125 when mp-trace could not
prepare the run, 126 when the program is not executable, 127 when it is not found: then nothing has
started. The other verbs: 0 done, 1 failed, 2 a usage error.

)";

constexpr std::string_view kKeys = R"(
Names may hold %p process, %h host, %r rank, %l local rank, %s world size, %j job, %c restart count,
%t start time, %q{VAR} an environment variable, and %% for '%'.
What is not known is x, as the rank of a single process.
)";

// What a verb gets beside its options: its words, or what follows "--" and is not for us.
enum class Rest { words, behind_dashes };

struct Verb {
    std::string_view name;
    const char* usage = "";  // what follows the options
    std::vector<cli::Option> options;
    int usage_error = kUsage;
    int (*go)(const cli::Values&, const std::vector<std::string>& rest) = nullptr;
    Rest rest = Rest::words;
};

const std::vector<Verb>& verbs();

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
Status read(const cli::Values& map, const char* name, Parse parse, T& into) {
    if (!map.has(name)) return Done{};
    auto value = parse(map.text(name));
    if (!value) return Error{"--" + std::string(name) + ": " + value.error().message, value.error().hint};
    into = std::move(*value);
    return Done{};
}

int run_verb(const cli::Values& map, const std::vector<std::string>& command) {
    RunRequest request;
    request.command = command;
    for (const Status& status :
         {read(map, "mode", parse_mode, request.mode), read(map, "steps", parse_steps, request.steps),
          read(map, "ranks", parse_ranks, request.ranks), read(map, "budget", parse_size, request.budget),
          read(map, "overhead", parse_share, request.overhead)}) {
        if (!status) return fail(kPreflightFailed, status.error());
    }
    for (const auto& [name, into] : {std::pair{"output", &request.output},
                                     {"save-twin", &request.save_twin},
                                     {"save-real", &request.save_real},
                                     {"step-range", &request.step_range}}) {
        if (!map.has(name)) continue;
        *into = map.text(name);
        if (into->empty())
            return fail(kPreflightFailed, {"--" + std::string(name) + ": the name is empty", ""});
    }
    request.adapters = map.list("adapters");
    request.eager = map.has("eager");
    request.device_times = map.has("device-times");
    request.free_ints = map.has("free-ints");
    request.twin_noise = map.has("twin-noise");
    request.quiet = map.has("quiet");
    request.build = !map.has("no-build");
    return run(request);
}

bool is_directory(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Status write_file(const std::string& path, const std::string& text) {
    const SignalsHeld held;
    Result<OutputFile> file = OutputFile::open(path);
    const Status written = file ? file->commit(text) : Status(file.error());
    return written ? written : Error{shell_word(path) + ": " + written.error().message, ""};
}

// Where a text goes: a file, or standard output where there is no name.
int put(const std::string& file, const std::string& text) {
    if (file.empty()) return print(text);
    const Status written = write_file(file, text);
    return written ? kGood : fail(kFailed, written.error());
}

int report_verb(const cli::Values& map, const std::vector<std::string>& words) {
    if (words.size() != 1) return fail(kUsage, {"report: of which run?", "mp-trace report mp-trace.1763"});
    for (const char* name : {"json", "html"}) {
        if (map.has(name) && map.text(name).empty())
            return fail(kUsage, {"--" + std::string(name) + ": the name is empty",
                                 std::string("--") + name + " FILE"});
    }
    const trace::ReportRequest request{.directory = words[0],
                                       .text = map.has("text"),
                                       .html = map.text("html"),
                                       .json = map.text("json"),
                                       .noise = map.text("noise"),
                                       .lint = map.list("lint"),
                                       .policies = map.list("policy")};
    const Result<trace::ReportInputs> inputs = trace::read_inputs(request);
    if (!inputs) return fail(kUsage, inputs.error());
    const Result<trace::ReportRun> done = trace::run_report(request, *inputs);
    if (!done) return fail(kFailed, done.error());
    for (const Error& error : done->warnings) say("warning: " + error.message);
    for (const auto& [file, text] : done->texts) {
        if (const int status = put(file, text); status != kGood) return status;
    }
    return kGood;
}

int summary_verb(const cli::Values&, const std::vector<std::string>& words) {
    if (words.size() != 1) return fail(kUsage, {"summary: of which run?", "mp-trace summary mp-trace.1763"});
    const Result<std::string> text = trace::summary_of(words[0]);
    if (!text) return fail(kFailed, text.error());
    (void)say_on(STDERR_FILENO, *text);
    return kGood;
}

int gate_verb(const cli::Values& map, const std::vector<std::string>& words) {
    if (words.size() != 1) return fail(kUsage, {"gate: of which run?", "mp-trace gate mp-trace.1763"});
    const trace::GateRequest request{.directory = words[0],
                                     .rules = map.text("rules"),
                                     .noise = map.text("noise"),
                                     .lint = map.list("lint"),
                                     .policies = map.list("policy"),
                                     .outputs = map.list("output"),
                                     .strict = map.has("strict"),
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

int info_verb(const cli::Values&, const std::vector<std::string>& words) {
    if (words.size() != 1) return fail(kUsage, {"info: of which run?", "mp-trace info mp-trace.1763"});
    if (is_directory(words[0])) {
        const Result<trace::Run> whole = trace::read_run(words[0]);
        return whole ? print(trace::info_text(*whole)) : fail(kFailed, whole.error());
    }
    const Result<trace::Recording> one = trace::read_recording(words[0]);
    return one ? print(trace::info_text(*one)) : fail(kFailed, one.error());
}

int dump_verb(const cli::Values&, const std::vector<std::string>& words) {
    if (words.size() != 1)
        return fail(kUsage, {"dump: of which recording?", "mp-trace dump mp-trace.1763/*.mpt"});
    if (is_directory(words[0]))
        return fail(kUsage,
                    {"dump: " + shell_word(words[0]) + " is a directory", "name one of its .mpt files"});
    const Result<trace::Recording> one = trace::read_recording(words[0]);
    return one ? print(trace::dump_text(*one)) : fail(kFailed, one.error());
}

int doctor_verb(const cli::Values& map, const std::vector<std::string>& flags) {
    const std::vector<std::string>& words = map.words();
    if (words.size() > 1)
        return fail(kUsage,
                    {"doctor: " + shell_word(words[1]) + " is not an option", "mp-trace doctor --help"});
    DoctorRequest request;
    if (!words.empty()) request.program = words[0];
    request.sources = map.text("sources");
    request.flags = flags;
    if (map.has("sources") && !is_directory(request.sources))
        return fail(kUsage, {"--sources: " + shell_word(request.sources) + " is not a directory", ""});
    if (!flags.empty() && request.program.empty() && request.sources.empty())
        return fail(kUsage, {"doctor: the flags after -- are of which sources?", "--sources DIR"});
    request.python = map.text("python");
    request.only = map.text("only");
    request.json = map.has("json");
    request.self_test = map.has("self-test");
    request.adapters = map.list("adapters");
    return run_doctor(request);
}

int build_adapter_verb(const cli::Values& map, const std::vector<std::string>& words) {
    if (!words.empty())
        return fail(kUsage, {"build-adapter: " + shell_word(words[0]) + " is not an option",
                             "--torch DIR or --python EXE"});
    if (map.has("torch") && map.has("python"))
        return fail(kUsage, {"build-adapter: --torch and --python name two torches", "give one of them"});
    for (const char* name : {"torch", "python", "out"}) {
        if (map.has(name) && map.text(name).empty())
            return fail(kUsage, {"--" + std::string(name) + ": the name is empty", ""});
    }
    return run_build_adapter({.torch = map.text("torch"),
                              .python = map.text("python"),
                              .out = map.text("out"),
                              .force = map.has("force"),
                              .quiet = map.has("quiet")});
}

int version_verb(const cli::Values&, const std::vector<std::string>&) {
    const Result<Layout> layout = own_layout();
    std::string out = "mp-trace " + std::string(kVersion) + "\n";
    if (layout) {
        out += "preload: " + printable(layout->preload) + "\n";
        out += "adapter sources: " + printable(layout->sources) + "\n";
    }
    return print(out);
}

int help_verb(const cli::Values&, const std::vector<std::string>&);

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
                     {"overhead", "SHARE", "measure fewer steps in full, within this share of the time: 3%"},
                     {"step-range", "NAME", "NVTX ranges that are steps, '*' is the number: 'Train step *'"},
                     {"device-times", nullptr, "CUDA programs: what kernels take in each layer (CUPTI; slows the run)"},
                     {"save-twin", "FILE", "the twin's tensors at the end, as safetensors: twin.%r.safetensors"},
                     {"save-real", "FILE", "the program's own, in the same shape"},
                     {"eager", nullptr, "run torch.compile regions eagerly, so that they are observed"},
                     {"free-ints", nullptr, "let the twin keep its own integer results"},
                     {"twin-noise", nullptr, "change the twin's weights by one rounding after step 0: gate --noise"},
                     {"adapters", "DIR", "look for adapters here first; repeatable", true},
                     {"no-build", nullptr, "do not build a missing adapter"},
                     {"quiet,q", nullptr, "print nothing on stderr"},
                     {"help,h", nullptr, "this text"}},
         .usage_error = kPreflightFailed,
         .go = run_verb,
         .rest = Rest::behind_dashes},
        {.name = "report",
         .usage = "DIR",
         .options = {{"html", "FILE", "one page that needs no network"},
                     {"text", nullptr, "verdict, first cause and a table of the steps on standard output (default)"},
                     {"json", "FILE", "everything, for machines; '-' is standard output"},
                     {"noise", "DIR", "the same training with --twin-noise: how much one rounding matters"},
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
                     {"noise", "DIR", "the same training with --twin-noise: how much one rounding matters"},
                     {"policy", "POLICY", "fsdp:param=bf16,reduce=fp32; autocast:cuda=bf16; a list; repeatable", true},
                     {"strict", nullptr, "warnings fail too"},
                     {"output", "FORMAT[=FILE]", "text (default), json, junit, sarif or github; repeatable", true},
                     {"stats", nullptr, "time of each stage and sizes, on standard error"},
                     {"help,h", nullptr, "this text"}},
         .go = gate_verb},
        {.name = "info", .usage = "DIR|FILE", .options = {{"help,h", nullptr, "this text"}}, .go = info_verb},
        {.name = "dump", .usage = "FILE", .options = {{"help,h", nullptr, "this text"}}, .go = dump_verb},
        {.name = "doctor",
         .usage = "[PROGRAM] [-- flags of its build]",
         .options = {{"json", nullptr, "for machines"},
                     {"sources", "DIR", "of a CUDA program; mp-lint reads them with the flags after --"},
                     {"python", "EXE", "whose torch (default: python3)"},
                     {"self-test", nullptr, "trace known operations and check what is recorded"},
                     {"only", "SECTION", "launcher, environment, torch, tf32, bf16, cupti or cpu"},
                     {"adapters", "DIR", "look for adapters here first; repeatable", true},
                     {"help,h", nullptr, "this text"}},
         .go = doctor_verb,
         .rest = Rest::behind_dashes},
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

cli::Command command_of(const Verb& verb) {
    const std::string name(verb.name);
    return {.heading = "Options of " + name,
            .options = verb.options,
            .help_command = "mp-trace " + name + " --help",
            .prefix = name + ": ",
            .takes_words = verb.name != "run"};
}

std::string usage_of(const Verb& verb) {
    const std::string name = verb.name == "run" ? "[run]" : std::string(verb.name);
    return "Usage: mp-trace " + name + " [options]" + (*verb.usage ? " " : "") + verb.usage + "\n";
}

std::string general_help() {
    return usage_of(verbs().front()) + "       mp-trace VERB --help\n\n" + std::string(kExamples) +
           cli::help_of(command_of(verbs().front())) + std::string(kKeys);
}

std::string help_of(const Verb& verb) {
    if (verb.name == "run" || verb.name == "help") return general_help();
    return usage_of(verb) + "\n" + cli::help_of(command_of(verb));
}

std::string hint_for_verb(const std::string& word) {
    std::vector<std::string_view> names;
    for (const Verb& verb : verbs()) names.push_back(verb.name);
    std::string hint = did_you_mean(word, names);
    return hint.empty() ? "to trace a command: mp-trace -- " + shell_word(word) + " ..." : hint;
}

int help_verb(const cli::Values&, const std::vector<std::string>& words) {
    if (words.empty()) return print(general_help());
    const Verb* verb = verb_called(words[0]);
    if (!verb) return fail(kUsage, {"no verb is called " + shell_word(words[0]), hint_for_verb(words[0])});
    return print(help_of(*verb));
}

// --- options ---

struct Split {
    std::vector<std::string> ours;
    std::vector<std::string> rest;
};

Split split_at(const std::vector<std::string>& words, std::size_t at) {
    const auto cut = words.begin() + static_cast<std::ptrdiff_t>(at);
    return {.ours = {words.begin(), cut},
            .rest = {cut != words.end() && *cut == "--" ? cut + 1 : cut, words.end()}};
}

// Where the traced command begins in the words behind `run`: behind the first "--", or at the first word that
// is neither an option nor an option's value. The command's own options are none of ours.
Split split_run(const Verb& verb, const std::vector<std::string>& words) {
    std::size_t at = 0;
    while (at < words.size() && words[at] != "--" && words[at].size() > 1 && words[at][0] == '-')
        at += cli::takes_next_word(verb.options, words[at]) && at + 1 < words.size() && words[at + 1] != "--"
                  ? 2
                  : 1;
    return split_at(words, at);
}

int go(const Verb& verb, const std::vector<std::string>& words) {
    Split split{.ours = words, .rest = {}};
    if (verb.rest == Rest::behind_dashes)
        split =
            verb.name == "run"
                ? split_run(verb, words)
                : split_at(words, static_cast<std::size_t>(std::ranges::find(words, "--") - words.begin()));
    const Result<cli::Values> values = cli::parse(command_of(verb), split.ours);
    if (!values) return fail(verb.usage_error, values.error());
    if (values->has("help")) return print(help_of(verb));
    const int status = verb.go(*values, verb.rest == Rest::behind_dashes ? split.rest : values->words());
    if (values->has("stats")) say_on(STDERR_FILENO, Stats::of_process().text("mp-trace"));
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

}  // namespace

int main(int argc, char** argv) {
    cli::fill_standard_streams();
    try {
        return dispatch(argc > 0 ? std::vector<std::string>(argv + 1, argv + argc)
                                 : std::vector<std::string>());
    } catch (const std::exception& e) {
        return fail(kPreflightFailed, {std::string("internal error: ") + e.what(), ""});
    }
}
