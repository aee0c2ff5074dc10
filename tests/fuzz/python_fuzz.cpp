// libFuzzer over Python, notebooks and configurations: whatever files hold, their facts can be written and
// read back, every rule ends on them, and what the pre-filter skips has no finding.
//
// An input is a page as in testdata/lint: its fenced blocks are the files of one program, by the name behind
// `file=`. Without a fence it is one file of Python.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cache/codec.hpp"
#include "analyzer/facts/text.hpp"
#include "analyzer/fix/edits.hpp"
#include "analyzer/python/extract.hpp"
#include "tests/fuzz/judged.hpp"

namespace {

using namespace mp::lint;

struct File {
    std::string name;
    std::string text;
};

std::string_view take_line(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
}

std::vector<File> files_of(std::string_view page) {
    std::vector<File> files;
    bool open = false;
    for (std::string_view rest = page; !rest.empty() && files.size() < 8;) {
        const std::string_view line = take_line(rest);
        const bool fence = line.starts_with("```");
        if (fence && !open) {
            const std::size_t named = line.find("file=");
            files.push_back({named == std::string_view::npos ? "f" + std::to_string(files.size()) + ".py"
                                                             : std::string(line.substr(named + 5)),
                             {}});
        } else if (!fence && open) {
            files.back().text.append(line).append("\n");
        }
        open = open != fence;
    }
    if (files.empty()) files.push_back({"f0.py", std::string(page)});
    return files;
}

// The text form and the packed form both give back what they got.
void check_round_trips(const Unit& unit) {
    const std::string text = print_facts(unit);
    const auto parsed = parse_facts(text);
    if (!parsed || print_facts(*parsed) != text) std::abort();
    SegmentWriter writer;
    write_unit(writer, unit);
    writer.end_record();
    const std::string bytes = writer.take();
    Segment segment;
    if (!segment.open(bytes)) std::abort();
    RecordReader reader(segment, segment.record(0));
    if (print_facts(read_unit(reader)) != text) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::vector<File> files = files_of({reinterpret_cast<const char*>(data), size});
    std::vector<Unit> units;
    Report report;
    bool relevant = false;
    for (const File& file : files) {
        const std::string path = "/p/" + file.name;
        units.push_back(python::extract_file({path, python::module_name(path, "/p"), file.text}));
        check_round_trips(units.back());
        relevant |= !file.name.ends_with(".py") || python::is_relevant(file.name, file.text);
        report.sources.add(path, file.text);
    }
    report.findings = fuzz::judged(std::move(units));
    if (!relevant && !report.findings.empty()) std::abort();
    (void)plan_fixes(report, true);
    return 0;
}
