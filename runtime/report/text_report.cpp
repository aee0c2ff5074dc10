#include "runtime/report/text_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "runtime/report/summary.hpp"
#include "runtime/report/verdict_text.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/trace/dump.hpp"

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
    const StepRecord& s = *place.record;
    const Rank rank = place.recording->process.rank;
    const LossRecord* loss = loss_of(s);
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

std::string percent(double fraction) {
    if (fraction < 0) return "-";
    // Rounded down: 99.999 % of the ops is not all of them.
    const auto hundredths = static_cast<std::uint64_t>(fraction * 10000);
    const std::string decimals = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + "." + std::string(2 - decimals.size(), '0') + decimals + " %";
}

std::string coverage_text(const Run& run) {
    CoverageSum c;
    for (const Recording& r : run.recordings) c.add(r);
    std::string out = "coverage   " + percent(fraction_of_ops(c.sum)) + " of float ops, " +
                      percent(fraction_of_bytes(c.sum)) +
                      " of their bytes shadowed; seeds after step 0: " + std::to_string(c.seeds_after_first) +
                      " (" + std::to_string(c.external_after_first) + " from outside); stale " +
                      std::to_string(c.sum.stale) + ", flips " + std::to_string(c.sum.flips) + ", leaks " +
                      std::to_string(c.sum.leaks) + ", failed " + std::to_string(c.sum.failed) + "\n";
    std::size_t shown_notes = 0, all_notes = 0;
    for (const auto& [key, note] : notes_of(run.recordings)) {
        if (key.first == NoteKind::end) continue;
        if (++all_notes > kMaxNotes) continue;
        ++shown_notes;
        out += std::string(name_of(key.first)) + "  " + shown(key.second) + " (" +
               std::to_string(note.count) + ")\n";
    }
    if (all_notes > shown_notes) out += "and " + std::to_string(all_notes - shown_notes) + " more notes\n";
    return out;
}

}  // namespace

std::string text_report(const Run& run) {
    const std::vector<StepPlace> places = steps_of(run);
    const bool all = places.size() <= 2 * kRowsAtEachEnd;
    std::vector<Row> rows{{"step", "rank", "optimizer", "loss", "twin", "", "scale"}};
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (all || i < kRowsAtEachEnd || i >= places.size() - kRowsAtEachEnd) {
            rows.push_back(row_of(places[i]));
        } else if (i == kRowsAtEachEnd) {
            rows.push_back({"...", "", "", "", "", "", ""});
        }
    }
    return info_text(run) + "\n" + table_of(rows) + "\n" + coverage_text(run);
}

std::string text_report(const Run& run, const RunModel& model, const Judgement& judgement) {
    return verdict_text(model, judgement) + "\n" + text_report(run);
}

}  // namespace mp::trace
