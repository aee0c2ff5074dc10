#include "runtime/verbs/gate.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <string_view>

#include "kernels/base/stats.hpp"
#include "runtime/fold/symbols.hpp"
#include "runtime/gate/dates.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/launch/words.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/verbs/inputs.hpp"
#include "runtime/verbs/run_stats.hpp"

namespace mp::trace {
namespace {

constexpr std::array<std::string_view, 5> kFormats{"text", "json", "junit", "sarif", "github"};
constexpr const char* kDefaultRules = "mp-gate.toml";

struct Output {
    std::string_view format;
    std::string file;
};

Result<std::vector<Output>> outputs_of(const std::vector<std::string>& words) {
    std::vector<Output> out;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        const std::string_view format = std::string_view(word).substr(0, equals);
        const auto known = std::ranges::find(kFormats, format);
        if (known == kFormats.end()) {
            std::string hint = launch::did_you_mean(format, kFormats);
            return Error{"--output: no format is called " + quoted(format),
                         hint.empty() ? "text, json, junit, sarif or github, then =FILE for a file" : hint};
        }
        std::string file = equals == std::string::npos ? std::string() : word.substr(equals + 1);
        if (equals != std::string::npos && file.empty())
            return Error{"--output " + std::string(format) + ": the name is empty",
                         std::string(format) + "=FILE"};
        for (const Output& o : out) {
            if (o.file == file)
                return Error{file.empty() ? std::string("--output: two reports go to standard output")
                                          : "--output: two reports go to " + quoted(file),
                             "give one a file: --output junit=gate.xml"};
        }
        out.push_back({*known, std::move(file)});
    }
    if (out.empty()) out.push_back({kFormats[0], {}});
    return out;
}

Result<Rules> rules_of(const std::string& asked) {
    if (!asked.empty()) return read_rules(asked);
    struct stat info{};
    return ::stat(kDefaultRules, &info) == 0 ? read_rules(kDefaultRules) : Result<Rules>(Rules{});
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&now, &date);
    return date_text(date.tm_year + 1900, static_cast<unsigned>(date.tm_mon) + 1,
                     static_cast<unsigned>(date.tm_mday));
}

std::string written(std::string_view format, const GateResult& result, const std::string& run, bool color) {
    if (format == "json") return gate_json(result, run);
    if (format == "junit") return gate_junit(result, run);
    if (format == "sarif") return gate_sarif(result, run);
    if (format == "github") return gate_github(result, run);
    return gate_text(result, color);
}

}  // namespace

Result<GateRun> run_gate(const GateRequest& request) {
    const Result<std::vector<Output>> outputs = outputs_of(request.outputs);
    if (!outputs) return outputs.error();
    Result<Rules> rules = rules_of(request.rules);
    if (!rules) return rules.error();
    std::vector<std::string> policies = rules->policies;
    if (const Status good = check_policies(request.policies); !good) return good.error();
    policies.insert(policies.end(), request.policies.begin(), request.policies.end());
    const auto lint = read_lint_files(request.lint);
    if (!lint) return lint.error();
    Result<RunModel> model = timed("fold", [&] { return fold_run(request.directory); });
    if (!model) return model.error();
    timed("symbols", [&] { launch::resolve_sources(*model); });
    count_run(*model);
    const Judgement judgement = timed("judge", [&] { return judge(*model, rules->limits, policies); });
    const GateResult result = gate(judgement, *rules, *lint, today(), request.strict);
    GateRun out;
    out.exit = exit_code(result);
    for (const Output& o : *outputs)
        out.texts.emplace_back(o.file, timed("render", [&] {
                                   return written(o.format, result, request.directory,
                                                  request.color && o.file.empty());
                               }));
    return out;
}

}  // namespace mp::trace
