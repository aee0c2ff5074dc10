#include "runtime/launch/doctor/sections.hpp"

namespace mp::launch::doctor {
namespace {

constexpr std::size_t kMostShown = 20;

constexpr const char* kAsk =
    "mp-trace doctor PROGRAM --sources DIR -- the flags of its build, with each -DNAME";

std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
    return all;
}

// What was read, and as which build.
Line read_line(const SourceFacts& s) {
    Line line{.key = "read by mp-lint", .verdict = Verdict::ok, .value = joined(s.files, ", ")};
    if (!s.flags.empty()) {
        line.value += ", with " + joined(s.flags, " ");
    } else if (!s.database.empty()) {
        line.value += ", with the flags in " + s.database;
    } else {
        line.verdict = Verdict::warn;
        line.value += ", without the flags of its build: code that a -D turns on was not read";
        line.hint = kAsk;
    }
    return line;
}

// The lines of a list, and how many more there are.
template <class Item, class Make>
void add_lines(Section& section, const std::vector<Item>& items, const char* more, const Make& make) {
    for (std::size_t i = 0; i < items.size() && i < kMostShown; ++i) section.lines.push_back(make(items[i]));
    if (items.size() > kMostShown)
        section.lines.push_back({.key = "more", .value = std::to_string(items.size() - kMostShown) + more});
}

Line finding_line(const SourceFinding& finding) {
    return {.key = finding.rule + " " + finding.name,
            .verdict = Verdict::warn,
            .value = finding.place + ": " + finding.message,
            .hint = finding.fix};
}

bool is_whole(const SourceFacts& s) {
    return s.ambiguous.empty() && s.missing.empty() && s.incomplete.empty();
}

Line not_found_line(const SourceFacts& s) {
    return {.key = "sources",
            .value = s.named ? "none found: none of the files beside the program, and none in a "
                               "compile_commands.json above it, has the name of one of its units"
                             : "none found: the program was stripped of the names of its units",
            .hint = kAsk};
}

}  // namespace

Section source_section(const SourceFacts& s) {
    Section section{.name = "sources", .lines = {}};
    const auto add = [&section](Line line) { section.lines.push_back(std::move(line)); };
    if (s.files.empty() && s.ambiguous.empty()) add(not_found_line(s));
    add_lines(section, s.ambiguous, " names of units that several files have", [](const std::string& name) {
        return Line{
            .key = "not read",
            .value = name + ": several files have this name, and the program does not say which it is of",
            .hint = "mp-trace doctor --sources DIR, with the folder of the right one"};
    });
    if (s.files.empty()) return section;
    add_lines(section, s.missing, " names of units that no file has", [](const std::string& name) {
        return Line{.key = "not read",
                    .value = name + ": a unit of the program, and no file of this name was found",
                    .hint = "mp-trace doctor --sources DIR, with its folder"};
    });
    if (s.lint.empty()) {
        add({.key = "not read",
             .value = joined(s.files, ", ") + ": there is no mp-lint beside mp-trace",
             .hint = "install mp-lint into the same folder: it finds defects of collectives, products and "
                     "loss scales "
                     "without a GPU"});
        return section;
    }
    if (!s.fault.empty()) {
        add({.key = "not read",
             .verdict = Verdict::warn,
             .value = joined(s.files, ", ") + ": mp-lint " + s.fault,
             .hint = s.command});
        return section;
    }
    add(read_line(s));
    add_lines(section, s.findings, " findings", finding_line);
    add_lines(section, s.incomplete, " units", [](const std::string& unit) {
        return Line{.key = "not read wholly", .verdict = Verdict::warn, .value = unit};
    });
    if (s.findings.empty())
        add({.key = "findings",
             .verdict = Verdict::ok,
             .value = std::string(is_whole(s) ? "none" : "none in what was read") +
                      " about collectives (MP409, MP412), products (MP406, MP408), loss scales and "
                      "clipping (MP2)"});
    add({.key = "not looked at",
         .value = "mp-lint's other rules, and the sources of shared libraries that the program loads",
         .hint = s.command});
    return section;
}

}  // namespace mp::launch::doctor
