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

// So that a run of thousands of ranks fits one screen.
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

// Shows the fields of a record on one line, in the order of its list.
template <class Record>
class Shower {
public:
    Shower(Line& line, const Record& record) : line_(line), record_(record) {}

    void field(const Field& f, auto Record::* member) {
        if (f.show != Show::hidden) value(f, f.name, record_.*member);
    }
    void field(std::string_view key, const Field& f, auto Record::* member) {
        value(f, key, record_.*member);
    }

private:
    template <class T>
    void value(const Field& f, std::string_view key, const T& v) {
        if constexpr (std::is_same_v<T, std::string>) {
            f.show == Show::bare ? line_.word(quoted(v)) : line_.name(key, v);
        } else if constexpr (std::is_enum_v<T>) {
            f.show == Show::bare ? line_.word(name_of(v))
                                 : line_.word(std::string(key) + "=" + std::string(name_of(v)));
        } else if constexpr (std::is_same_v<T, bool>) {
            if (f.show != Show::bare) line_.field(key, v);
            if (f.show == Show::bare && v) line_.word(key);
        } else if constexpr (std::is_same_v<T, Rank> || std::is_same_v<T, Step>) {
            line_.field(key, v.value);
        } else if constexpr (std::is_arithmetic_v<T>) {
            line_.field(key, v);
        }  // lists and records have separate lines
    }

    Line& line_;
    const Record& record_;
};

std::string_view start_of(const ProcessRecord&) { return "process"; }
std::string_view start_of(const LossRecord&) { return "  loss"; }
std::string_view start_of(const DTypeCount&) { return "  dtype"; }
std::string_view start_of(const CollectiveRecord&) { return "  collective"; }
std::string_view start_of(const Coverage&) { return "  coverage"; }
std::string_view start_of(const TensorRecord&) { return " "; }  // its kind follows
std::string_view start_of(const DTypePlace&) { return "  place"; }

// Values that were not recorded are omitted.
bool is_there(const LossRecord& l, const Field& f) { return l.has_twin || f.name != "twin"; }
bool is_there(const StepRecord& s, const Field& f) { return s.has_loss_scale || f.name != "loss_scale"; }
bool is_there(const auto&, const Field&) { return true; }

template <class Record>
void put(std::string& out, const Record& r) {
    Line line{std::string(start_of(r))};
    Shower<Record> shower(line, r);
    fields(
        [&](const Field& f, auto member) {
            if (is_there(r, f)) shower.field(f, member);
            if constexpr (std::is_same_v<Record, TensorRecord>) {
                if (f.name == "twin_squares") line.word("relative_l2=" + decimal_of(relative_l2(r)));
            }
        },
        Of<Record>{});
    line.to(out);
}

// The text comes last.
void put(std::string& out, const NoteRecord& n) {
    Line line("note");
    Shower<NoteRecord> shower(line, n);
    fields(
        [&](const Field& f, auto member) {
            if (f.name != "text") shower.field(f, member);
        },
        Of<NoteRecord>{});
    line.word(quoted(n.text)).to(out);
}

void put(std::string& out, const Exponents& e) {
    Line line("    exponents");
    line.field("lowest", std::uint64_t{e.lowest});
    for (const std::uint64_t count : e.counts) line.word(text(count));
    line.to(out);
}

// A line for each measurement that was made.
void put(std::string& out, const OpRecord& o) {
    Line all("  op"), cum("    cum"), loc("    loc"), sums("    sums");
    Shower<OpRecord> of_all(all, o), of_cum(cum, o), of_loc(loc, o), of_sums(sums, o);
    fields(
        [&](const Field& f, auto member) {
            switch (f.part) {
                case Part::all:
                    return of_all.field(f, member);
                case Part::cum:
                    return of_cum.field(f, member);
                case Part::loc:
                    return of_loc.field(f.name.substr(f.name.starts_with("loc_") ? 4 : 0), f, member);
                case Part::sums:
                    return of_sums.field(f, member);
            }
        },
        Of<OpRecord>{});
    all.to(out);
    if (o.compared || o.nonfinite_real || o.nonfinite_twin) cum.to(out);
    if (o.loc_compared || o.loc_nonfinite) loc.to(out);
    if (!o.exponents.counts.empty()) put(out, o.exponents);
    if (o.added) sums.to(out);
}

void put(std::string& out, const StepRecord& s) {
    Line line("step " + text(s.step.value));
    Shower<StepRecord> shower(line, s);
    fields(
        [&](const Field& f, auto member) {
            if (f.name != "step" && is_there(s, f)) shower.field(f, member);
        },
        Of<StepRecord>{});
    line.to(out);
    fields(
        [&](const Field&, auto member) {
            const auto& value = s.*member;
            if constexpr (std::is_same_v<decltype(value), const Coverage&>) {
                put(out, value);
            } else if constexpr (requires { value.begin(); }) {
                for (const auto& element : value) put(out, element);
            }
        },
        Of<StepRecord>{});
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
    for (const NoteRecord& n : r.notes) put(out, n);
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
