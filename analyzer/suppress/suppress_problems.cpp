// Findings about the suppressions of a file.

#include <algorithm>

#include "analyzer/suppress/suppress.hpp"

namespace mp::lint {
namespace {

using Scope = Suppression::Scope;

const Rule* rule_of(Rules rules, std::string_view id) {
    const auto at = std::ranges::find(rules, id, &Rule::id);
    return at == rules.end() ? nullptr : *at;
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
    return out;
}

bool names_any(const Suppression& s, Rules rules) {
    return std::ranges::any_of(rules, [&](const Rule* rule) {
        return std::ranges::any_of(s.words, [&](const std::string& w) { return names_rule(w, *rule); });
    });
}

// NOLINT(*) and noqa: ALL address all tools, so it is normal that they silence no finding of mp-lint.
bool is_about_us(const Suppression& s, Rules all) {
    return s.ours || std::ranges::any_of(s.words, [&](const std::string& word) {
               return word.size() >= 5 && std::ranges::any_of(all, [&](const Rule* rule) {
                          return names_rule(word, *rule) && word.find('*') == std::string::npos;
                      });
           });
}

class Judge {
public:
    Judge(const std::string& path, Rules ran, Rules all)
        : file_(path), ran_(ran), all_(all), unused_(rule_of(ran, "MP001")), bare_(rule_of(ran, "MP002")) {}

    void judge(const Suppression& s) {
        if (s.scope == Scope::unknown) {
            add(unused_, s, "this suppression is not understood, so it silences nothing",
                "write 'mp-lint: disable=MP101 reason'");
        } else if (s.scope == Scope::end) {
            if (!s.used) add(unused_, s, "this 'disable-end' ends no 'disable-begin'", "remove it");
        } else if (s.scope == Scope::begin && !s.closed) {
            add(unused_, s, "this 'disable-begin' has no end, so it silences the rest of the file",
                "add 'mp-lint: disable-end'");
        } else if (is_about_us(s, all_)) {
            judge_words(s);
        }
    }

    Findings take() { return std::move(out_); }

private:
    void judge_words(const Suppression& s) {
        for (const std::string& word : s.words) {
            const Status known = check_rule_word(word, all_);
            if (!s.ours || known) continue;
            add(unused_, s, "'" + word + "' in this suppression is not a rule",
                known.error().hint.empty() ? "'mp-lint rules' lists them" : known.error().hint);
            return;
        }
        if (!s.used && all_ran(s)) {
            add(unused_, s, "this suppression of " + joined(s.words) + " silences nothing in this run",
                "remove it");
        } else if (!s.reason) {
            add(bare_, s, "the suppression of " + joined(s.words) + " gives no reason",
                "say behind the rule why the code is right");
        }
    }

    // A rule that did not run may be the one that the comment is for.
    bool all_ran(const Suppression& s) const {
        return std::ranges::none_of(all_, [&](const Rule* rule) {
            const Rule* const one[] = {rule};
            const bool about_comments = rule == unused_ || rule == bare_;
            return names_any(s, one) && (about_comments || std::ranges::find(ran_, rule) == ran_.end());
        });
    }

    void add(const Rule* rule, const Suppression& s, std::string message, std::string fix) {
        if (!rule) return;
        Finding f{.rule = rule->id,
                  .severity = Severity::note,
                  .span = {.file = file_, .line = static_cast<std::uint32_t>(s.line)},
                  .message = std::move(message),
                  .fix = std::move(fix),
                  .notes = {},
                  .function = {}};
        if (s.column) {
            f.span.column = static_cast<std::uint32_t>(s.column);
            f.span.end_line = f.span.line;
            f.span.end_column = static_cast<std::uint32_t>(s.column + s.length);
        }
        out_.push_back(std::move(f));
    }

    Symbol file_;
    Rules ran_;
    Rules all_;
    const Rule* unused_;
    const Rule* bare_;
    Findings out_;
};

}  // namespace

Findings Suppressions::problems(const std::string& path, Rules ran, Rules all) {
    Judge judge(path, ran, all);
    for (const Suppression& s : of(path).list) judge.judge(s);
    Findings out = judge.take();
    const std::vector<CellLine>& cells = sources_.cells(path);
    for (Finding& f : out) {
        if (cells.empty()) break;
        const CellLine& code = cells[f.span.line - 1];
        f.span = {.file = f.span.file, .line = code.line, .column = code.column};
    }
    std::erase_if(out, [&](const Finding& f) {
        const Rule* rule = rule_of(ran, f.rule);
        return rule && silences(f.span, *rule);
    });
    return out;
}

}  // namespace mp::lint
