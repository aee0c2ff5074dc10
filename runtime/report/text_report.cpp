#include "runtime/report/text_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/base/figures.hpp"
#include "runtime/report/figure_bases.hpp"
#include "runtime/report/process_rows.hpp"
#include "runtime/report/verdict_text.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/trace/info.hpp"

namespace mp::trace {
namespace {

constexpr std::size_t kRowsAtEachEnd = 50;
constexpr std::size_t kMaxNotes = 20;

using Row = std::array<std::string, 7>;

// Seven digits: as many as an fp32 loss has.
std::string number(double value) {
    if (!std::isfinite(value)) return decimal_of(value);
    std::array<char, 64> buffer{};
    const auto [end, error] =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 7);
    return error == std::errc() ? std::string(buffer.data(), end) : "?";
}

Row row_of(const StepPlace& place) {
    const StepRow& s = *place.row;
    const Rank rank = place.process->process.rank;
    const std::optional<LossRecord> loss = s.loss();
    return {std::to_string(s.step.value),
            rank.known() ? std::to_string(rank.value) : "-",
            std::to_string(s.optimizer),
            loss ? number(loss->real) : "-",
            loss && loss->has_twin ? number(loss->twin) : "-",
            s.skipped ? "skipped" : "",
            s.has_loss_scale ? number(s.loss_scale) : ""};
}

std::string table_of(const std::vector<Row>& rows) {
    std::array<std::size_t, std::tuple_size_v<Row>> width{};
    for (const Row& row : rows) {
        for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
    }
    std::string out;
    for (const Row& row : rows) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c)
            line += std::string(width[c] - row[c].size() + (c ? 2 : 0), ' ') + row[c];
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

std::string share_text(double fraction) {
    if (fraction < 0) return "-";
    // Rounded down: 99.999 % of the ops is not all of them.
    const auto hundredths = static_cast<std::uint64_t>(fraction * 10000);
    const std::string decimals = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + "." + std::string(2 - decimals.size(), '0') + decimals + " %";
}

std::string followed_text(const RunModel& model) {
    const Coverage& c = model.coverage;
    if (fraction_of_ops(c) < 0) return "none: mode " + std::string(name_of(model.mode)) + " has no fp32 twin";
    return share_text(fraction_of_ops(c)) + " of float ops, " + share_text(fraction_of_bytes(c)) +
           " of their bytes shadowed; seeds after step 0: " + std::to_string(model.seeds_after_first) + " (" +
           std::to_string(model.external_after_first) + " from outside); stale " + std::to_string(c.stale) +
           ", flips " + std::to_string(c.flips) + ", leaks " + std::to_string(c.leaks) + ", failed " +
           std::to_string(c.failed);
}

std::string coverage_text(const RunModel& model) {
    const Coverage& c = model.coverage;
    std::string out = "coverage   " + followed_text(model);
    if (c.regrouped > 0) out += ", regrouped " + std::to_string(c.regrouped);
    if (c.relaid > 0) out += ", relaid " + std::to_string(c.relaid);
    if (c.drawn > 0) out += ", drawn in 16 bits " + std::to_string(c.drawn);
    if (c.by_name > 0) out += ", kernels seen by name only " + std::to_string(c.by_name);
    out += "\n";
    std::size_t shown_notes = 0, all_notes = 0;
    for (const RunModel::Note& note : model.notes) {
        if (note.kind == NoteKind::end) continue;
        if (++all_notes > kMaxNotes) continue;
        ++shown_notes;
        out += std::string(name_of(note.kind)) + "  " + shown(note.text) + " (" + std::to_string(note.count) +
               ")\n";
    }
    if (all_notes > shown_notes) out += "and " + std::to_string(all_notes - shown_notes) + " more notes\n";
    return out;
}

// "figures    exact     dtypes, shapes, compute types: 342 calls"
std::string figures_text(const RunModel& model) {
    std::string out;
    for (const FigureBasis& f : figures_of(model)) {
        std::string basis(name_of(f.basis));
        basis.resize(10, ' ');
        out += (out.empty() ? "figures    " : "           ") + basis + f.what + ": " +
               counted(f.count, f.unit) + "\n";
    }
    return out;
}

std::string steps_text(const RunModel& model) {
    const std::vector<StepPlace> places = steps_of(model);
    const bool all = places.size() <= 2 * kRowsAtEachEnd;
    std::vector<Row> rows{{"step", "rank", "optimizer", "loss", "twin", "", "scale"}};
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (all || i < kRowsAtEachEnd || i >= places.size() - kRowsAtEachEnd) {
            rows.push_back(row_of(places[i]));
        } else if (i == kRowsAtEachEnd) {
            rows.push_back({"...", "", "", "", "", "", ""});
        }
    }
    return table_of(rows);
}

std::string processes_text(const RunModel& model) {
    RunInfo info{model.directory, {}, model.unreadable, model.missing};
    for (const RankFacts& r : model.ranks)
        info.recordings.push_back({r.process, r.path, tables_of(r).counts});
    return info_text(info);
}

std::string dtypes_text(const MatmulRecord& r) {
    return std::string(name_of(r.a)) + " x " + std::string(name_of(r.b)) + " -> " +
           std::string(name_of(r.result));
}

// How a program without torch asked for its matrix products: a row for all layers that ask alike.
std::string matmuls_text(const RunModel& model) {
    constexpr std::size_t kRows = 12;
    struct Group {
        std::uint64_t calls = 0, m = 0, n = 0, k = 0;
        std::set<std::string> layers;
    };
    std::map<std::tuple<std::string, std::string, Phase>, Group> groups;
    for (const MatmulRecord& r : model.matmuls) {
        Group& group = groups[{dtypes_text(r), r.how, r.phase}];
        group.calls += r.calls;
        group.layers.insert(r.layer);
        group.m = std::max(group.m, r.m);
        group.n = std::max(group.n, r.n);
        group.k = std::max(group.k, r.k);
    }
    if (groups.empty()) return {};
    std::vector<Row> rows{
        {"matrix products", "computed with", "phase", "calls", "layers", "up to m x n x k"}};
    for (const auto& [key, group] : groups) {
        if (rows.size() > kRows) break;
        const auto& [dtypes, how, phase] = key;
        rows.push_back(
            {dtypes, how, std::string(name_of(phase)), std::to_string(group.calls),
             std::to_string(group.layers.size()),
             std::to_string(group.m) + " x " + std::to_string(group.n) + " x " + std::to_string(group.k)});
    }
    return "\n" + table_of(rows);
}

// The layers whose kernels took longest (--device-times).
std::string times_text(const RunModel& model) {
    constexpr std::size_t kRows = 12;
    if (model.times.empty()) return {};
    std::vector<Row> rows{{"layer", "phase", "kernels", "ms on the device"}};
    for (const DeviceTime& t : model.times) {
        if (rows.size() > kRows) break;
        rows.push_back({t.layer.empty() ? "-" : shown_short(t.layer, 60), std::string(name_of(t.phase)),
                        std::to_string(t.kernels), number(static_cast<double>(t.device_ns) / 1e6)});
    }
    return "\n" + table_of(rows);
}

}  // namespace

std::string text_report(const RunModel& model, const Judgement& judgement) {
    return verdict_text(model, judgement) + "\n" + processes_text(model) + "\n" + steps_text(model) +
           matmuls_text(model) + times_text(model) + "\n" + figures_text(model) + coverage_text(model);
}

}  // namespace mp::trace
