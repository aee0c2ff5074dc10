#include "runtime/launch/doctor/report.hpp"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/launch/words.hpp"

namespace mp::launch::doctor {
namespace {

std::string_view name_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::ok:
            return "ok";
        case Verdict::note:
            return "note";
        case Verdict::warn:
            return "warn";
        case Verdict::no:
            return "no";
    }
    return "no";
}

std::string padded(std::string_view text, std::size_t width) {
    std::string cell = printable(text);
    if (cell.size() < width) cell.append(width - cell.size(), ' ');
    return cell;
}

}  // namespace

bool traceable(const DoctorReport& report) {
    return std::all_of(report.sections.begin(), report.sections.end(), [](const Section& section) {
        return std::none_of(section.lines.begin(), section.lines.end(),
                            [](const Line& line) { return line.needed && line.verdict == Verdict::no; });
    });
}

std::string to_text(const DoctorReport& report) {
    constexpr std::size_t kVerdict = 6, kKey = 38;
    std::string text;
    for (const Section& section : report.sections) {
        text += printable(section.name) + "\n";
        for (const Line& line : section.lines) {
            std::string row = "  " + padded(name_of(line.verdict), kVerdict) + padded(line.key, kKey);
            if (!line.value.empty()) row += " " + printable(line.value);
            text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
            if (!line.hint.empty())
                text += std::string(2 + kVerdict, ' ') + "-> " + printable(line.hint) + "\n";
        }
        text += "\n";
    }
    for (const Section& section : report.sections)
        for (const Line& line : section.lines)
            if (line.needed && line.verdict == Verdict::no)
                text += "torch programs cannot be traced here: " + printable(line.key) + "\n";
    if (traceable(report)) text += "nothing that was looked at keeps torch programs from being traced here\n";
    return text;
}

std::string to_json(const DoctorReport& report) {
    using nlohmann::ordered_json;
    ordered_json sections = ordered_json::array();
    for (const Section& section : report.sections) {
        ordered_json lines = ordered_json::array();
        for (const Line& line : section.lines)
            lines.push_back(ordered_json{{"key", line.key},
                                         {"verdict", name_of(line.verdict)},
                                         {"value", line.value},
                                         {"hint", line.hint},
                                         {"needed", line.needed}});
        sections.push_back(ordered_json{{"name", section.name}, {"lines", std::move(lines)}});
    }
    const ordered_json all{
        {"version", 1}, {"traceable", traceable(report)}, {"sections", std::move(sections)}};
    return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace mp::launch::doctor
