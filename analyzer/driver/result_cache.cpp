#include "analyzer/driver/result_cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyzer/cache/directory.hpp"
#include "analyzer/driver/discover.hpp"

namespace mp::lint {
namespace {

enum RecordIndex : std::size_t { kInputs, kUnits, kFindings, kLines };

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

// The units of the program, in the order in which they are linked.
std::vector<const GatheredUnit*> program_of(const Gatherer& gatherer) {
    std::vector<const GatheredUnit*> out;
    for (const GatheredUnit& unit : gatherer.units())
        if (unit.in_program) out.push_back(&unit);
    return out;
}

// The other half of what findings are valid for: key_of() is the hash of the settings.
std::uint64_t hash_of(const std::vector<const GatheredUnit*>& program) {
    std::vector<std::uint64_t> hashes;
    for (const GatheredUnit* unit : program)
        hashes.insert(hashes.end(), {hash_bytes(unit->planned.key), unit->head.facts.hash});
    return hash_bytes({reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof hashes[0]});
}

// Writes findings. Their places refer to lines by index, and a line refers to the unit of the program and the
// ordinal in its table of lines.
class FindingsWriter {
public:
    explicit FindingsWriter(SegmentWriter& out) : out_(out) {}

    void write(const Findings& findings) {
        out_.number(findings.size());
        for (const Finding& f : findings) write(f);
        out_.end_record();
    }

    void write_lines(const std::vector<const GatheredUnit*>& program) {
        std::vector<Anchor> anchors(lines_.size());
        for (std::size_t u = 0; u < program.size(); ++u) anchor(u, program[u]->head.facts.lines, anchors);
        out_.number(hash_of(program));
        out_.number(lines_.size());
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            out_.symbol(lines_[i].file);
            out_.number(lines_[i].line);
            out_.number(anchors[i].unit);
            out_.number(anchors[i].ordinal);
        }
        out_.end_record();
    }

private:
    // `unit` is counted from 1; 0: no fact of the program is on the line.
    struct Anchor {
        std::size_t unit = 0;
        std::size_t ordinal = 0;
    };
    using Ordinals = std::unordered_map<std::uint32_t, std::size_t>;  // in `lines_`, by line

    void write(const Finding& f) {
        out_.text(f.rule);
        out_.value(f.severity);
        write(f.span);
        out_.text(f.message);
        out_.text(f.fix);
        out_.number(f.notes.size());
        for (const Note& note : f.notes) {
            write(note.span);
            out_.text(note.text);
        }
        out_.symbol(f.function);
        out_.number(f.edits.size());
        for (const Edit& edit : f.edits) {
            write(edit.at);
            out_.text(edit.text);
        }
        out_.value(f.safe_edits);
    }
    void write(const SourceSpan& span) {
        write_line({span.file, span.line});
        out_.number(span.column);
        write_line({span.file, span.end_line});
        out_.number(span.end_column);
    }
    void write_line(const Line& line) {
        const auto [at, added] = cited_[line.file].try_emplace(line.line, lines_.size());
        if (added) lines_.push_back(line);
        out_.number(at->second);
    }
    void anchor(std::size_t unit, const std::vector<Line>& lines, std::vector<Anchor>& anchors) const {
        const Ordinals* here = nullptr;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (i == 0 || lines[i].file != lines[i - 1].file) {
                const auto file = cited_.find(lines[i].file);
                here = file == cited_.end() ? nullptr : &file->second;
            }
            const auto cited = here ? here->find(lines[i].line) : Ordinals::const_iterator{};
            if (!here || cited == here->end() || anchors[cited->second].unit != 0) continue;
            anchors[cited->second] = {.unit = unit + 1, .ordinal = i};
        }
    }

    SegmentWriter& out_;
    std::vector<Line> lines_;
    std::unordered_map<Symbol, Ordinals> cited_;
};

// The lines that the findings of the last run cite: their present lines in `program`, or without one the lines of the
// last run. Nothing if the facts of the program are not the same, or no fact is on a line.
std::optional<std::vector<Line>> read_lines(RecordReader in,
                                            const std::vector<const GatheredUnit*>* program) {
    std::vector<Line> out;
    const std::uint64_t hash = in.number();
    if (program && hash != hash_of(*program)) return std::nullopt;
    for (std::uint64_t n = in.number(); n > 0 && in.ok; --n) {
        const Symbol file = in.symbol();
        const auto line = static_cast<std::uint32_t>(in.number());
        const std::uint64_t unit = in.number();
        const std::uint64_t ordinal = in.number();
        out.push_back({file, line});
        if (!program || line == 0) continue;
        if (unit == 0 || unit > program->size()) return std::nullopt;
        const std::vector<Line>& lines = (*program)[unit - 1]->head.facts.lines;
        if (ordinal >= lines.size()) return std::nullopt;
        out.back() = lines[ordinal];
    }
    return in.ok ? std::optional(std::move(out)) : std::nullopt;
}

class FindingsReader {
public:
    FindingsReader(RecordReader in, const std::vector<Line>& lines, const std::vector<const Rule*>& rules)
        : in_(in), lines_(lines), rules_(rules) {}

    std::optional<Findings> read() {
        Findings out;
        for (std::uint64_t n = in_.number(); n > 0 && in_.ok; --n) out.push_back(finding());
        return in_.ok ? std::optional(std::move(out)) : std::nullopt;
    }

private:
    Finding finding() {
        Finding f;
        const auto rule = std::ranges::find(rules_, in_.text(), &Rule::id);
        if (rule == rules_.end()) in_.ok = false;
        if (in_.ok) f.rule = (*rule)->id;
        in_.value(f.severity);
        f.span = span();
        in_.value(f.message);
        in_.value(f.fix);
        for (std::uint64_t n = in_.number(); n > 0 && in_.ok; --n) {
            Note& note = f.notes.emplace_back();
            note.span = span();
            in_.value(note.text);
        }
        f.function = in_.symbol();
        for (std::uint64_t n = in_.number(); n > 0 && in_.ok; --n) {
            Edit& edit = f.edits.emplace_back();
            edit.at = span();
            in_.value(edit.text);
        }
        in_.value(f.safe_edits);
        return f;
    }
    SourceSpan span() {
        const Line begin = line();
        const auto column = static_cast<std::uint32_t>(in_.number());
        const Line end = line();
        return {.file = begin.file,
                .line = begin.line,
                .column = column,
                .end_line = end.line,
                .end_column = static_cast<std::uint32_t>(in_.number())};
    }
    Line line() {
        const std::uint64_t index = in_.number();
        if (index < lines_.size()) return lines_[index];
        in_.ok = false;
        return {};
    }

    RecordReader in_;
    const std::vector<Line>& lines_;
    const std::vector<const Rule*>& rules_;
};

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
    if (!same_inputs(inputs, commands)) return std::nullopt;
    RecordReader units(segment_, segment_.record(kUnits));
    CachedResults out{.units = read_units(units), .findings = {}};
    std::optional<Findings> findings = read_findings(nullptr);
    if (!units.ok || !findings) return std::nullopt;
    out.findings = std::move(*findings);
    mark_used(path_);
    return out;
}

std::optional<Findings> ResultCache::same_facts(const Gatherer& gatherer) {
    if (!is_open_ || !gatherer.is_complete()) return std::nullopt;
    const std::vector<const GatheredUnit*> program = program_of(gatherer);
    return read_findings(&program);
}

std::optional<Findings> ResultCache::read_findings(const std::vector<const GatheredUnit*>* program) {
    const std::optional<std::vector<Line>> lines =
        read_lines(RecordReader(segment_, segment_.record(kLines)), program);
    if (!lines) return std::nullopt;
    return FindingsReader(RecordReader(segment_, segment_.record(kFindings)), *lines, rules_).read();
}

void ResultCache::save(const std::vector<PlannedUnit>& commands, const Gatherer& gatherer,
                       const Findings& findings) const {
    if (path_.empty() || !gatherer.is_complete()) return;
    SegmentWriter out;
    write_all_inputs(out, planner_.plan, commands, gatherer);
    write_units(out, gatherer.units());
    FindingsWriter writer(out);
    writer.write(findings);
    writer.write_lines(program_of(gatherer));
    replace_file(path_, out.take());  // on failure the next run is only slower
}

}  // namespace mp::lint
