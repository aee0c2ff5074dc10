#include "analyzer/driver/result_cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyzer/cache/directory.hpp"
#include "analyzer/driver/discover.hpp"

namespace mp::lint {
namespace {

enum RecordIndex : std::size_t { kInputs, kSlice, kUnits, kFindings };

// Never the time of a directory.
constexpr std::int64_t kNoTime = -1;

// Everything that decides the findings besides the files themselves.
std::string key_of(const Plan& plan, const LintOptions& options, const std::vector<const Rule*>& rules) {
    std::vector<std::string> parts{options.whole_tree ? "findings of all facts" : "findings",
                                   own_binary(),
                                   options.working_directory,
                                   plan.project_root,
                                   options.torch,
                                   options.device,
                                   options.inference.value_or(false) ? "inference" : "training"};
    auto add = [&parts](std::string_view what, const std::vector<std::string>& list) {
        parts.emplace_back(what);  // separates the lists
        parts.insert(parts.end(), list.begin(), list.end());
    };
    parts.emplace_back("inputs");
    for (const std::string& input : options.inputs)
        parts.push_back(absolute_path(input, options.working_directory));
    parts.emplace_back("rules");
    for (const Rule* rule : rules) parts.emplace_back(rule->id);
    parts.emplace_back("policies");
    std::vector<std::string> lists = options.policy_files;
    lists.insert(lists.end(), {options.hmp.bf16, options.hmp.fp32});
    for (const std::string& file : lists) {
        std::string text;
        if (!file.empty()) read_file(file, text);
        parts.push_back(std::move(text));
    }
    add("guards", options.regions.guards);
    add("enter", options.regions.enter);
    add("leave", options.regions.leave);
    add("functions", options.regions.functions);
    parts.emplace_back(name_of(options.regions.dtype));
    const std::vector<std::string_view> views(parts.begin(), parts.end());
    return make_key(views).hex();
}

// Commands, headers and Python files of the plan, without their content.
std::string plan_hash(const Plan& plan, const std::vector<PlannedUnit>& commands) {
    std::vector<std::string_view> parts;
    for (const PlannedUnit& c : commands) parts.push_back(c.key);
    parts.emplace_back("headers");
    parts.insert(parts.end(), plan.headers.begin(), plan.headers.end());
    parts.emplace_back("python");
    for (const PythonFile& f : plan.python) parts.insert(parts.end(), {f.path, f.module});
    return make_key(parts).hex();
}

// The inputs of all units, each once. The files of the plan's Python units are not among them.
class AllInputs {
public:
    void add(const Inputs& inputs) {
        for (const InputFile& f : inputs.files) {
            const auto [at, added] = files_.try_emplace(f.path, all.files.size());
            if (added)
                all.files.push_back(f);
            else if (all.files[at->second].id != f.id)
                all.files[at->second].id = {};  // changed between two units: never unchanged
        }
        for (const InputDirectory& d : inputs.directories) {
            const auto [at, added] = directories_.try_emplace(d.path, all.directories.size());
            if (added)
                all.directories.push_back(d);
            else if (all.directories[at->second].mtime_ns != d.mtime_ns)
                all.directories[at->second].mtime_ns = kNoTime;
        }
    }
    Inputs all;

private:
    std::unordered_map<Symbol, std::size_t> files_;
    std::unordered_map<Symbol, std::size_t> directories_;
};

bool is_planned_python(const Plan& plan, std::size_t index, std::size_t first) {
    return index >= first && index < first + plan.python.size();
}

void write_all_inputs(SegmentWriter& out, const Plan& plan, const std::vector<PlannedUnit>& commands,
                      const Gatherer& gatherer) {
    const std::vector<GatheredUnit>& units = gatherer.units();
    const std::size_t first = gatherer.first_python();
    out.text(plan_hash(plan, commands));
    for (std::size_t i = first; i < first + plan.python.size(); ++i)
        write_id(out, units[i].head.inputs.files.front().id);
    AllInputs inputs;
    for (std::size_t i = 0; i < units.size(); ++i)
        if (!is_planned_python(plan, i, first)) inputs.add(units[i].head.inputs);
    write_inputs(out, inputs.all);
    out.value(gatherer.absent());
    out.number(first - commands.size());
    for (std::size_t i = commands.size(); i < first; ++i) {
        out.text(units[i].planned.path());
        out.text(units[i].planned.key);
    }
    out.end_record();
}

void write_slice(SegmentWriter& out, const std::optional<LastSlice>& slice) {
    out.value(slice.has_value());
    if (slice) {
        out.number(slice->files.size());
        for (const LastSlice::File& f : slice->files) {
            out.number(f.key);
            out.number(f.links);
            out.number(f.facts);
            out.number(f.outline);
            out.value(f.is_relevant);
            out.value(f.in_slice);
        }
        out.value(slice->low_names);
    }
    out.end_record();
}

std::optional<LastSlice> read_slice(RecordReader in) {
    bool any = false;
    in.value(any);
    LastSlice out;
    for (std::uint64_t n = any ? in.number() : 0; n > 0 && in.ok; --n) {
        LastSlice::File& f = out.files.emplace_back();
        f.key = in.number();
        f.links = in.number();
        f.facts = in.number();
        f.outline = in.number();
        in.value(f.is_relevant);
        in.value(f.in_slice);
    }
    if (any) in.value(out.low_names);
    return any && in.ok ? std::optional(std::move(out)) : std::nullopt;
}

void write_units(SegmentWriter& out, const std::vector<GatheredUnit>& units) {
    out.number(units.size());
    for (const GatheredUnit& unit : units) {
        const UnitResult& u = unit.result;
        out.text(u.path);
        out.value(u.state);
        out.text(u.message);
        out.text(u.headers);
        out.value(u.passes);
        out.value(u.coverage);
        out.value(u.warnings);
        out.value(u.may_suppress);
    }
    out.end_record();
}

std::vector<UnitResult> read_units(RecordReader& in) {
    std::vector<UnitResult> out;
    for (std::uint64_t n = in.number(); n > 0 && in.ok; --n) {
        UnitResult& u = out.emplace_back();
        in.value(u.path);
        in.value(u.state);
        in.value(u.message);
        in.value(u.headers);
        in.value(u.passes);
        in.value(u.coverage);
        in.value(u.warnings);
        in.value(u.may_suppress);
        u.cached = true;
    }
    return out;
}

// The units of the program and their facts, in the order in which they are linked.
std::uint64_t program_hash(const Gatherer& gatherer) {
    std::vector<std::uint64_t> hashes;
    for (const GatheredUnit& unit : gatherer.units())
        if (unit.in_program)
            hashes.insert(hashes.end(), {hash_bytes(unit.planned.key), unit.head.facts.hash});
    return hash_bytes({reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof hashes[0]});
}

std::uint64_t lines_hash(const Gatherer& gatherer) {
    std::string bytes;
    for (const GatheredUnit& unit : gatherer.units()) {
        if (!unit.in_program) continue;
        for (const FileLines& f : unit.head.facts.lines) {
            bytes.append(f.file.str()).append(1, '\0');
            bytes.append(reinterpret_cast<const char*>(f.lines.data()), f.lines.size() * sizeof f.lines[0]);
        }
    }
    return hash_bytes(bytes);
}

// Writes spans with the unit that has a fact on their lines.
class SpanWriter {
public:
    SpanWriter(SegmentWriter& out, const std::vector<GatheredUnit>& units) : out_(out) {
        for (std::size_t u = 0; u < units.size(); ++u) {
            if (!units[u].in_program) continue;
            const std::vector<FileLines>& tables = units[u].head.facts.lines;
            for (std::size_t t = 0; t < tables.size(); ++t)
                tables_[tables[t].file].push_back({.unit = u, .table = t, .lines = &tables[t].lines});
        }
    }

    void write(const SourceSpan& span) {
        out_.value(span);
        if (!span.known()) return;
        for (const Table& t : tables_[span.file]) {
            const auto begin = std::ranges::lower_bound(*t.lines, span.line);
            const auto end = std::ranges::lower_bound(*t.lines, span.end_line);
            if (begin == t.lines->end() || *begin != span.line) continue;
            if (span.end_line != 0 && (end == t.lines->end() || *end != span.end_line)) continue;
            out_.number(t.unit + 1);
            out_.number(t.table);
            out_.number(static_cast<std::uint64_t>(begin - t.lines->begin()));
            out_.number(static_cast<std::uint64_t>(end - t.lines->begin()));
            return;
        }
        out_.number(0);
    }

private:
    struct Table {
        std::size_t unit;
        std::size_t table;
        const std::vector<std::uint32_t>* lines;
    };
    SegmentWriter& out_;
    std::unordered_map<Symbol, std::vector<Table>> tables_;
};

// Reads spans as they were, or re-anchors them to the present lines of the units.
class SpanReader {
public:
    SpanReader(RecordReader& in, const std::vector<GatheredUnit>* units) : in_(in), units_(units) {}

    void read(SourceSpan& span) {
        in_.value(span);
        if (!span.known() || !in_.ok) return;
        const std::uint64_t unit = in_.number();
        if (unit == 0) {
            is_anchored = false;
            return;
        }
        const std::uint64_t table = in_.number();
        const std::uint64_t begin = in_.number();
        const std::uint64_t end = in_.number();
        if (units_) anchor(span, static_cast<std::size_t>(unit - 1), table, begin, end);
    }
    // A text with the name of a lambda contains a line.
    void check(std::string_view text) { is_anchored = is_anchored && !names_lambda(text); }

    bool is_anchored = true;

private:
    void anchor(SourceSpan& span, std::size_t unit, std::uint64_t table, std::uint64_t begin,
                std::uint64_t end) {
        is_anchored = is_anchored && unit < units_->size() && table < (*units_)[unit].head.facts.lines.size();
        if (!is_anchored) return;
        const std::vector<std::uint32_t>& lines = (*units_)[unit].head.facts.lines[table].lines;
        is_anchored = begin < lines.size() && (span.end_line == 0 || end < lines.size());
        if (!is_anchored) return;
        span.line = lines[begin];
        if (span.end_line != 0) span.end_line = lines[end];
    }

    RecordReader& in_;
    const std::vector<GatheredUnit>* units_;
};

void write_findings(SegmentWriter& out, const Gatherer& gatherer, const Findings& findings) {
    out.number(program_hash(gatherer));
    out.number(lines_hash(gatherer));
    out.number(findings.size());
    SpanWriter spans(out, gatherer.units());
    for (const Finding& f : findings) {
        out.text(f.rule);
        out.value(f.severity);
        spans.write(f.span);
        out.text(f.message);
        out.text(f.fix);
        out.number(f.notes.size());
        for (const Note& note : f.notes) {
            spans.write(note.span);
            out.text(note.text);
        }
        out.symbol(f.function);
        out.number(f.edits.size());
        for (const Edit& edit : f.edits) {
            spans.write(edit.at);
            out.text(edit.text);
        }
        out.value(f.safe_edits);
    }
    out.end_record();
}

Finding read_finding(RecordReader& in, SpanReader& spans, const std::vector<const Rule*>& rules) {
    Finding f;
    const std::string_view id = in.text();
    const auto rule = std::ranges::find(rules, id, &Rule::id);
    if (rule == rules.end()) in.ok = false;
    if (in.ok) f.rule = (*rule)->id;
    in.value(f.severity);
    spans.read(f.span);
    in.value(f.message);
    in.value(f.fix);
    for (std::uint64_t n = in.number(); n > 0 && in.ok; --n) {
        Note& note = f.notes.emplace_back();
        spans.read(note.span);
        in.value(note.text);
        spans.check(note.text);
    }
    f.function = in.symbol();
    for (std::uint64_t n = in.number(); n > 0 && in.ok; --n) {
        Edit& edit = f.edits.emplace_back();
        spans.read(edit.at);
        in.value(edit.text);
        spans.check(edit.text);
    }
    in.value(f.safe_edits);
    for (const std::string_view text :
         {std::string_view(f.message), std::string_view(f.fix), f.function.str()})
        spans.check(text);
    return f;
}

// Nothing if the record is damaged, or a place is not on a line of `units`.
std::optional<Findings> read_findings(RecordReader& in, const std::vector<GatheredUnit>* units,
                                      const std::vector<const Rule*>& rules) {
    SpanReader spans(in, units);
    Findings out;
    for (std::uint64_t n = in.number(); n > 0 && in.ok; --n) out.push_back(read_finding(in, spans, rules));
    if (!in.ok || (units && !spans.is_anchored)) return std::nullopt;
    return out;
}

}  // namespace

ResultCache::ResultCache(UnitPlanner& planner, const std::vector<const Rule*>& rules,
                         const std::string& directory)
    : planner_(planner), rules_(rules) {
    if (!directory.empty()) path_ = directory + "/" + key_of(planner.plan, planner.options, rules) + ".run";
}

bool ResultCache::same_inputs(RecordReader& in, const std::vector<PlannedUnit>& commands) {
    const Plan& plan = planner_.plan;
    if (in.text() != plan_hash(plan, commands)) return false;
    bool same = true;
    for (const PythonFile& f : plan.python) same = (read_id(in) == f.id) && same;
    const Inputs inputs = read_inputs(in);
    std::vector<std::string> absent;
    in.value(absent);
    FileStates files;
    for (const InputFile& f : inputs.files) same = same && files.stat(std::string(f.path.str())).id == f.id;
    for (const InputDirectory& d : inputs.directories)
        same = same && files.stat(std::string(d.path.str())).id.mtime_ns == d.mtime_ns;
    for (const std::string& path : absent) same = same && ::access(path.c_str(), F_OK) != 0;
    for (std::uint64_t n = in.number(); n > 0 && in.ok && same; --n) {
        const std::string header(in.text());
        same = planner_.command(plan.fallback(header)).key == in.text();
    }
    return same && in.ok;
}

std::optional<CachedResults> ResultCache::unchanged(const std::vector<PlannedUnit>& commands) {
    is_open_ = !path_.empty() && read_file(path_, bytes_) && segment_.open(bytes_);
    if (!is_open_) return std::nullopt;
    RecordReader inputs(segment_, segment_.record(kInputs));
    if (!same_inputs(inputs, commands)) {
        slice_ = read_slice(RecordReader(segment_, segment_.record(kSlice)));
        return std::nullopt;
    }
    RecordReader units(segment_, segment_.record(kUnits));
    RecordReader in(segment_, segment_.record(kFindings));
    (void)in.number();
    (void)in.number();
    CachedResults out{.units = read_units(units), .findings = {}};
    std::optional<Findings> findings = read_findings(in, nullptr, rules_);
    if (!units.ok || !findings) return std::nullopt;
    out.findings = std::move(*findings);
    mark_used(path_);
    return out;
}

std::optional<Findings> ResultCache::with_same_facts(const Gatherer& gatherer) {
    if (!is_open_ || !gatherer.is_complete()) return std::nullopt;
    RecordReader in(segment_, segment_.record(kFindings));
    if (in.number() != program_hash(gatherer)) return std::nullopt;
    const bool same_lines = in.number() == lines_hash(gatherer);
    return read_findings(in, same_lines ? nullptr : &gatherer.units(), rules_);
}

void ResultCache::save(const std::vector<PlannedUnit>& commands, const Gatherer& gatherer,
                       const Findings& findings) const {
    if (path_.empty() || !gatherer.is_complete()) return;
    SegmentWriter out;
    write_all_inputs(out, planner_.plan, commands, gatherer);
    write_slice(out, gatherer.slice());
    write_units(out, gatherer.units());
    write_findings(out, gatherer, findings);
    replace_file(path_, out.take());  // on failure the next run is only slower
}

}  // namespace mp::lint
