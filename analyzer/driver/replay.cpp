#include "analyzer/driver/replay.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "analyzer/cache/cache.hpp"
#include "analyzer/cache/codec.hpp"
#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/python_files.hpp"

namespace mp::lint {
namespace {

// More edits than this are a checkout: then all is judged again.
constexpr std::size_t kFewFiles = 16;

// Everything that decides the findings besides the files themselves.
std::string key_of(const Plan& plan, const LintOptions& options, const std::vector<const Rule*>& rules) {
    std::vector<std::string> parts{"findings",
                                   own_binary(),
                                   options.working_directory,
                                   plan.project_root,
                                   options.torch,
                                   options.device,
                                   options.inference.value_or(false) ? "inference" : "training"};
    auto add = [&parts](std::string_view what, const std::vector<std::string>& list) {
        parts.emplace_back(what);  // the lists must not run into each other
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

bool is_complete(const UnitResult& unit) {
    return unit.state != UnitState::crashed && unit.state != UnitState::timeout;
}

void write_inputs(SegmentWriter& out, const Plan& plan, const RunInputs& inputs) {
    const std::vector<ReadFile>& files = inputs.files;
    out.value(is_large_tree(plan.python));
    out.number(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
        out.text(files[i].path);
        out.text(i < plan.python.size() ? plan.python[i].module : "");
        out.number(files[i].id.size);
        out.value(files[i].id.mtime_ns);
        out.number(files[i].id.inode);
        out.number(files[i].hash);
        out.value(files[i].made);
    }
    out.value(inputs.absent);
    out.value(inputs.low_names);
    out.end_record();
}

// What a file is now; of the plan's files the plan has asked already.
FileId id_now(const Plan& plan, std::size_t index, const std::string& path) {
    if (index < plan.python.size()) return plan.python[index].id;
    struct ::stat info{};
    return ::stat(path.c_str(), &info) == 0 ? id_of(info) : FileId{};
}

void write_units(SegmentWriter& out, const std::vector<UnitResult>& units) {
    out.number(units.size());
    for (const UnitResult& u : units) {
        out.text(u.path);
        out.value(u.state);
        out.text(u.message);
        out.value(u.coverage);
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
        in.value(u.coverage);
        in.value(u.may_suppress);
        u.cached = true;
    }
    return out;
}

void write_findings(SegmentWriter& out, const Findings& findings) {
    out.number(findings.size());
    for (const Finding& f : findings) {
        out.text(f.rule);
        out.value(f.severity);
        out.value(f.span);
        out.text(f.message);
        out.text(f.fix);
        out.number(f.notes.size());
        for (const Note& note : f.notes) {
            out.value(note.span);
            out.text(note.text);
        }
        out.symbol(f.function);
        out.number(f.edits.size());
        for (const Edit& edit : f.edits) {
            out.value(edit.at);
            out.text(edit.text);
        }
        out.value(f.safe_edits);
    }
    out.end_record();
}

Findings read_findings(RecordReader& in, const std::vector<const Rule*>& rules) {
    Findings out;
    for (std::uint64_t n = in.number(); n > 0 && in.ok; --n) {
        Finding& f = out.emplace_back();
        const std::string_view id = in.text();
        const auto rule =
            std::find_if(rules.begin(), rules.end(), [id](const Rule* r) { return r->id == id; });
        if (rule == rules.end()) in.ok = false;
        if (in.ok) f.rule = (*rule)->id;
        in.value(f.severity);
        in.value(f.span);
        in.value(f.message);
        in.value(f.fix);
        for (std::uint64_t m = in.number(); m > 0 && in.ok; --m) {
            Note& note = f.notes.emplace_back();
            in.value(note.span);
            in.value(note.text);
        }
        f.function = in.symbol();
        for (std::uint64_t m = in.number(); m > 0 && in.ok; --m) {
            Edit& edit = f.edits.emplace_back();
            in.value(edit.at);
            in.value(edit.text);
        }
        in.value(f.safe_edits);
    }
    return out;
}

}  // namespace

Replay::Replay(const Plan& plan, const LintOptions& options, const FrontEnds& parts,
               const std::vector<const Rule*>& rules)
    : plan_(plan), options_(options), parts_(parts), rules_(rules) {
    if (!options.use_cache || !plan.commands.empty() || !plan.headers.empty()) return;
    directory_ = cache_directory(options);
    if (!directory_.empty()) path_ = directory_ + "/" + key_of(plan, options, rules) + ".run";
}

// Whether the file is as it was, or may turn out to say what it said.
bool Replay::same_file(std::size_t index, ReadFile& file, Inputs& now) const {
    const FileId id = id_now(plan_, index, file.path);
    if (id == file.id) return true;
    std::string content;
    if (id.size != file.id.size || !read_file(file.path, content) || hash_bytes(content) != file.hash) {
        now.edited.push_back({.index = index, .then = file});
        return index < plan_.python.size() && now.edited.size() <= kFewFiles;
    }
    now.touched = true;
    file.id = trusted(id);
    return true;
}

// The files of the last run are those of this one.
bool Replay::same_inputs(RecordReader& in, Inputs& now) const {
    bool was_large = false;
    in.value(was_large);
    const std::uint64_t count = in.number();
    if (was_large != is_large_tree(plan_.python) || count < plan_.python.size()) return false;
    for (std::size_t i = 0; i < count && in.ok; ++i) {
        ReadFile file;
        in.value(file.path);
        const std::string_view module = in.text();
        file.id.size = in.number();
        in.value(file.id.mtime_ns);
        file.id.inode = in.number();
        file.hash = in.number();
        in.value(file.made);
        if (i < plan_.python.size() &&
            (file.path != plan_.python[i].path || module != plan_.python[i].module))
            return false;
        if (!in.ok || !same_file(i, file, now)) return false;
        now.files.push_back(std::move(file));
    }
    in.value(now.absent);
    in.value(now.low_names);
    return in.ok && std::none_of(now.absent.begin(), now.absent.end(),
                                 [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; });
}

// Brings what the last run found up to edits that changed nothing but lines.
bool Replay::catch_up(FactsPack& pack, Inputs& now, Replayed& last) const {
    std::optional<std::vector<RereadFile>> reread =
        reread_edited(plan_, options_, parts_, pack, now.edited, now.low_names);
    if (!reread || last.units.size() != now.files.size()) return false;
    for (RereadFile& r : *reread) {
        const Symbol path(r.now.path);
        for (Finding& f : last.findings)
            if (!move_finding(r.lines, path, f)) return false;
        last.read.push_back(r.now);
        last.units[r.index] = std::move(r.result);
        now.files[r.index] = std::move(r.now);
    }
    return true;
}

std::optional<Replayed> Replay::load(FactsPack& pack) {
    std::string bytes;
    Segment segment;
    if (path_.empty() || !read_file(path_, bytes) || !segment.open(bytes)) return std::nullopt;
    RecordReader inputs(segment, segment.record(0));
    Inputs now;
    if (!same_inputs(inputs, now)) return std::nullopt;
    RecordReader units(segment, segment.record(1));
    RecordReader findings(segment, segment.record(2));
    Replayed out{.units = read_units(units), .findings = read_findings(findings, rules_), .read = {}};
    if (!units.ok || !findings.ok) return std::nullopt;
    if (!now.edited.empty() && !catch_up(pack, now, out)) return std::nullopt;
    if (now.touched || !now.edited.empty()) save(now, out.units, out.findings);
    return out;
}

void Replay::save(const RunInputs& inputs, const std::vector<UnitResult>& units, const Findings& findings) {
    if (path_.empty() || !std::all_of(units.begin(), units.end(), is_complete)) return;
    SegmentWriter out;
    write_inputs(out, plan_, inputs);
    write_units(out, units);
    write_findings(out, findings);
    replace_file(path_, out.take());  // a run that cannot be kept is only slower next time
}

}  // namespace mp::lint
