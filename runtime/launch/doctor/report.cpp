#include "runtime/launch/doctor/report.hpp"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

namespace mp::launch::doctor {
namespace {

std::string_view name_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::ok: return "ok";
        case Verdict::note: return "note";
        case Verdict::warn: return "warn";
        case Verdict::no: return "no";
    }
    return "no";
}

// Versions, paths and error texts come from files and programs that anyone may have written: nothing of
// them may move the cursor, change colours or begin a line of its own. U+0080..U+009F are controls as well.
std::string escaped(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string clean;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
        const bool c1 = c == 0xc2 && next >= 0x80 && next <= 0x9f;
        if (c >= 0x20 && c != 0x7f && !c1) {
            clean += text[i];
            continue;
        }
        const auto shown = c1 ? next : static_cast<unsigned>(c);
        clean.append("\\x").append(1, kHex[shown >> 4]).append(1, kHex[shown & 15u]);
        if (c1) ++i;
    }
    return clean;
}

std::string padded(std::string_view text, std::size_t width) {
    std::string cell = escaped(text);
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
        text += escaped(section.name) + "\n";
        for (const Line& line : section.lines) {
            std::string row = "  " + padded(name_of(line.verdict), kVerdict) + padded(line.key, kKey);
            if (!line.value.empty()) row += " " + escaped(line.value);
            text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
            if (!line.hint.empty()) text += std::string(2 + kVerdict, ' ') + "-> " + escaped(line.hint) + "\n";
        }
        text += "\n";
    }
    for (const Section& section : report.sections)
        for (const Line& line : section.lines)
            if (line.needed && line.verdict == Verdict::no)
                text += "torch programs cannot be traced here: " + escaped(line.key) + "\n";
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
    const ordered_json all{{"version", 1}, {"traceable", traceable(report)}, {"sections", std::move(sections)}};
    return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace mp::launch::doctor
