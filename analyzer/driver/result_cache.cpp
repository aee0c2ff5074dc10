#include "analyzer/driver/result_cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyzer/cache/directory.hpp"
#include "analyzer/driver/discover.hpp"

namespace mp::lint {

template <class V, Of<UnitResult> F>
void fields(V& v, F& f) {
    v("path", f.path);
    v("state", f.state);
    v("message", f.message);
    v("headers", f.headers);
    v("passes", f.passes);
    v("coverage", f.coverage);
    v("warnings", f.warnings);
    v("may_suppress", f.may_suppress, true);
}

template <class V, Of<Note> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v("text", f.text);
}

template <class V, Of<Edit> F>
void fields(V& v, F& f) {
    v.place(f.at);
    v("text", f.text);
}

// All but the rule, which refers to the list of rules.
template <class V, Of<Finding> F>
void fields(V& v, F& f) {
    v.place(f.span);
    v("severity", f.severity, Severity::warning);
    v("message", f.message);
    v("fix", f.fix);
    v("notes", f.notes);
    v("function", f.function);
    v("edits", f.edits);
    v("safe_edits", f.safe_edits);
}

namespace {

enum RecordIndex : std::size_t { kInputs, kUnits, kFindings, kAnchors };

using Hashes = std::vector<std::uint64_t>;

// What findings are about.
struct JudgedProgram {
    std::vector<const GatheredUnit*> units;  // in the order in which they are linked
    Hashes unread_imports;                   // of the other files
    Hashes given_options;                    // by texts
};

// Never the time of a directory.
constexpr std::int64_t kNoTime = -1;

// Everything that decides the findings besides the files themselves.
std::string key_of(const Plan& plan, const LintOptions& options, const std::vector<const Rule*>& rules) {
    std::vector<std::string> parts{options.reads_all() ? "findings of all facts" : "findings",
                                   own_binary(),
                                   options.working_directory,
                                   plan.project_root,
                                   options.torch,
                                   std::to_string(plan.torch.major),
                                   std::to_string(plan.torch.minor),
                                   std::to_string(plan.transformers.major),
                                   std::to_string(plan.transformers.minor),
                                   options.device,
                                   std::string(name_of(options.assume)),
                                   plan.is_whole ? "whole" : "parts",
                                   plan.is_package ? "package" : "program",
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

// Commands and files of the plan, without their content.
std::string plan_hash(const Plan& plan, const std::vector<PlannedUnit>& commands) {
    std::vector<std::string_view> parts;
    for (const PlannedUnit& c : commands) parts.push_back(c.key);
    parts.emplace_back("headers");
    parts.insert(parts.end(), plan.headers.begin(), plan.headers.end());
    parts.emplace_back("python");
    for (const PythonFile& f : plan.python) parts.insert(parts.end(), {f.path, f.module});
    parts.emplace_back("texts");
    for (const FoundFile& f : plan.texts) parts.emplace_back(f.path);
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
        out.value(units[i].head.inputs.files.front().id);
    for (const FoundFile& f : plan.texts) out.value(trusted(f.id));
    AllInputs inputs;
    for (std::size_t i = 0; i < units.size(); ++i)
        if (!is_planned_python(plan, i, first)) inputs.add(units[i].head.inputs);
    out.value(inputs.all);
    out.value(gatherer.absent());
    out.number(first - commands.size());
    for (std::size_t i = commands.size(); i < first; ++i) {
        out.text(units[i].planned.path());
        out.text(units[i].planned.key);
    }
    out.end_record();
}

JudgedProgram program_of(const Gatherer& gatherer) {
    JudgedProgram out{{}, gatherer.unread_imports(), gatherer.given_options().value_or(Hashes{1})};
    for (const GatheredUnit& unit : gatherer.units())
        if (unit.in_program) out.units.push_back(&unit);
    return out;
}

// The other half of what findings are valid for: key_of() is the hash of the settings.
std::uint64_t hash_of(const JudgedProgram& program) {
    Hashes hashes = program.unread_imports;
    hashes.push_back(hashes.size());
    hashes.insert(hashes.end(), program.given_options.begin(), program.given_options.end());
    for (const GatheredUnit* unit : program.units)
        hashes.insert(hashes.end(), {hash_bytes(unit->planned.key), unit->head.facts.hash});
    return hash_bytes({reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof hashes[0]});
}

// Where a line is in the program: the unit, counted from 1, and the ordinal in its table of lines. No unit: no fact of
// the program is on the line.
struct Anchor {
    std::uint64_t unit = 0;
    std::uint64_t ordinal = 0;
};

std::vector<Anchor> anchors_of(const std::vector<Line>& cited, const JudgedProgram& program) {
    std::unordered_map<Symbol, std::unordered_map<std::uint32_t, std::size_t>> indices;
    for (std::size_t i = 0; i < cited.size(); ++i) indices[cited[i].file][cited[i].line] = i;
    std::vector<Anchor> out(cited.size());
    for (std::size_t u = 0; u < program.units.size(); ++u) {
        const std::vector<Line>& lines = program.units[u]->head.facts.lines;
        auto file = indices.end();
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (i == 0 || lines[i].file != lines[i - 1].file) file = indices.find(lines[i].file);
            if (file == indices.end()) continue;
            const auto index = file->second.find(lines[i].line);
            if (index == file->second.end() || out[index->second].unit != 0) continue;
            out[index->second] = {.unit = u + 1, .ordinal = i};
        }
    }
    return out;
}

void write_findings(SegmentWriter& out, const JudgedProgram& program, const Findings& findings) {
    std::vector<Symbol> rules;
    for (const Finding& f : findings) rules.emplace_back(f.rule);
    out.value(rules);
    out.begin_body();
    out.value(findings);
    const std::vector<Line> lines = out.end_body();
    out.end_record();
    out.number(hash_of(program));
    for (const Anchor& anchor : anchors_of(lines, program)) {
        out.number(anchor.unit);
        out.number(anchor.ordinal);
    }
    out.end_record();
}

// Moves the lines that findings cite to where they are in `program`. False if its facts are not those of the last run,
// or if a line is not known.
bool re_anchor(RecordReader anchors, const JudgedProgram& program, std::vector<Line>& cited) {
    if (anchors.number() != hash_of(program)) return false;
    for (Line& line : cited) {
        const std::uint64_t unit = anchors.number();
        const std::uint64_t ordinal = anchors.number();
        if (line.line == 0) continue;
        if (unit == 0 || unit > program.units.size()) return false;
        const std::vector<Line>& lines = program.units[unit - 1]->head.facts.lines;
        if (ordinal >= lines.size()) return false;
        line = lines[ordinal];
    }
    return anchors.ok;
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
    const auto read = [&](const FileId& now) {
        FileId id;
        in.value(id);
        same = same && id == now;
    };
    for (const PythonFile& f : plan.python) read(f.id);
    for (const FoundFile& f : plan.texts) read(f.id);
    Inputs inputs;
    in.value(inputs);
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
    CachedResults out;
    units.value(out.units);
    for (UnitResult& unit : out.units) unit.cached = true;
    std::optional<Findings> findings = read_findings(nullptr);
    if (!units.ok || !findings) return std::nullopt;
    out.findings = std::move(*findings);
    mark_used(path_);
    return out;
}

std::optional<Findings> ResultCache::same_facts(const Gatherer& gatherer) {
    return is_open_ && gatherer.is_complete() ? read_findings(&gatherer) : std::nullopt;
}

std::optional<Findings> ResultCache::read_findings(const Gatherer* now) {
    RecordReader in(segment_, segment_.record(kFindings));
    std::vector<Symbol> ids;
    in.value(ids);
    std::vector<Line> lines = in.digest().lines;
    if (now && !re_anchor(RecordReader(segment_, segment_.record(kAnchors)), program_of(*now), lines))
        return std::nullopt;
    in.open_body(lines);
    Findings out;
    in.value(out);
    for (std::size_t i = 0; in.ok && i < out.size(); ++i) {
        const auto rule = i < ids.size() ? std::ranges::find(rules_, ids[i].str(), &Rule::id) : rules_.end();
        if (rule == rules_.end()) return std::nullopt;
        out[i].rule = (*rule)->id;
    }
    return in.ok ? std::optional(std::move(out)) : std::nullopt;
}

void ResultCache::save(const std::vector<PlannedUnit>& commands, const Gatherer& gatherer,
                       const Findings& findings) const {
    if (path_.empty() || !gatherer.is_complete()) return;
    SegmentWriter out;
    write_all_inputs(out, planner_.plan, commands, gatherer);
    std::vector<UnitResult> units;
    for (const GatheredUnit& unit : gatherer.units()) units.push_back(unit.result);
    out.value(units);
    out.end_record();
    write_findings(out, program_of(gatherer), findings);
    replace_file(path_, out.take());  // on failure the next run is only slower
}

}  // namespace mp::lint
