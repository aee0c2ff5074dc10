// The command line of mp-lint: options and their help. What the words do is in verbs.cpp.

#include <sys/stat.h>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/plan.hpp"
#include "analyzer/verbs.hpp"
#include "kernels/base/cli/command_line.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/suggest.hpp"

namespace {

using namespace mp;
using namespace mp::lint;

constexpr std::string_view kExamples =
    R"(mp-lint finds mixed-precision defects in Python, C++ and CUDA sources.

  mp-lint                                      the current directory
  mp-lint src                                  a directory; compile_commands.json is found by itself
  mp-lint train.py notebooks                   Python needs no build
  mp-lint -p build src/norm.cu                 with the database of a build directory
  mp-lint kernels.cu -- -DENABLE_BF16 -Iinclude
  mp-lint --output text --output sarif=lint.sarif src
  mp-lint --select ALL --ignore MP602 src      off-by-default rules too
  mp-lint --fix train.py                       make the fixes that are safe; --diff shows them
  mp-lint baseline make known.json src         adopt: what is there now does not count with
  mp-lint --baseline known.json src            this option; 'update' drops what was fixed since
  mp-lint --diff-base origin/main src          only what is on changed lines
  mp-lint rules                                every rule, a line each
  mp-lint rule MP401                           why, bad and good code, the fix, how to suppress
  mp-lint policy list                          op lists; 'show NAME' one, 'dump --from-torch' yours
  mp-lint facts norm.cu                        what mp-lint knows about a file
  mp-lint --show-command norm.cu               the clang command lines it would use

Exit status: 0 nothing found, 1 errors or warnings, 2 a usage error, nothing could be analysed,
or with --strict a unit that did not parse. Notes never count towards it;
text tells how many there are, and --notes shows them.

)";

constexpr cli::Option kOptions[] = {
    {"database,p", "BUILD", "directory or file of compile_commands.json"},
    {"output", "FORMAT[=FILE]", "text (default), json, sarif, github, gitlab, rdjson, junit, markdown", true},
    {"select", "RULES", "run these: ids, names, families (MP4), patterns, ALL", true},
    {"ignore", "RULES", "run all but these", true},
    {"fix", nullptr, "change the files: make the fixes that are safe"},
    {"unsafe-fixes", nullptr, "with --fix or --diff: those too that may change results"},
    {"diff", nullptr, "print what --fix would change, change nothing"},
    {"baseline", "FILE", "findings listed in this file do not count"},
    {"diff-base", "REV", "only findings on lines changed since a git revision"},
    {"strict", nullptr, "exit 2 when a unit did not parse cleanly"},
    {"exit-zero", nullptr, "exit 0 when there are findings"},
    {"inference", nullptr, "no training here: same as --profile inference"},
    {"profile", "KIND", "training (default) or inference"},
    {"torch", "VERSION", "whose autocast lists to use, \"2.4\" (default: newest)"},
    {"device", "DEVICE", "cuda, cpu, hpu, xpu, mps or xla: of a program that does not say"},
    {"assume", "DTYPE", "fp16 or bf16: what users of a library pass as tensors; what breaks then?"},
    {"policy", "FILE", "an op list instead of the built-in one of its device", true},
    {"cuda", "WHICH", "headers: auto (default), stubs, or the path of a toolkit"},
    {"torch-headers", "WHICH", "auto (default), stubs, or a directory with libtorch"},
    {"exact", nullptr, "read function bodies of system headers too"},
    {"jobs,j", "N", "processes and threads (default: processors)"},
    {"timeout", "SECONDS", "per unit (default: 120)"},
    {"no-cache", nullptr, "neither read nor write the cache"},
    {"cache-dir", "DIR", "default: $XDG_CACHE_HOME/mp-lint or ~/.cache/mp-lint"},
    {"config", "FILE", "instead of the nearest mp-lint.toml"},
    {"isolated", nullptr, "read no configuration"},
    {"show-command", nullptr, "print the clang command lines, do nothing"},
    {"verbose,v", nullptr, "coverage of every unit"},
    {"notes", nullptr, "show notes too: facts worth knowing that never fail a run"},
    {"quiet,q", nullptr, "findings only"},
    {"stats", nullptr, "time of each stage, units and cache hits, on standard error"},
    {"color", "WHEN", "auto (default), always or never"},
    {"version", nullptr, "versions of mp-lint, clang and CUDA headers"},
    {"help,h", nullptr, "this text"},
    {"whole-tree", nullptr, nullptr},  // for tests: no slice, no cache
};

cli::Command command() {
    return {.heading = "Options",
            .options = kOptions,
            .help_command = "mp-lint --help",
            .more_help = "; flags for the compiler go after '--'",
            .quoted = [](std::string_view word) { return "'" + std::string(word) + "'"; }};
}

// --- reading options ---

Status read_rules(const cli::Values& map, LintOptions& lint) {
    for (const auto& [name, into] : {std::pair{"select", &lint.select}, {"ignore", &lint.ignore}}) {
        if (!map.has(name)) continue;
        *into = cli::split_commas(map.list(name));
        for (const std::string& word : *into) {
            const Status ok = check_rule_word(word, all_rules());
            if (!ok) return Error{"--" + std::string(name) + ": " + ok.error().message, ok.error().hint};
        }
    }
    return Done{};
}

Status read_numbers(const cli::Values& map, LintOptions& lint) {
    if (map.has("jobs")) {
        const Result<int> jobs = cli::number<int>("-j", map.text("jobs"), 1, 1024);
        if (!jobs) return jobs.error();
        lint.jobs = *jobs;
    }
    if (map.has("timeout")) {
        const Result<double> seconds = cli::number<double>("--timeout", map.text("timeout"), 0.001, 1e6);
        if (!seconds) return seconds.error();
        lint.timeout = *seconds;
    }
    return Done{};
}

Status read_outputs(const cli::Values& map, std::vector<Output>& outputs) {
    const Result<std::vector<cli::Destination>> found =
        cli::destinations("--output", map.list("output"), kFormatNames);
    if (!found) return found.error();
    for (const cli::Destination& d : *found) outputs.push_back({static_cast<Format>(d.format), d.file});
    return Done{};
}

// What the program itself does not say.
Status read_program(const cli::Values& map, LintOptions& lint) {
    if (map.has("policy")) {
        for (const std::string& file : map.list("policy"))
            lint.policy_files.push_back(absolute_path(file, lint.working_directory));
    }
    if (map.has("assume")) {
        static constexpr std::array<std::string_view, 2> kHalves{"fp16", "bf16"};
        const std::string name = map.text("assume");
        if (Status known = cli::one_of("--assume", name, kHalves); !known) return known;
        lint.assume = *dtype_from_name(name);
    }
    if (!map.has("device")) return Done{};
    lint.device = map.text("device");
    return cli::one_of("--device", lint.device, device_names());
}

Status read_profile(const cli::Values& map, LintOptions& lint) {
    static constexpr std::array<std::string_view, 2> kProfiles{"training", "inference"};
    if (map.has("inference")) lint.inference = true;
    if (!map.has("profile")) return Done{};
    const std::string profile = map.text("profile");
    const Status ok = cli::one_of("--profile", profile, kProfiles);
    if (ok) lint.inference = profile == "inference";
    return ok;
}

Status read_adoption(const cli::Values& map, AdoptOptions& adopt) {
    adopt.how.only_show = map.has("diff");
    adopt.how.with_unsafe = map.has("unsafe-fixes");
    adopt.fix = map.has("fix") || adopt.how.only_show;
    if (adopt.how.with_unsafe && !adopt.fix)
        return Error{"--unsafe-fixes: with --fix or --diff only", "--fix changes files"};
    for (const auto& [name, into] :
         {std::pair{"baseline", &adopt.baseline}, {"diff-base", &adopt.diff_base}}) {
        if (!map.has(name)) continue;
        *into = map.text(name);
        if (into->empty()) return Error{"--" + std::string(name) + ": the value is empty", ""};
    }
    return Done{};
}

Status fill(const cli::Values& map, CommandLine& line) {
    static constexpr std::array<std::string_view, 3> kColors{"auto", "always", "never"};
    auto text = [&map](const char* name, std::string& into) {
        if (map.has(name)) into = map.text(name);
    };
    line.lint.inputs = map.words();
    text("database", line.lint.database);
    text("torch", line.lint.torch);
    text("cache-dir", line.lint.cache_directory);
    text("config", line.config);
    text("color", line.color);
    if (map.has("cuda")) set_cuda(line.lint, map.text("cuda"));
    if (map.has("torch-headers")) set_torch_headers(line.lint, map.text("torch-headers"));
    line.lint.exact = map.has("exact");
    line.lint.use_cache = !map.has("no-cache") && !map.has("whole-tree");
    line.isolated = map.has("isolated");
    line.strict = map.has("strict");
    // A file that is not parsed cannot be known to parse.
    line.lint.whole_tree = map.has("whole-tree") || line.strict;
    line.exit_zero = map.has("exit-zero");
    line.verbose = map.has("verbose");
    line.quiet = map.has("quiet");
    line.notes = map.has("notes");
    line.stats = map.has("stats");
    line.help = map.has("help");
    line.version = map.has("version");
    line.show_command = map.has("show-command");
    for (const Status& status :
         {read_rules(map, line.lint), read_numbers(map, line.lint), read_outputs(map, line.outputs),
          read_profile(map, line.lint), read_program(map, line.lint), read_adoption(map, line.adopt),
          cli::one_of("--color", line.color, kColors)}) {
        if (!status) return status;
    }
    return Done{};
}

Result<CommandLine> parse(std::vector<std::string> arguments) {
    CommandLine line;
    std::error_code gone;
    const std::string here = std::filesystem::current_path(gone).string();
    line.lint.working_directory = absolute_path(".", here.empty() ? "/" : here);
    // What follows "--" is the compiler's; the parser must not see it.
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] != "--") continue;
        line.lint.flags.emplace(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
        arguments.resize(i);
    }
    const Result<cli::Values> values = cli::parse(command(), arguments);
    if (!values) return values.error();
    for (const cli::Option& o : kOptions)
        if (const std::string name(cli::long_name(o)); values->has(name)) line.given.push_back(name);
    const Status filled = fill(*values, line);
    if (!filled) return filled.error();
    return line;
}

int print_help() {
    return print("Usage: mp-lint [options] [files and directories] [-- compiler flags]\n\n" +
                 std::string(kExamples) + cli::help_of(command()))
               ? kClean
               : kUsage;
}

// The words of "baseline make FILE": what follows them is linted.
std::vector<std::string> take_words(std::vector<std::string>& inputs, std::size_t most) {
    const auto end = inputs.begin() + static_cast<std::ptrdiff_t>(std::min(most, inputs.size()));
    std::vector<std::string> out(inputs.begin(), end);
    inputs.erase(inputs.begin(), end);
    return out;
}

Status add_config(CommandLine& line) {
    if (line.isolated) return Done{};
    const std::string start = start_directory(line.lint);
    const Result<Config> config =
        line.config.empty()
            ? find_config(start, all_rules())
            : load_config(absolute_path(line.config, line.lint.working_directory), all_rules());
    if (!config) return config.error();
    apply_config(line.lint, *config);
    return Done{};
}

std::vector<std::string_view> names_of_words();

// "mp-lint rulse" is a mistyped word, not a file that went missing.
Status check_first_word(const std::vector<std::string>& inputs) {
    struct stat info{};
    if (inputs.empty() || ::stat(inputs[0].c_str(), &info) == 0) return Done{};
    const std::string hint = did_you_mean(inputs[0], names_of_words());
    if (hint.empty()) return Done{};
    return Error{"neither a command nor a file: '" + inputs[0] + "'", hint};
}

Status prepare(CommandLine& line) {
    const Status first = check_first_word(line.lint.inputs);
    return first ? add_config(line) : first;
}

// --- words ---

int rules_word(CommandLine&, const FrontEnds&) { return print_rules(); }

int rule_word(CommandLine& line, const FrontEnds&) { return print_rule(line.lint.inputs); }

int policy_word(CommandLine&, const FrontEnds&) {
    return fail({"policy: an option is given before the word", "mp-lint policy list"});
}

int help_word(CommandLine&, const FrontEnds&) { return print_help(); }

int facts_word(CommandLine& line, const FrontEnds& parts) {
    const Status ready = prepare(line);
    return ready ? print_facts_of(line.lint, parts) : fail(ready.error());
}

int baseline_word(CommandLine& line, const FrontEnds& parts) {
    const std::vector<std::string> words = take_words(line.lint.inputs, 2);
    const Status ready = prepare(line);
    return ready ? baseline(words, line, parts) : fail(ready.error());
}

int lint_word(CommandLine& line, const FrontEnds& parts) {
    const Status ready = prepare(line);
    if (!ready) return fail(ready.error());
    if (!line.show_command) return lint_sources(line, parts);
    const Result<std::string> commands = show_command(line.lint, parts);
    if (!commands) return fail(commands.error());
    return print(*commands) ? kClean : kUsage;
}

// Which options a word takes, besides --help and --version.
enum class Takes : std::uint8_t { none, reading, reading_and_judging, all };

struct Word {
    std::string_view name;
    Takes takes;
    int (*go)(CommandLine&, const FrontEnds&);
};

constexpr Word kWords[] = {
    {"", Takes::all, lint_word},
    {"facts", Takes::reading, facts_word},
    {"rules", Takes::none, rules_word},
    {"rule", Takes::none, rule_word},
    {"policy", Takes::all, policy_word},  // run() hands its own options over
    {"baseline", Takes::reading_and_judging, baseline_word},
    {"help", Takes::all, help_word},
};

std::vector<std::string_view> names_of_words() {
    std::vector<std::string_view> out;
    for (const Word& word : kWords)
        if (!word.name.empty()) out.push_back(word.name);
    return out;
}

// What the first word that is not an option names; without a name, paths are linted.
const Word& word_of(const std::vector<std::string>& inputs) {
    for (const Word& word : kWords)
        if (!inputs.empty() && !word.name.empty() && word.name == inputs[0]) return word;
    return kWords[0];
}

bool takes(const Word& word, std::string_view option) {
    static constexpr std::string_view kReading[] = {"database", "cuda",     "torch-headers", "exact",
                                                    "jobs",     "timeout",  "no-cache",      "cache-dir",
                                                    "config",   "isolated", "stats",         "whole-tree"};
    static constexpr std::string_view kJudging[] = {"select", "ignore", "exit-zero", "inference", "profile",
                                                    "torch",  "device", "assume",    "policy"};
    const auto is_in = [option](const auto& list) { return std::ranges::count(list, option) > 0; };
    if (word.takes == Takes::all || option == "help" || option == "version") return true;
    if (word.takes == Takes::none) return false;
    return is_in(kReading) || (word.takes == Takes::reading_and_judging && is_in(kJudging));
}

// An option without effect is refused, because it hides a mistake.
Status check_options(const Word& word, const std::vector<std::string>& given) {
    for (const std::string& option : given) {
        if (takes(word, option)) continue;
        std::string all;
        for (const cli::Option& o : kOptions)
            if (o.help && takes(word, cli::long_name(o)))
                all += (all.empty() ? "" : ", ") + ("--" + std::string(cli::long_name(o)));
        return Error{std::string(word.name) + ": --" + option + " is not an option of this word",
                     std::string(word.name) + " takes " + all};
    }
    return Done{};
}

int run(std::vector<std::string> arguments) {
    // Its options are its own.
    if (!arguments.empty() && arguments[0] == "policy")
        return policy({arguments.begin() + 1, arguments.end()});
    Result<CommandLine> parsed = parse(std::move(arguments));
    if (!parsed) return fail(parsed.error());
    CommandLine& line = *parsed;
    std::vector<std::string>& inputs = line.lint.inputs;

    const Word& word = word_of(inputs);
    if (!word.name.empty()) inputs.erase(inputs.begin());
    if (line.help) return print_help();
    if (const Status good = check_options(word, line.given); !good) return fail(good.error());
    const FrontEnds parts = real_front_ends();
    if (line.version) return print_version(line, parts);
    const int code = word.go(line, parts);
    if (line.stats) std::cerr << Stats::of_process().text("mp-lint");
    return code;
}

// The heap of the main thread in large pages: where a tree is linked, a tenth of the time were faults of small ones.
void use_large_pages() {
    constexpr std::size_t kHeap = 256 << 20, kPage = 2 << 20;
    // The next request extends the heap by so much; memory is taken when it is written. A pair of calls that nothing
    // reads would be left out.
    ::mallopt(M_TOP_PAD, kHeap);
    void* volatile grows = std::malloc(1 << 20);
    std::free(grows);
    char* const end = static_cast<char*>(::sbrk(0));
    const std::size_t past = reinterpret_cast<std::uintptr_t>(end - kHeap) % kPage;
    char* const begin = end - kHeap + (past == 0 ? 0 : kPage - past);
    ::madvise(begin, static_cast<std::size_t>(end - begin), MADV_HUGEPAGE);
}

// Threads fill memory at the same time, and each request to the system for more stops them all.
void set_up_heap() {
    ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
    ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
    ::mallopt(M_MXFAST, 0);  // small blocks that wait to be merged make each large free() look at all of them
    use_large_pages();
    ::mallopt(M_TOP_PAD, 16 << 20);
}

}  // namespace

int main(int argc, char** argv) {
    set_up_heap();
    cli::fill_standard_streams();
    std::signal(SIGPIPE, SIG_IGN);  // write() says it, and output files are still completed
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& e) {
        say("error", std::string("internal error: ") + e.what());
        return kUsage;
    }
}
