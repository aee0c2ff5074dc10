// MP120 deprecated-amp-api
//
// What   torch.cuda.amp and torch.cpu.amp, deprecated in PyTorch 2.4, or apex.amp, which is gone
//        from apex.
// Why    They warn on every use, know one device only, and stop working one day.
// Fix    torch.amp with the device as an argument.
// Silent Programs for a torch older than 2.4, where the new names do not all exist, and code that runs only
//        with such a torch: the handler of an exception, a branch on a version.
// Tests  testdata/lint/MP120.md, tests/analyzer/rules/deprecated_amp_api_test.cpp

#include <algorithm>
#include <array>
#include <optional>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

struct Deprecated {
    std::string_view name;
    std::string_view replacement;  // of the name and the opening parenthesis
    std::string_view first;        // parameter that the first positional argument fills, if it moved
    std::string_view since;        // the oldest PyTorch with the replacement
};

constexpr std::array<Deprecated, 6> kDeprecated{{
    {"torch.cuda.amp.autocast", "torch.amp.autocast('cuda'", "enabled", "1.10"},
    {"torch.cpu.amp.autocast", "torch.amp.autocast('cpu'", "enabled", "1.10"},
    {"torch.cuda.amp.GradScaler", "torch.amp.GradScaler('cuda'", "", "2.3"},
    {"torch.cpu.amp.GradScaler", "torch.amp.GradScaler('cpu'", "", "2.3"},
    {"torch.cuda.amp.custom_fwd", "torch.amp.custom_fwd(device_type='cuda'", "fwd", "2.4"},
    {"torch.cuda.amp.custom_bwd", "torch.amp.custom_bwd(device_type='cuda'", "bwd", "2.4"},
}};

const Deprecated* deprecated(std::string_view name) {
    const auto* found = std::ranges::find(kDeprecated, name, &Deprecated::name);
    return found == kDeprecated.end() ? nullptr : found;
}

bool is_old(std::string_view name) {
    constexpr std::array<std::string_view, 2> kApex{"apex.amp.initialize", "apex.amp.scale_loss"};
    return deprecated(name) || any_of(name, kApex);
}

// The call's text up to its first argument is the full name and a parenthesis: it is spelled out,
// not through an imported name, and can be replaced.
std::optional<Edit> replaced_name(const Call& call, const Deprecated& is) {
    const SourceSpan& span = call.span;
    const auto length = static_cast<std::uint32_t>(is.name.size()) + 1;
    if (!span.known() || span.end_column == 0) return std::nullopt;
    Edit edit{span, std::string(is.replacement)};
    edit.at.end_line = span.line;
    edit.at.end_column = span.column + length;
    if (call.args.empty()) {
        const bool is_exact = span.line == span.end_line && span.end_column == span.column + length + 1;
        return is_exact ? std::optional(edit) : std::nullopt;
    }
    const Operand& first = call.args.front();
    // The span of a keyword argument is that of its value.
    const auto key = static_cast<std::uint32_t>(first.keyword.empty() ? 0 : first.keyword.str().size() + 1);
    const bool follows = first.span.line == span.line && first.span.column == span.column + length + key;
    const bool has_second = call.args.size() > 1 && call.args[1].keyword.empty();
    if (!follows || has_second) return std::nullopt;
    edit.text += ", ";
    if (first.keyword.empty() && !is.first.empty()) edit.text += std::string(is.first) + "=";
    return edit;
}

void check(const RuleContext& context, Findings& out) {
    if (context.older_than({2, 4})) return;
    for_each_call(context.program, is_old, [&](const Function& f, const Call& call) {
        if (call.kind == CallKind::method || call.by_version) return;
        const Deprecated* is = deprecated(call.name.str());
        Finding finding{.rule = "MP120",
                        .severity = Severity::note,
                        .span = call.span,
                        .message = std::string(call.name.str()) + (is ? " is deprecated since PyTorch 2.4"
                                                                      : " is removed from current apex"),
                        .fix = is ? "use " + std::string(is->replacement) + ", ...), which needs PyTorch " +
                                        std::string(is->since)
                                  : "use torch.amp.autocast and torch.amp.GradScaler",
                        .notes = {},
                        .function = {}};
        if (is)
            if (auto edit = replaced_name(call, *is)) {
                finding.edits.push_back(std::move(*edit));
                finding.safe_edits = true;
            }
        emit(context, f, std::move(finding), out);
    });
}

constexpr std::array<std::string_view, 2> kOwnTriggers{"custom_fwd", "custom_bwd"};

}  // namespace

extern constinit const Rule kDeprecatedAmpApi{.id = "MP120",
                                              .name = "deprecated-amp-api",
                                              .severity = Severity::note,
                                              .on_by_default = true,
                                              .confirmed_by = "",
                                              .triggers = {kRegions, kEngines, kOwnTriggers},
                                              .check = check};

}  // namespace mp::lint
