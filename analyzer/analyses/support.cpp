#include "analyzer/analyses/support.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "analyzer/analyses/excluded_code.hpp"
#include "analyzer/analyses/native_callers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/sum_variants.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_statistic(const Operand& value) { return value.stat > Stat::sum; }

// An error needs a dtype that runs, and so does a warning where Python could show it: what only a caller who passes
// half makes true is a note.
void weigh(HalfEvidence evidence, Finding& finding) {
    if (evidence.runs == HalfRuns::proven) return;
    finding.severity =
        evidence.runs == HalfRuns::possible ? std::min(finding.severity, Severity::warning) : Severity::note;
    if (evidence.note) finding.notes.push_back(*std::move(evidence.note));
}

// A header that is a unit of its own, beside source files: none of these includes it.
bool is_unread_header(const RuleContext& context, Symbol file) {
    if (!is_header(file.str())) return false;
    const std::span<const Unit> units = context.program.units();
    const auto is_cpp_source = [](const Unit& u) {
        return u.language != Language::python && !is_header(u.path.str());
    };
    return std::ranges::find(units, file, &Unit::path) != units.end() &&
           std::ranges::any_of(units, is_cpp_source);
}

void weigh_header(const RuleContext& context, Finding& finding) {
    if (!is_unread_header(context, finding.span.file)) return;
    finding.severity = Severity::note;
    finding.notes.push_back({finding.span, "no source file of this run includes this header"});
}

// What holds because of code that only tries the program out says little about the program.
void weigh_trials(const RuleContext& context, Finding& finding) {
    const auto is_from_trial = [&](const Note& note) {
        return !note.of_region && is_trial(context, note.span);
    };
    if (std::ranges::none_of(finding.notes, is_from_trial) || is_trial(context, finding.span)) return;
    finding.severity = Severity::note;
    finding.notes.push_back({finding.span, "nothing else in this program makes it half"});
}

// The constant or the option that keeps control from what makes a finding true.
std::optional<Exclusion> exclusion_of_reason(const RuleContext& context, const Note& reason) {
    for (const Function* f : functions_of(context.program, reason.span.file)) {
        const auto excluded = reason.of_region ? exclusion_of_region(context, *f, reason.span)
                                               : exclusion_of_cast(context, *f, reason.span);
        if (excluded) return excluded;
    }
    return std::nullopt;
}

// Of the place of the finding, or of what makes it true.
std::optional<Exclusion> exclusion_of(const RuleContext& context, const Function& function,
                                      const Finding& finding) {
    if (const auto excluded = exclusion_of(context, function, finding.span)) return excluded;
    for (const Note& reason : finding.notes)
        if (const auto excluded = exclusion_of_reason(context, reason)) return excluded;
    return std::nullopt;
}

// What the program never runs, or runs only to measure it, has nothing to lose.
void weigh_use(const RuleContext& context, const Function& function, Finding& finding) {
    if (const std::optional<Exclusion> excluded = exclusion_of(context, function, finding)) {
        finding.severity = Severity::note;
        finding.notes.push_back({excluded->span, excluded->why});
        return;
    }
    const char* unused = nullptr;
    if (only_measures(context, finding.span.file))
        unused = "this file only tries its code out: it keeps nothing that it computes";
    else if (is_run_to_measure(context, function))
        unused = "only programs that measure or try code out run this function";
    if (!unused) return;
    finding.severity = Severity::note;
    finding.notes.push_back({function.span, unused});
}

}  // namespace

std::string_view name_of(Severity severity) {
    switch (severity) {
        case Severity::note:
            return "note";
        case Severity::warning:
            return "warning";
        case Severity::error:
            return "error";
    }
    return "note";
}

bool is_within(std::string_view qualified, std::string_view scope) {
    if (qualified.starts_with("::")) qualified.remove_prefix(2);
    if (!qualified.starts_with(scope)) return false;
    qualified.remove_prefix(scope.size());
    return qualified.starts_with("::") || qualified.starts_with('.');
}

bool mentions(std::string_view text, std::string_view part) {
    return !std::ranges::search(text, part, {}, lower, lower).empty();
}

bool any_of(std::string_view text, std::span<const std::string_view> names) {
    return std::ranges::find(names, text) != names.end();
}

std::string_view label(DType d) { return d == DType::lowp ? "fp16 or bf16" : name_of(d); }

bool is_proven_low(DType d) { return is_low_precision(d) && d != DType::lowp; }

Severity error_if_proven(DType d) { return is_proven_low(d) ? Severity::error : Severity::warning; }

bool is_wide(DType d) { return d == DType::fp32 || d == DType::fp64 || d == DType::tf32; }

std::optional<double> number_of(const Operand& value) { return number_in(value.constant.str()); }

std::optional<double> number_in(std::string_view text) {
    double number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    if (!std::isfinite(number)) return std::nullopt;
    return number;
}

std::string_view naming(const Operand& value) {
    return value.name.empty() ? value.text.str() : value.name.str();
}

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string quoted(std::string_view name) {
    return name.empty() ? std::string() : " '" + std::string(name) + "'";
}

std::unordered_set<const Function*> functions_run_by(const Program& program,
                                                     std::unordered_set<const Function*> from) {
    return closure(std::move(from), [&](const Function& f, const auto& add) {
        for (const Call& call : f.calls) add(program.definition(call.callee));
    });
}

std::string_view folder_of(Symbol file) {
    const std::string_view path = file.str();
    const std::size_t slash = path.rfind('/');
    return path.substr(0, slash == path.npos ? 0 : slash);
}

Symbol written_in(const Function& f) {
    const std::string_view usr = f.usr.str();
    return f.kind == FunctionKind::lambda ? Symbol(usr.substr(0, usr.find("@lambda@"))) : f.usr;
}

const Classes& classes_of(const RuleContext& context) {
    return context.classes.get([&] { return std::make_shared<const Classes>(context.program.functions()); });
}

bool computes_statistics(const Function& function) {
    const auto in_call = [](const Call& call) { return std::ranges::any_of(call.args, is_statistic); };
    const auto in_cast = [](const Cast& cast) { return is_statistic(cast.source); };
    return std::ranges::any_of(function.calls, in_call) || std::ranges::any_of(function.casts, in_cast);
}

void emit(const RuleContext& context, const Function& function, Finding finding, Findings& out) {
    if (describes_shapes(function)) return;
    // A function test_scan() outside of the tests is one too.
    const CodeKind named = is_python(function) ? kind_by_name(function) : CodeKind::product;
    const CodeKind kind = named == CodeKind::product ? code_kind(context, finding.span.file) : named;
    finding.severity = severity_in(kind, finding.severity);
    const std::string_view library = copied_library(context, finding.span.file);
    if (!library.empty()) finding.notes.push_back({finding.span, "in a copy of " + std::string(library)});
    if (finding.severity > Severity::note) weigh_trials(context, finding);
    if (finding.severity > Severity::note) weigh(half_evidence(context, function), finding);
    if (finding.severity > Severity::note) weigh_use(context, function, finding);
    if (finding.severity > Severity::note) weigh_header(context, finding);
    finding.function = function.display.empty() ? function.name : function.display;
    for (Note& note : context.program.instantiation_notes(function)) finding.notes.push_back(std::move(note));
    out.push_back(std::move(finding));
}

void emit_sum(const RuleContext& context, const Function& function, Finding finding, Findings& out) {
    const Function* wide = finding.severity > Severity::note ? wide_sum_variant(context, function) : nullptr;
    if (wide) {
        finding.severity = Severity::note;
        finding.notes.push_back({wide->span, "this variant sums in fp32: who calls one of them chooses"});
    }
    emit(context, function, std::move(finding), out);
}

}  // namespace mp::lint
