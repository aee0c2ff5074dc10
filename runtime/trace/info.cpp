#include "runtime/trace/info.hpp"

#include "kernels/base/paths.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <set>

#include "runtime/trace/display.hpp"
#include "runtime/trace/note_texts.hpp"

namespace mp::trace {
namespace {

// So that a run of thousands of ranks fits one screen.
constexpr std::size_t kMaxRows = 32;
constexpr std::size_t kMaxProblemsShown = 5;

std::string utc(std::int64_t unix_ns) {
    const std::int64_t second = 1'000'000'000;
    const auto seconds = static_cast<std::time_t>(unix_ns / second);
    std::tm parts{};
    std::array<char, 64> buffer{};
    if (unix_ns < 0 || !::gmtime_r(&seconds, &parts)) return "unknown";
    const std::size_t size = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {buffer.data(), size};
}

std::string rank_text(Rank rank) { return rank.known() ? std::to_string(rank.value) : "-"; }

std::string steps_text(const RecordingCounts& c) {
    if (c.steps == 0) return "no steps";
    return "steps " + std::to_string(c.first_step.value) + ".." + std::to_string(c.last_step.value);
}

std::string row(const RunInfo::Entry& r) {
    const ProcessRecord& p = r.process;
    const RecordingCounts& c = r.counts;
    std::string out = "  rank " + (c.has_process ? rank_text(p.rank) : "?");
    if (p.restart) out += " restart " + std::to_string(p.restart);
    out += "  " + (p.host.empty() ? std::string("-") : shown(p.host)) + " pid " + std::to_string(p.pid);
    out += "  " + steps_text(c) + " (" + std::to_string(c.steps) + " records, " + std::to_string(c.skipped) +
           " skipped)";
    out += "  " + std::to_string(c.notes) + " notes  " + size_text(c.bytes);
    if (!c.has_process) out += "  NO PROCESS RECORD";
    if (c.lossy) out += "  LOSSY";
    if (!c.problems.empty()) out += "  " + std::to_string(c.problems.size()) + " PROBLEMS";
    out += c.ended ? "" : "  no orderly end";
    if (!p.members.empty()) out += "\n    " + shown(p.members);
    return out + "\n";
}

void put_problems(std::string& out, const RunInfo::Entry& r) {
    const std::vector<Problem>& problems = r.counts.problems;
    for (std::size_t i = 0; i < problems.size() && i < kMaxProblemsShown; ++i) {
        const Problem& p = problems[i];
        out += "  problem in " + shown(file_name(r.path)) + " at byte " + std::to_string(p.offset) + ": " +
               shown(p.why) + " (" + std::to_string(p.bytes_lost) + " bytes)\n";
    }
    if (problems.size() > kMaxProblemsShown)
        out += "  and " + std::to_string(problems.size() - kMaxProblemsShown) + " more\n";
}

void put_program(std::string& out, const ProcessRecord& p) {
    out += "program    " + (p.program.empty() ? std::string("unknown") : shown(p.program)) + "\n";
    out += "framework  " + (p.framework.empty() ? std::string("unknown") : shown(p.framework)) +
           (p.adapter.empty() ? "" : ", adapter " + shown(p.adapter)) + "\n";
    out += "mode       " + std::string(name_of(p.mode)) + "\n";
    out += "started    " + utc(p.started_unix_ns) + (p.launcher.empty() ? "" : ", by " + shown(p.launcher)) +
           (p.job.empty() ? "" : ", job " + shown(p.job)) + "\n";
}

std::string missing_text(const std::vector<Rank>& missing) {
    if (missing.empty()) return {};
    std::string out = "missing   ";
    for (std::size_t i = 0; i < missing.size() && i < kMaxRows; ++i) out += " " + rank_text(missing[i]);
    if (missing.size() > kMaxRows) out += " and " + std::to_string(missing.size() - kMaxRows) + " more";
    return out + "\n";
}

}  // namespace

void RecordingCounts::add(const StepRecord& s) {
    first_step = steps == 0 ? s.step : std::min(first_step, s.step);
    last_step = steps == 0 ? s.step : std::max(last_step, s.step);
    ++steps;
    skipped += s.skipped;
}

void RecordingCounts::add(const NoteRecord& n) {
    ++notes;
    lossy = lossy || n.kind == NoteKind::lossy;
    if (n.kind == NoteKind::end) ended = n.text != kInTask;
}

RecordingCounts counts_of(const Recording& r) {
    RecordingCounts counts;
    counts.bytes = r.bytes;
    counts.has_process = r.has_process;
    counts.problems = r.problems;
    for (const StepRecord& s : r.steps) counts.add(s);
    for (const NoteRecord& n : r.notes) counts.add(n);
    return counts;
}

std::string info_text(const Recording& r) {
    const RecordingCounts counts = counts_of(r);
    const RunInfo::Entry entry{r.process, r.path, counts};
    std::string out = "recording  " + shown(file_name(r.path)) + "\n";
    if (r.has_process) put_program(out, r.process);
    out += row(entry);
    put_problems(out, entry);
    return out;
}

std::string info_text(const Run& run) {
    std::vector<RecordingCounts> counts;
    for (const Recording& r : run.recordings) counts.push_back(counts_of(r));
    RunInfo info{run.directory, {}, run.unreadable, run.missing};
    for (std::size_t i = 0; i < counts.size(); ++i)
        info.recordings.push_back({run.recordings[i].process, run.recordings[i].path, counts[i]});
    return info_text(info);
}

std::string info_text(const RunInfo& run) {
    std::string out = "run        " + shown(run.directory) + "\n";
    std::uint64_t bytes = 0, problems = 0;
    std::int32_t world = -1;
    std::set<std::int32_t> ranks;
    const ProcessRecord* told = nullptr;
    for (const RunInfo::Entry& r : run.recordings) {
        bytes += r.counts.bytes;
        problems += r.counts.problems.size();
        world = std::max(world, r.process.world_size);
        if (r.process.rank.known()) ranks.insert(r.process.rank.value);
        if (!told && r.counts.has_process) told = &r.process;
    }
    if (told) put_program(out, *told);
    out += "processes  " + std::to_string(run.recordings.size()) + ", " + size_text(bytes) + "\n";
    if (!ranks.empty() || world >= 0)
        out += "ranks      " + std::to_string(ranks.size()) + " seen, world size " +
               (world < 0 ? std::string("unknown") : std::to_string(world)) + "\n";
    out += missing_text(run.missing);
    for (std::size_t i = 0; i < run.recordings.size() && i < kMaxRows; ++i) out += row(run.recordings[i]);
    if (run.recordings.size() > kMaxRows)
        out += "  and " + std::to_string(run.recordings.size() - kMaxRows) + " more processes\n";
    if (problems <= kMaxRows) {
        for (const RunInfo::Entry& r : run.recordings) put_problems(out, r);
    } else {
        out += "problems   " + std::to_string(problems) + " in all; mp-trace dump FILE lists them\n";
    }
    for (const Error& e : run.unreadable) out += "unreadable " + shown(e.message) + "\n";
    return out;
}

}  // namespace mp::trace
