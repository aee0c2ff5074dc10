// mp-gate.toml.

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include <toml++/toml.h>

#include "kernels/base/files.hpp"
#include "kernels/base/text.hpp"
#include "runtime/gate/dates.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/judge/policy_text.hpp"
#include "runtime/judge/rule_pack.hpp"
#include "runtime/launch/words.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kLargestFile = 1 << 20;
constexpr std::size_t kLongestGlob = 256;
constexpr std::ptrdiff_t kMostStars = 8;  // fnmatch(3) tries every split at every star
constexpr std::size_t kShownWord = 80;

std::string word(std::string_view text) {
    return quoted(utf8_prefix(text, kShownWord)) + (text.size() > kShownWord ? " (cut)" : "");
}

using Names = std::vector<std::string_view>;

std::string joined(const Names& names) {
    std::string out;
    for (const std::string_view name : names) out += (out.empty() ? "" : ", ") + std::string(name);
    return out;
}

// Reads one table key by key. Keeps the first error; after an error nothing is read.
class Reader {
public:
    explicit Reader(std::string_view file) : file_(shown(file)) {}

    using Handler = std::function<void(const toml::key&, const toml::node&)>;
    struct Entry {
        std::string_view key;
        Handler read;
    };

    void table(const toml::table& table, const std::string& prefix, const std::vector<Entry>& entries) {
        Names known;
        for (const Entry& e : entries) known.push_back(e.key);
        for (const auto& [key, node] : table) {
            if (error) return;
            const auto entry = std::ranges::find(entries, key.str(), &Entry::key);
            if (entry != entries.end()) {
                entry->read(key, node);
                continue;
            }
            std::string hint = launch::did_you_mean(key.str(), known);
            fail(key.source(), "unknown key " + word(prefix + std::string(key.str())),
                 hint.empty() ? "known here: " + joined(known) : hint);
        }
    }

    void fail(const toml::source_region& at, const std::string& message, std::string hint = {}) {
        if (!error)
            error = Error{file_ + ":" + std::to_string(at.begin.line) + ": " + message, std::move(hint)};
    }

    void wrong(const toml::key& key, const toml::node& node, const std::string& wanted) {
        fail(node.source().begin.line ? node.source() : key.source(), word(key.str()) + " must be " + wanted);
    }

    std::string text(const toml::key& key, const toml::node& node) {
        const auto value = node.value_exact<std::string>();
        if (value && !value->empty()) return *value;
        wrong(key, node, "a string that is not empty");
        return {};
    }

    std::optional<Error> error;

private:
    std::string file_;
};

struct NumberRange {
    double least = 0, most = 0;
    const char* wanted = "";
};
constexpr NumberRange kFloors{0, 1e6, "a number of one-rounding floors, from 0 to 1,000,000"};
constexpr NumberRange kShare{0, 1, "a share from 0 to 1"};
constexpr NumberRange kRate{0, 1000, "a number from 0 to 1,000"};
constexpr NumberRange kCount{0, 1'000'000, "a whole number from 0 to 1,000,000"};

void number(Reader& r, const toml::key& key, const toml::node& node, const NumberRange& range, double& into) {
    const auto value = node.value<double>();
    if (node.is_number() && value && *value >= range.least && *value <= range.most) {  // false for NaN
        into = *value;
    } else {
        r.wrong(key, node, range.wanted);
    }
}

void count(Reader& r, const toml::key& key, const toml::node& node, int& into) {
    double value = 0;
    if (!node.is_integer()) return r.wrong(key, node, kCount.wanted);
    number(r, key, node, kCount, value);
    if (!r.error) into = static_cast<int>(value);
}

constexpr const char* kWarnHint = "the value of -warn may be at most that of -fail";

void read_limits(Reader& r, const toml::key& key, const toml::node& node, Limits& limits) {
    const toml::table* table = node.as_table();
    if (!table) return r.wrong(key, node, "a table [limits]");
    auto real = [&r](const NumberRange& range, double& into) {
        return [&r, &range, &into](const toml::key& k, const toml::node& n) { number(r, k, n, range, into); };
    };
    auto whole = [&r](int& into) {
        return [&r, &into](const toml::key& k, const toml::node& n) { count(r, k, n, into); };
    };
    r.table(*table, "limits.",
            {{"loc-warn-phi", real(kFloors, limits.loc_warn_phi)},
             {"loc-fail-phi", real(kFloors, limits.loc_fail_phi)},
             {"gain-bias-u", real(kFloors, limits.gain_bias_u)},
             {"skips-per-1000", real(kRate, limits.skips_per_1000)},
             {"consecutive-skips", whole(limits.consecutive_skips)},
             {"warm-up-skips", whole(limits.warm_up_skips)},
             {"scale-halvings", whole(limits.scale_halvings)},
             {"flush-gradients", real(kShare, limits.flush_gradients)},
             {"flush-activations", real(kShare, limits.flush_activations)},
             {"near-overflow-bits", real(kRate, limits.near_overflow_bits)},
             {"stagnation-warn", real(kShare, limits.stagnation_warn)},
             {"stagnation-fail", real(kShare, limits.stagnation_fail)},
             {"reduction-phi", real(kFloors, limits.reduction_phi)},
             {"average-gain", real(kShare, limits.average_gain)},
             {"local-fault-phi", real(kFloors, limits.local_fault_phi)},
             {"coverage-ops", real(kShare, limits.coverage_ops)},
             {"absorbed", real(kShare, limits.absorbed)},
             {"amplified-warn", real(kShare, limits.amplified_warn)},
             {"amplified-fail", real(kShare, limits.amplified_fail)},
             {"loss-warn", real(kRate, limits.loss_warn)},
             {"loss-fail", real(kRate, limits.loss_fail)},
             {"update-share", real(kShare, limits.update_share)}});
    if (r.error) return;
    if (limits.loc_warn_phi > limits.loc_fail_phi)
        r.fail(key.source(), "loc-warn-phi is above loc-fail-phi", kWarnHint);
    if (limits.stagnation_warn > limits.stagnation_fail)
        r.fail(key.source(), "stagnation-warn is above stagnation-fail", kWarnHint);
    if (limits.amplified_warn > limits.amplified_fail)
        r.fail(key.source(), "amplified-warn is above amplified-fail", kWarnHint);
    if (limits.loss_warn > limits.loss_fail) r.fail(key.source(), "loss-warn is above loss-fail", kWarnHint);
}

bool check_rule(Reader& r, const toml::source_region& at, std::string_view id) {
    if (rule_called(id)) return true;
    Names ids;
    for (const RuleInfo& rule : rule_pack()) ids.push_back(rule.id);
    std::string hint = launch::did_you_mean(id, ids);
    r.fail(at, "no rule is called " + word(id), hint.empty() ? "the rules are " + joined(ids) : hint);
    return false;
}

void strings(Reader& r, const toml::key& key, const toml::node& node, const std::string& wanted,
             const std::function<void(const toml::node&, const std::string&)>& take) {
    const toml::array* list = node.as_array();
    if (!list) return r.wrong(key, node, wanted);
    for (const toml::node& item : *list) {
        const auto text = item.value_exact<std::string>();
        if (!text) return r.wrong(key, item, wanted);
        take(item, *text);
        if (r.error) return;
    }
}

void glob(Reader& r, const toml::key& key, const toml::node& node, std::string& into) {
    const std::string text = r.text(key, node);
    if (r.error) return;
    if (text.size() > kLongestGlob || std::ranges::count(text, '*') > kMostStars)
        return r.fail(node.source(), word(key.str()) + ": a pattern has at most 256 characters and 8 stars");
    into = text;
}

void expiry(Reader& r, const toml::key& key, const toml::node& node, std::string& into) {
    if (const auto date = node.value_exact<toml::date>()) {
        into = date_text(date->year, date->month, date->day);
    } else if (const auto text = node.value_exact<std::string>()) {
        into = *text;
    }
    if (!is_date(into)) r.wrong(key, node, "a date like 2027-01-31");
}

void read_suppression(Reader& r, const toml::table& table, bool& needs_expiry, Rules& rules) {
    Suppression s;
    s.line = static_cast<int>(table.source().begin.line);
    s.file = rules.file;
    auto pattern = [&r](std::string& into) {
        return [&r, &into](const toml::key& k, const toml::node& n) { glob(r, k, n, into); };
    };
    r.table(table, "suppress.",
            {{"rule",
              [&](const toml::key& k, const toml::node& n) {
                  s.rule = r.text(k, n);
                  if (!r.error && s.rule != "*") check_rule(r, n.source(), s.rule);
              }},
             {"layer", pattern(s.layer)},
             {"op", pattern(s.op)},
             {"phase", pattern(s.phase)},
             {"reason", [&](const toml::key& k, const toml::node& n) { s.reason = r.text(k, n); }},
             {"expires", [&](const toml::key& k, const toml::node& n) { expiry(r, k, n, s.expires); }}});
    if (r.error) return;
    if (s.rule.empty()) return r.fail(table.source(), "a [[suppress]] needs a rule", "rule = \"MPT010\"");
    if (s.reason.find_first_not_of(" \t\n") == std::string::npos)
        return r.fail(table.source(), "a [[suppress]] needs a reason", "reason = \"why this is accepted\"");
    if (needs_expiry && s.expires.empty())
        return r.fail(table.source(), "this file wants an expiry date on every suppression",
                      "expires = 2027-01-31");
    rules.suppressions.push_back(std::move(s));
}

void read_suppressions(Reader& r, const toml::key& key, const toml::node& node, bool needs_expiry,
                       Rules& rules) {
    const toml::array* list = node.as_array();
    if (!list) return r.wrong(key, node, "a list of tables [[suppress]]");
    for (const toml::node& item : *list) {
        const toml::table* table = item.as_table();
        if (!table) return r.wrong(key, item, "a list of tables [[suppress]]");
        read_suppression(r, *table, needs_expiry, rules);
        if (r.error) return;
    }
}

void read_expiry_rule(Reader& r, const toml::key& key, const toml::node& node, bool& needs_expiry) {
    const toml::table* table = node.as_table();
    if (!table) return r.wrong(key, node, "a table [suppressions]");
    r.table(*table, "suppressions.", {{"require-expiry", [&](const toml::key& k, const toml::node& n) {
                                           const auto value = n.value_exact<bool>();
                                           if (!value) return r.wrong(k, n, "true or false");
                                           needs_expiry = *value;
                                       }}});
}

Result<Rules> from_table(const toml::table& table, std::string_view name) {
    Rules rules;
    rules.file = name;
    Reader r(name);
    bool needs_expiry = false;
    auto nothing = [](const toml::key&, const toml::node&) {};
    // The file's requirement for suppressions also applies to the suppressions above it.
    if (const auto* settings = table.get("suppressions"))
        read_expiry_rule(r, table.find("suppressions")->first, *settings, needs_expiry);
    r.table(table, "",
            {{"limits", [&](const toml::key& k, const toml::node& n) { read_limits(r, k, n, rules.limits); }},
             {"disable",
              [&](const toml::key& k, const toml::node& n) {
                  strings(r, k, n, "a list of rule ids", [&](const toml::node& at, const std::string& id) {
                      if (check_rule(r, at.source(), id)) rules.disabled.push_back(id);
                  });
              }},
             {"policies",
              [&](const toml::key& k, const toml::node& n) {
                  strings(r, k, n, "a list of policies", [&](const toml::node& at, const std::string& text) {
                      const auto policy = parse_policy(text, "");
                      if (!policy) return r.fail(at.source(), policy.error().message, policy.error().hint);
                      rules.policies.push_back(text);
                  });
              }},
             {"suppress", [&](const toml::key& k,
                              const toml::node& n) { read_suppressions(r, k, n, needs_expiry, rules); }},
             {"suppressions", nothing}});
    if (r.error) return std::move(*r.error);
    return rules;
}

}  // namespace

Result<Rules> parse_rules(std::string_view text, std::string_view name) {
    try {
        return from_table(toml::parse(text, name), name);
    } catch (const toml::parse_error& e) {
        // The description repeats text from the file.
        return Error{shown(name) + ":" + std::to_string(e.source().begin.line) + ": " +
                         shown(std::string_view(e.description()).substr(0, 300)),
                     "rule files are TOML 1.0"};
    }
}

Result<Rules> read_rules(const std::string& path) {
    const Result<std::string> text = read_named_file(path, kLargestFile, "1 MiB, which no rule file is");
    if (!text) return Error{shown(path) + ": " + text.error().message, ""};
    return parse_rules(*text, path);
}

}  // namespace mp::trace
