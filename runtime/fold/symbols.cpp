#include "runtime/fold/symbols.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/child.hpp"
#include "kernels/base/paths.hpp"
#include "runtime/trace/display.hpp"

namespace mp::launch {
namespace {

constexpr std::size_t kMostAddresses = 2000;
constexpr ChildLimits kLimits{.milliseconds = 20'000, .bytes = 4u << 20};

bool is_regular_file(const std::string& path) {
    struct stat info{};
    return path.starts_with('/') && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// "sharded_gpt+0x1f3c4" of this program -> "0x1f3c4"; empty: something else.
std::string_view address_in(std::string_view source, std::string_view program) {
    if (!source.starts_with(program)) return {};
    source.remove_prefix(program.size());
    if (!source.starts_with("+0x") ||
        source.find_first_not_of("0123456789abcdef", 3) != std::string_view::npos)
        return {};
    return source.substr(1);
}

template <typename Visit>
void for_each_source(trace::RunModel& model, const Visit& visit) {
    for (trace::OpSum& op : model.ops) {
        visit(op.total.source);
        visit(op.at_origin.source);
    }
    for (trace::SkipFacts& skip : model.skips) visit(skip.origin.source);
}

bool is_library(std::string_view line) {
    return line.starts_with("/usr/") || line.find("/torch/") != std::string_view::npos;
}

std::string_view next_line(std::string_view& text) {
    const std::size_t stop = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, stop);
    text.remove_prefix(std::min(stop + 1, text.size()));
    return line;
}

// Address -> "file:line", for addresses that have a line. Torch's headers are inlined into the program, so one
// address can have several lines, from the innermost function outwards. The first line of the program itself is used.
std::map<std::string, std::string, std::less<>> ask_addr2line(const std::string& program,
                                                              const std::vector<std::string>& addresses) {
    std::vector<std::string> command{"addr2line", "-a", "-i", "-e", program};
    command.insert(command.end(), addresses.begin(), addresses.end());
    const char* const path = std::getenv("PATH");
    const auto end = run_child({.arguments = command,
                                .environment = {{std::string("PATH=") + (path ? path : "/usr/bin:/bin")}},
                                .limits = kLimits});
    std::map<std::string, std::string, std::less<>> lines;
    if (!end.good()) return lines;
    auto address = addresses.begin();
    bool found = false, first = true;
    for (std::string_view out = end.out; !out.empty();) {
        std::string_view line = next_line(out);
        if (line.starts_with("0x")) {  // the next address, in the order of `addresses`
            if (!std::exchange(first, false)) ++address;
            if (address == addresses.end()) break;
            found = false;
            continue;
        }
        line = line.substr(0, line.find(" (discriminator"));
        if (found || line.starts_with('?') || line.ends_with(":?") || line.ends_with(":0")) continue;
        lines[*address] = line.starts_with('/') ? absolute_path(line, "") : std::string(line);
        found = !is_library(line);
    }
    return lines;
}

}  // namespace

void resolve_sources(trace::RunModel& model) {
    std::set<std::string> programs;
    for (const trace::RankFacts& rank : model.ranks) programs.insert(rank.process.program);
    for (const std::string& program : programs) {
        std::set<std::string> wanted;
        for_each_source(model, [&](const std::string& source) {
            const std::string_view address = address_in(source, file_name(program));
            if (!address.empty() && wanted.size() < kMostAddresses) wanted.emplace(address);
        });
        if (wanted.empty() || !is_regular_file(program)) continue;
        const auto lines = ask_addr2line(program, {wanted.begin(), wanted.end()});
        for_each_source(model, [&](std::string& source) {
            const auto line = lines.find(address_in(source, file_name(program)));
            if (line != lines.end()) source = line->second;
        });
    }
}

}  // namespace mp::launch
