#include "analyzer/verbs.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <utility>

#include "analyzer/driver/policy_command.hpp"
#include "analyzer/facts/text.hpp"
#include "analyzer/report/display.hpp"
#include "kernels/base/files.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/suggest.hpp"
#include "kernels/base/version.hpp"

namespace mp::lint {
namespace {

bool is_set(const char* variable) {
    const char* value = std::getenv(variable);
    return value && *value;
}

bool is_dumb() {
    const char* term = std::getenv("TERM");
    return term && std::strcmp(term, "dumb") == 0;
}

bool use_color(const std::string& when) {
    if (when != "auto") return when == "always";
    if (is_set("NO_COLOR")) return false;
    const char* forced = std::getenv("FORCE_COLOR");
    if (forced && *forced) return std::strcmp(forced, "0") != 0;
    return ::isatty(STDOUT_FILENO) && !is_dumb();
}

// One line on a terminal, rewritten in place; nothing anywhere else.
void show_progress(std::size_t done, std::size_t total, const std::string& path) {
    const std::string line =
        "[" + std::to_string(done) + "/" + std::to_string(total) + "] " + escape_controls(path);
    std::cerr << "\r\033[K" << (done == total ? "" : line.substr(0, 78)) << std::flush;
}

std::string padded(std::string_view text, std::size_t width) {
    return std::string(text) + std::string(width - std::min(width, text.size()), ' ');
}

std::string render(const Report& report, const Output& output, const CommandLine& line) {
    switch (output.format) {
        case Format::json:
            return json_report(report);
        case Format::sarif:
            return sarif_report(report);
        case Format::github:
            return github_report(report);
        case Format::gitlab:
            return gitlab_report(report);
        case Format::rdjson:
            return rdjson_report(report);
        case Format::junit:
            return junit_report(report);
        case Format::markdown:
            return markdown_report(report);
        case Format::text:
            break;
    }
    const bool color = output.file.empty() && use_color(line.color);
    return text_report(report, {.color = color, .quiet = line.quiet, .verbose = line.verbose});
}

}  // namespace

void say(std::string_view kind, const std::string& text) {
    std::cerr << "mp-lint: " << kind << ": " << escape_controls(text) << "\n";
}

int fail(const Error& error) {
    say("error", error.message);
    if (!error.hint.empty()) say("hint", error.hint);
    return kUsage;
}

// A reader that went away has read what it wanted; anything else that is not written is an error.
bool print(std::string_view text) {
    if (write_all(STDOUT_FILENO, text) || errno == EPIPE) return true;
    say("error", std::string("standard output: ") + std::strerror(errno));
    return false;
}

int print_version(const CommandLine& line, const FrontEnds& parts) {
    LintOptions options = line.lint;
    const ExtractOptions extract{.cuda = options.cuda.value_or(CudaHeaders::automatic),
                                 .cuda_path = options.cuda_path,
                                 .project_root = {},
                                 .extra_args = {}};
    const Invocation cuda = parts.translate(parts.default_command("version.cu", {}), extract);
    std::string out = "mp-lint " + std::string(kVersion) + "\n";
    out += "front end: " + parts.version() + "\n";
    out += "CUDA headers: " + cuda.headers + "\n";
    return print(out) ? kClean : kUsage;
}

int print_rules() {
    std::size_t widest = 0;
    for (const Rule* rule : all_rules()) widest = std::max(widest, rule->name.size());
    std::string out;
    for (const Rule* rule : all_rules()) {
        out += std::string(rule->id) + "  " + padded(name_of(rule->severity), 7) + "  ";
        out +=
            rule->on_by_default ? std::string(rule->name) : padded(rule->name, widest) + "  off by default";
        out += '\n';
    }
    return print(out) ? kClean : kUsage;
}

int print_rule(const std::vector<std::string>& words) {
    if (words.empty())
        return fail({"rule: no rule is given", "mp-lint rule MP401; 'mp-lint rules' lists them"});
    std::string out;
    for (const std::string& word : words) {
        const Rule* found = nullptr;
        std::vector<std::string_view> known;
        for (const Rule* rule : all_rules()) {
            known.push_back(rule->id);
            known.push_back(rule->name);
            if (is_rule(word, *rule)) found = rule;
        }
        if (!found) {
            std::string hint = did_you_mean(word, known);
            return fail(
                {"no rule is called '" + word + "'", hint.empty() ? "'mp-lint rules' lists them" : hint});
        }
        out += page_for_reading(rule_page(found->id));
        if (!out.ends_with('\n')) out += '\n';
    }
    return print(out) ? kClean : kUsage;
}

int print_facts_of(const LintOptions& options, const FrontEnds& parts) {
    if (options.inputs.empty()) return fail({"facts: no file is given", "mp-lint facts norm.cu"});
    const Result<std::vector<Unit>> units = timed("facts", [&] { return run_facts(options, parts); });
    if (!units) return fail(units.error());
    Stats::of_process().add_count("units", units->size());
    std::string out;
    bool any = false;
    for (const Unit& unit : *units) {
        out += print_facts(unit);
        any |= unit.state == UnitState::ok || unit.state == UnitState::partial;
    }
    if (!print(out)) return kUsage;
    return any ? kClean : fail({"nothing could be analysed", ""});
}

int lint_sources(CommandLine& line, const FrontEnds& parts) {
    std::vector<std::optional<OutputFile>> files;
    for (const Output& output : line.outputs) {
        files.emplace_back();
        if (output.file.empty()) continue;
        Result<OutputFile> file = OutputFile::open(output.file);
        if (!file) return fail({output.file + ": cannot be written: " + file.error().message, ""});
        files.back().emplace(std::move(*file));
    }
    if (::isatty(STDERR_FILENO) && !is_dumb() && !line.quiet) line.lint.progress = show_progress;
    FixOutcome fixes;
    Result<Report> report = run_adopted(line.lint, parts, line.adopt, fixes);
    if (!report) return fail(report.error());
    if (line.lint.inputs.empty() && !line.quiet)
        say("note", "no path is given: everything below " + line.lint.working_directory +
                        " was analysed; see mp-lint --help");
    for (const std::string& warning : report->warnings) say("warning", warning);
    for (const std::string& message : fixes.messages) say("warning", message);
    const bool show = line.adopt.how.only_show;  // then standard output is a diff, nothing else
    if (show && !print(fixes.diff)) return kUsage;

    bool written = true;
    const auto write = [&](std::size_t i) {
        if (show && !files[i]) return;
        const std::string text = timed("report", [&] { return render(*report, line.outputs[i], line); });
        if (!files[i]) {
            written &= print(text);
        } else if (const Status saved = files[i]->commit(text); !saved) {
            written = false;
            fail({line.outputs[i].file + ": " + saved.error().message, ""});
        }
    };
    for (std::size_t i = 0; i < files.size(); ++i)
        if (line.notes || keeps_notes(line.outputs[i].format)) write(i);
    if (!line.notes) {
        hide_notes(*report);
        for (std::size_t i = 0; i < files.size(); ++i)
            if (!keeps_notes(line.outputs[i].format)) write(i);
    }
    if (!written) return kUsage;
    if (!report->analysed_anything) {
        const std::string& why = report->units.empty() ? std::string() : report->units.front().message;
        return fail({"nothing could be analysed" + (why.empty() ? "" : ": " + why), "--verbose says more"});
    }
    const std::string fixed = fix_summary(fixes, line.adopt.how);
    if (!fixed.empty()) say("fix", fixed);
    const int code = exit_code(*report, line.strict);
    return code == 1 && line.exit_zero ? kClean : code;
}

int baseline(const std::vector<std::string>& words, const CommandLine& line, const FrontEnds& parts) {
    const Result<BaselineAnswer> answer = run_baseline(words, line.lint, parts);
    if (!answer) return fail(answer.error());
    if (!answer->said.empty()) say("baseline", answer->said);
    if (!print(answer->out)) return kUsage;
    return line.exit_zero ? kClean : answer->code;
}

int policy(const std::vector<std::string>& words) {
    const Result<std::string> answer = run_policy_command(words);
    if (!answer) return fail(answer.error());
    return print(*answer) ? kClean : kUsage;
}

}  // namespace mp::lint
