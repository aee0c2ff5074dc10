#include "runtime/trace/dump.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

// A run of thousands of ranks still fits one screen.
constexpr std::size_t kMaxRows = 32;
constexpr std::size_t kMaxProblemsShown = 5;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string text(std::int64_t value) { return std::to_string(value); }
std::string text(std::uint64_t value) { return std::to_string(value); }
std::string text(double value) { return hex_of(value) + " (" + decimal_of(value) + ")"; }

// "key=value", each after a space.
class Line {
public:
    explicit Line(std::string start) : out_(std::move(start)) {}

    Line& word(std::string_view v) {
        out_.append(" ").append(v);
        return *this;
    }
    template <typename T>
    Line& field(std::string_view key, T value) {
        out_.append(" ").append(key).append("=");
        if constexpr (std::is_same_v<T, bool>) {
            out_ += value ? "yes" : "no";
        } else if constexpr (std::is_floating_point_v<T>) {
            out_ += text(static_cast<double>(value));
        } else if constexpr (std::is_unsigned_v<T>) {
            out_ += text(static_cast<std::uint64_t>(value));
        } else {
            out_ += text(static_cast<std::int64_t>(value));
        }
        return *this;
    }
    Line& name(std::string_view key, std::string_view value) {
        out_.append(" ").append(key).append("=").append(quoted(value));
        return *this;
    }
    void to(std::string& out) { out.append(out_).append("\n"); }

private:
    std::string out_;
};

std::string utc(std::int64_t unix_ns) {
    const std::int64_t second = 1'000'000'000;
    const auto seconds = static_cast<std::time_t>(unix_ns / second);
    std::tm parts{};
    std::array<char, 64> buffer{};
    if (unix_ns < 0 || !::gmtime_r(&seconds, &parts)) return "unknown";
    const std::size_t size = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {buffer.data(), size};
}

void put(std::string& out, const ProcessRecord& p) {
    Line("process")
        .field("rank", p.rank.value)
        .field("local_rank", p.local_rank)
        .field("world_size", p.world_size)
        .field("restart", p.restart)
        .field("pid", p.pid)
        .field("started_unix_ns", p.started_unix_ns)
        .name("host", p.host)
        .name("job", p.job)
        .name("launcher", p.launcher)
        .name("program", p.program)
        .name("framework", p.framework)
        .name("adapter", p.adapter)
        .word("mode=" + std::string(name_of(p.mode)))
        .to(out);
}

void put(std::string& out, const LossRecord& l) {
    Line line("  loss");
    line.field("micro_step", l.micro_step).word(name_of(l.dtype)).field("real", l.real);
    if (l.has_twin) line.field("twin", l.twin);
    line.to(out);
}

void put(std::string& out, const Coverage& c) {
    Line("  coverage")
        .field("ops", c.ops)
        .field("shadowed", c.shadowed)
        .field("unshadowed", c.unshadowed)
        .field("shadowed_bytes", c.shadowed_bytes)
        .field("unshadowed_bytes", c.unshadowed_bytes)
        .field("seeds", c.seeds)
        .field("seeded_bytes", c.seeded_bytes)
        .field("external", c.external)
        .field("stale", c.stale)
        .field("flips", c.flips)
        .field("leaks", c.leaks)
        .field("worst_leak", c.worst_leak)
        .field("failed", c.failed)
        .to(out);
}

void put(std::string& out, const TensorRecord& t) {
    Line("  " + std::string(name_of(t.kind)))
        .word(quoted(t.name))
        .word(name_of(t.dtype))
        .field("elements", t.elements)
        .field("compared", t.compared)
        .field("nonfinite_real", t.nonfinite_real)
        .field("nonfinite_twin", t.nonfinite_twin)
        .field("differ", t.differ)
        .field("error_squares", t.error_squares)
        .field("twin_squares", t.twin_squares)
        .word("relative_l2=" + decimal_of(relative_l2(t)))
        .field("amax", t.amax)
        .field("twin_amax", t.twin_amax)
        .field("zeros", t.zeros)
        .field("subnormals", t.subnormals)
        .field("flushed", t.flushed)
        .field("flushed_abs", t.flushed_abs)
        .field("twin_abs", t.twin_abs)
        .field("meant_to_move", t.meant_to_move)
        .field("unmoved", t.unmoved)
        .field("below_half_ulp", t.below_half_ulp)
        .field("wanted_squares", t.wanted_squares)
        .field("moved_dot", t.moved_dot)
        .field("hash", t.hash)
        .to(out);
}

// Fields in the order of the contract. Those of a measurement that was not made are left out.
void put(std::string& out, const OpRecord& o) {
    Line line("  op");
    line.name("layer", o.layer);
    if (o.guessed) line.word("guessed");
    line.word(quoted(o.op)).word(name_of(o.phase)).word(name_of(o.dtype));
    line.field("first", o.first).field("calls", o.calls).name("source", o.source);
    line.field("elements", o.elements)
        .field("nan", o.nan)
        .field("pos_inf", o.pos_inf)
        .field("neg_inf", o.neg_inf);
    line.field("zeros", o.zeros)
        .field("subnormals", o.subnormals)
        .field("amax", o.amax)
        .field("amin", o.amin);
    line.field("input_amax", o.input_amax).field("origins", o.origins).field("first_origin", o.first_origin);
    line.to(out);
    if (o.compared || o.nonfinite_real || o.nonfinite_twin) {
        Line("    cum")
            .field("compared", o.compared)
            .field("nonfinite_real", o.nonfinite_real)
            .field("nonfinite_twin", o.nonfinite_twin)
            .field("twin_amax", o.twin_amax)
            .field("error_squares", o.error_squares)
            .field("twin_squares", o.twin_squares)
            .field("flushed_abs", o.flushed_abs)
            .field("twin_abs", o.twin_abs)
            .to(out);
    }
    if (o.loc_compared || o.loc_nonfinite) {
        Line("    loc")
            .field("compared", o.loc_compared)
            .field("error_squares", o.loc_error_squares)
            .field("squares", o.loc_squares)
            .field("dot", o.loc_dot)
            .field("worst", o.loc_worst)
            .field("nonfinite", o.loc_nonfinite)
            .field("prop_error_squares", o.prop_error_squares)
            .field("input_error", o.input_error)
            .to(out);
    }
    if (!o.exponents.counts.empty()) {
        Line line_of("    exponents");
        line_of.field("lowest", std::uint64_t{o.exponents.lowest});
        for (const std::uint64_t count : o.exponents.counts) line_of.word(text(count));
        line_of.to(out);
    }
    if (o.added) Line("    sums").field("added", o.added).field("absorbed", o.absorbed).to(out);
}

void put(std::string& out, const DTypePlace& p) {
    Line("  place")
        .word(name_of(p.role))
        .word(quoted(p.layer))
        .word(name_of(p.phase))
        .word(name_of(p.dtype))
        .field("tensors", p.tensors)
        .field("elements", p.elements)
        .to(out);
}

void put(std::string& out, const StepRecord& s) {
    Line line("step " + text(s.step.value));
    line.field("optimizer", s.optimizer).field("skipped", s.skipped);
    if (s.has_loss_scale) line.field("loss_scale", s.loss_scale);
    line.field("wall_ns", s.wall_ns).field("sampled", s.sampled).to(out);
    for (const LossRecord& l : s.losses) put(out, l);
    for (const DTypeCount& d : s.dtypes) Line("  dtype").word(name_of(d.dtype)).field("ops", d.ops).to(out);
    for (const CollectiveRecord& c : s.collectives) {
        Line("  collective")
            .word(quoted(c.op))
            .name("reduction", c.reduction)
            .word(name_of(c.dtype))
            .name("group", c.group)
            .field("calls", c.calls)
            .field("bytes", c.bytes)
            .field("compared", c.compared)
            .field("error_squares", c.error_squares)
            .field("sum_squares", c.sum_squares)
            .field("made_nonfinite", c.made_nonfinite)
            .to(out);
    }
    put(out, s.coverage);
    for (const OpRecord& o : s.ops) put(out, o);
    for (const TensorRecord& t : s.tensors) put(out, t);
    for (const DTypePlace& p : s.places) put(out, p);
}

void put(std::string& out, const Problem& p) {
    Line("problem").field("offset", p.offset).field("bytes_lost", p.bytes_lost).word(quoted(p.why)).to(out);
}

std::string rank_text(Rank rank) { return rank.known() ? text(std::int64_t{rank.value}) : "-"; }

std::string steps_text(const Recording& r) {
    if (r.steps.empty()) return "no steps";
    const auto [low, high] =
        std::minmax_element(r.steps.begin(), r.steps.end(),
                            [](const StepRecord& a, const StepRecord& b) { return a.step < b.step; });
    return "steps " + text(low->step.value) + ".." + text(high->step.value);
}

std::uint64_t count_of(const Recording& r, NoteKind kind) {
    return static_cast<std::uint64_t>(std::count_if(r.notes.begin(), r.notes.end(),
                                                    [kind](const NoteRecord& n) { return n.kind == kind; }));
}

std::string row(const Recording& r) {
    const ProcessRecord& p = r.process;
    const auto skipped =
        std::count_if(r.steps.begin(), r.steps.end(), [](const StepRecord& s) { return s.skipped; });
    std::string out = "  rank " + (r.has_process ? rank_text(p.rank) : "?");
    if (p.restart) out += " restart " + text(std::int64_t{p.restart});
    out += "  " + (p.host.empty() ? std::string("-") : shown(p.host)) + " pid " + text(p.pid);
    out += "  " + steps_text(r) + " (" + text(std::uint64_t{r.steps.size()}) + " records, " +
           text(std::int64_t{skipped}) + " skipped)";
    out += "  " + text(std::uint64_t{r.notes.size()}) + " notes  " + size_text(r.bytes);
    if (!r.has_process) out += "  NO PROCESS RECORD";
    if (count_of(r, NoteKind::lossy)) out += "  LOSSY";
    if (!r.problems.empty()) out += "  " + text(std::uint64_t{r.problems.size()}) + " PROBLEMS";
    out += count_of(r, NoteKind::end) ? "" : "  no orderly end";
    return out + "\n";
}

void put_problems(std::string& out, const Recording& r) {
    for (std::size_t i = 0; i < r.problems.size() && i < kMaxProblemsShown; ++i) {
        const Problem& p = r.problems[i];
        out += "  problem in " + shown(base_name(r.path)) + " at byte " + text(p.offset) + ": " +
               shown(p.why) + " (" + text(p.bytes_lost) + " bytes)\n";
    }
    if (r.problems.size() > kMaxProblemsShown)
        out += "  and " + text(std::uint64_t{r.problems.size() - kMaxProblemsShown}) + " more\n";
}

void put_program(std::string& out, const ProcessRecord& p) {
    out += "program    " + (p.program.empty() ? std::string("unknown") : shown(p.program)) + "\n";
    out += "framework  " + (p.framework.empty() ? std::string("unknown") : shown(p.framework)) +
           (p.adapter.empty() ? "" : ", adapter " + shown(p.adapter)) + "\n";
    out += "mode       " + std::string(name_of(p.mode)) + "\n";
    out += "started    " + utc(p.started_unix_ns) + (p.launcher.empty() ? "" : ", by " + shown(p.launcher)) +
           (p.job.empty() ? "" : ", job " + shown(p.job)) + "\n";
}

}  // namespace

std::string dump_text(const Recording& r) {
    std::string out;
    if (r.has_process) put(out, r.process);
    for (const StepRecord& s : r.steps) put(out, s);
    for (const NoteRecord& n : r.notes) {
        Line("note")
            .word(name_of(n.kind))
            .field("step", n.step.value)
            .field("count", n.count)
            .word(quoted(n.text))
            .to(out);
    }
    for (const Problem& p : r.problems) put(out, p);
    return out;
}

std::string info_text(const Recording& r) {
    std::string out = "recording  " + shown(base_name(r.path)) + "\n";
    if (r.has_process) put_program(out, r.process);
    out += row(r);
    put_problems(out, r);
    return out;
}

std::string info_text(const Run& run) {
    std::string out = "run        " + shown(run.directory) + "\n";
    std::uint64_t bytes = 0, problems = 0;
    std::int32_t world = -1;
    std::set<std::int32_t> ranks;
    const Recording* told = nullptr;
    for (const Recording& r : run.recordings) {
        bytes += r.bytes;
        problems += r.problems.size();
        world = std::max(world, r.process.world_size);
        if (r.process.rank.known()) ranks.insert(r.process.rank.value);
        if (!told && r.has_process) told = &r;
    }
    if (told) put_program(out, told->process);
    out += "processes  " + text(std::uint64_t{run.recordings.size()}) + ", " + size_text(bytes) + "\n";
    out += "ranks      " + text(std::uint64_t{ranks.size()}) + " seen, world size " +
           (world < 0 ? std::string("unknown") : text(std::int64_t{world})) + "\n";
    if (!run.missing.empty()) {
        out += "missing   ";
        for (std::size_t i = 0; i < run.missing.size() && i < kMaxRows; ++i)
            out += " " + rank_text(run.missing[i]);
        if (run.missing.size() > kMaxRows)
            out += " and " + text(std::uint64_t{run.missing.size() - kMaxRows}) + " more";
        out += "\n";
    }
    for (std::size_t i = 0; i < run.recordings.size() && i < kMaxRows; ++i) out += row(run.recordings[i]);
    if (run.recordings.size() > kMaxRows)
        out += "  and " + text(std::uint64_t{run.recordings.size() - kMaxRows}) + " more processes\n";
    for (const Recording& r : run.recordings) {
        if (!r.problems.empty() && problems <= kMaxRows) put_problems(out, r);
    }
    if (problems > kMaxRows)
        out += "problems   " + text(problems) + " in all; mp-trace dump FILE lists them\n";
    for (const Error& e : run.unreadable) out += "unreadable " + shown(e.message) + "\n";
    return out;
}

}  // namespace mp::trace
