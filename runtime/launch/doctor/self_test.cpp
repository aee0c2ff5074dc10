#include "runtime/launch/doctor/self_test.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "embedded_doctor_scripts.hpp"
#include "kernels/base/child.hpp"
#include "runtime/launch/variables.hpp"

namespace mp::launch::doctor {
namespace {

// Relative L2 error of values rounded once to bf16, whose unit roundoff u is 2^-8: 0.425 u for values
// distributed like those of a product (docs/measures.md).
constexpr double kLowest = 1.60e-3, kHighest = 1.70e-3;
constexpr double kTolerance = 0.01;

// The traced run builds the adapter if it does not exist yet.
constexpr ChildLimits kTracedLimits{.milliseconds = 600'000};
constexpr ChildLimits kPlainLimits{.milliseconds = 180'000};

struct Check {
    const char* name;
    std::vector<const char*> ops;  // names of the op in different versions of torch; the first recorded one
                                   // is used
    bool exact;
};

const std::array<Check, 4>& checks() {
    static const std::array<Check, 4> kChecks = {
        Check{"matmul", {"aten::mm", "aten::addmm", "aten::matmul"}, false},
        Check{"gelu", {"aten::gelu"}, false},
        // Without a fused kernel (on a CPU) dropout is a product with its mask.
        Check{"dropout", {"aten::native_dropout", "aten::mul"}, false},
        Check{"layer_norm", {"aten::native_layer_norm", "aten::layer_norm"}, true}};
    return kChecks;
}

std::string shown(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3e", value);
    return text.data();
}

// The rest of each line that begins with `word` and a blank.
std::vector<std::string> lines_of(std::string_view out, std::string_view word) {
    std::vector<std::string> found;
    while (!out.empty()) {
        const std::size_t end = std::min(out.find('\n'), out.size());
        const std::string_view line = out.substr(0, end);
        if (line.size() > word.size() && line.starts_with(word) && line[word.size()] == ' ')
            found.emplace_back(line.substr(word.size() + 1));
        out.remove_prefix(std::min(end + 1, out.size()));
    }
    return found;
}

Line judged(const Check& check, const SelfTestFacts& facts) {
    Line line{.key = check.exact ? "fp32 " + std::string(check.name) : "bf16 " + std::string(check.name),
              .verdict = Verdict::no};
    const OpSums* sums = nullptr;
    for (const char* const op : check.ops)
        if (const auto found = facts.ops.find(op);
            !sums && found != facts.ops.end() && found->second.elements)
            sums = &found->second, line.key += std::string(" (") + op + ")";
    if (!sums) {
        line.value = "was not recorded";
        return line;
    }
    if (sums->nonfinite) {
        line.value = std::to_string(sums->nonfinite) + " values are not finite";
        return line;
    }
    const double error = sums->error_squares == 0 ? 0 : std::sqrt(sums->error_squares / sums->twin_squares);
    line.value = "introduces " + shown(error);
    if (check.exact) {
        line.verdict = sums->error_squares == 0 && sums->twin_squares > 0 ? Verdict::ok : Verdict::no;
        line.value += ", expected exactly 0";
        return line;
    }
    const auto floor = facts.floors.find(check.name), kernel = facts.kernels.find(check.name);
    if (floor == facts.floors.end()) {
        line.value += "; what one rounding costs is not known";
        return line;
    }
    const bool rounds_once = kernel == facts.kernels.end();
    const double expected = rounds_once ? floor->second : kernel->second;
    line.value += ", one rounding of these values costs " + shown(floor->second);
    if (!rounds_once) line.value += ", and this torch's kernel " + shown(expected) + " on this CPU";
    const bool is_floor = floor->second >= kLowest && floor->second <= kHighest;
    const bool good = is_floor && std::abs(error - expected) <= kTolerance * expected;  // false for a NaN
    line.verdict = good ? Verdict::ok : Verdict::no;
    return line;
}

// Removed with its contents at the end of the test.
struct Scratch {
    std::string path;

    Scratch() {
        const char* const base = std::getenv("TMPDIR");
        std::string name = std::string(base && *base == '/' ? base : "/tmp") + "/mp-trace-doctor.XXXXXX";
        if (mkdtemp(name.data())) path = name;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        if (!path.empty()) std::filesystem::remove_all(path, ignored);
    }
};

// Escapes '%', the key character of the output option.
std::string as_pattern(const std::string& path) {
    std::string pattern;
    for (const char c : path) pattern += c == '%' ? "%%" : std::string(1, c);
    return pattern;
}

std::string own_lines(const std::string& text) {
    std::string found;
    for (const std::string& line : lines_of(text, "mp-trace:")) found += (found.empty() ? "" : "; ") + line;
    return found;
}

std::string last_line(std::string_view text) {
    while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    return std::string(text.substr(text.rfind('\n') + 1));
}

SelfTestFacts failed(std::string fault, std::string hint) {
    SelfTestFacts facts;
    facts.fault = std::move(fault);
    facts.hint = std::move(hint);
    return facts;
}

}  // namespace

std::map<std::string, OpSums> local_ops(const trace::Run& run) {
    std::map<std::string, OpSums> ops;
    for (const trace::Recording& recording : run.recordings) {
        for (const trace::StepRecord& step : recording.steps) {
            for (const trace::OpRecord& op : step.ops) {
                OpSums& sums = ops[op.op.substr(0, op.op.find('.'))];
                sums.elements += op.elements;
                sums.nonfinite +=
                    op.elements - std::min(op.loc_compared, op.elements);  // in either of the two
                sums.error_squares += op.loc_error_squares;
                sums.twin_squares += op.loc_squares;
            }
        }
    }
    return ops;
}

std::map<std::string, double> errors_of(std::string_view out, std::string_view word) {
    std::map<std::string, double> errors;
    for (const std::string& line : lines_of(out, word)) {
        const std::size_t cut = line.find(' ');
        double value = 0;
        if (cut == std::string::npos) continue;
        const char* const end = line.data() + line.size();
        if (std::from_chars(line.data() + cut + 1, end, value).ec == std::errc() && value > 0)
            errors[line.substr(0, cut)] = value;
    }
    return errors;
}

std::string digest_of(std::string_view out) {
    const std::vector<std::string> lines = lines_of(out, "digest");
    return lines.empty() ? std::string() : lines.back();
}

Section self_test_section(const SelfTestFacts& facts) {
    Section section{.name = "self-test"};
    if (!facts.fault.empty()) {
        section.lines.push_back({.key = "traced run",
                                 .verdict = Verdict::no,
                                 .value = facts.fault,
                                 .hint = facts.hint,
                                 .needed = true});
        return section;
    }
    section.lines.push_back({.key = "results",
                             .verdict = facts.same_results ? Verdict::ok : Verdict::no,
                             .value = facts.same_results ? "bit for bit those of the untraced run"
                                                         : "differ from those of the untraced run",
                             .needed = true});
    for (const Check& check : checks()) {
        section.lines.push_back(judged(check, facts));
        section.lines.back().needed = true;
    }
    return section;
}

SelfTestFacts probe_self_test(const std::string& tool, const std::string& python,
                              const std::vector<std::string>& adapters) {
    const Scratch scratch;
    if (scratch.path.empty())
        return failed("no temporary directory can be made", "set TMPDIR to one that is writable");
    const std::string script = scratch.path + "/self_test.py", recordings = scratch.path + "/run";
    if (!(std::ofstream(script) << embedded_doctor_scripts("self_test.py")).flush())
        return failed(script + " cannot be written", "is the disk full?");
    const std::vector<std::string> environment = untraced(Variables::of_this_process()).entries();
    const ChildEnd plain = run_child(
        {.arguments = {python, script, "floors"}, .environment = environment, .limits = kPlainLimits});
    if (!plain.good())
        return failed("the untraced run " + describe(plain, kPlainLimits),
                      plain.err.empty() ? "does torch work with this interpreter?" : last_line(plain.err));
    std::vector<std::string> command = {tool, "run", "--mode", "local", "-o", as_pattern(recordings)};
    for (const std::string& directory : adapters) command.insert(command.end(), {"--adapters", directory});
    command.insert(command.end(), {"--", python, script});
    const ChildEnd traced =
        run_child({.arguments = command, .environment = environment, .limits = kTracedLimits});
    if (!traced.good())
        return failed("the traced run " + describe(traced, kTracedLimits), last_line(traced.err));
    const Result<trace::Run> run = trace::read_run(recordings);
    if (!run) return failed("there is no recording: " + run.error().message, own_lines(traced.err));
    if (run->recordings.empty()) return failed("there is no recording", own_lines(traced.err));
    SelfTestFacts facts;
    facts.floors = errors_of(plain.out, "floor");
    facts.kernels = errors_of(plain.out, "kernel");
    facts.same_results = !digest_of(plain.out).empty() && digest_of(plain.out) == digest_of(traced.out);
    facts.ops = local_ops(*run);
    return facts;
}

}  // namespace mp::launch::doctor
