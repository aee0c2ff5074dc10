#include "runtime/trace/options.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "kernels/base/input_file.hpp"

namespace mp::trace {
namespace {

constexpr std::array<std::string_view, 5> kModes{"off", "watch", "local", "step", "trajectory"};
constexpr std::size_t kMaxOptionsFile = 1u << 20;

std::string escaped(std::string_view value) {
    std::string out;
    for (const char c : value) {
        if (c == '\\' || c == ':') out += '\\';
        if (c == '\n') {
            out += "\\n";
        } else {
            out += c;
        }
    }
    return out;
}

// The items of a value, unescaped; a value that is not a list has one item. Nothing when an escape is incomplete.
std::optional<std::vector<std::string>> items_of(std::string_view value) {
    std::vector<std::string> items(1);
    for (std::size_t i = 0; i < value.size(); ++i) {
        if (value[i] == ':') {
            items.emplace_back();
        } else if (value[i] != '\\') {
            items.back() += value[i];
        } else if (++i == value.size()) {
            return std::nullopt;
        } else {
            items.back() += value[i] == 'n' ? '\n' : value[i];
        }
    }
    return items;
}

template <typename T>
bool parse(std::string_view text, T& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc() && end == text.data() + text.size();
}

bool parse(std::string_view text, bool& into) {
    if (text != "0" && text != "1") return false;
    into = text == "1";
    return true;
}

bool parse(std::string_view text, Mode& into) {
    for (std::size_t i = 0; i < kModes.size(); ++i) {
        if (kModes[i] != text) continue;
        into = static_cast<Mode>(i);
        return true;
    }
    return false;
}

bool parse(const std::vector<std::string>& items, StepRange& into) {
    return items.size() == 3 && parse(items[0], into.first) && parse(items[1], into.last) &&
           parse(items[2], into.every) && into.first >= 0 && into.every >= 1;
}

bool parse(const std::string& item, RankRange& into) {
    const std::size_t dash = item.find('-');
    const std::string_view text(item);
    if (!parse(text.substr(0, dash), into.first)) return false;
    into.last = into.first;
    if (dash != std::string::npos && !parse(text.substr(dash + 1), into.last)) return false;
    return into.first >= 0 && into.last >= into.first;
}

// False: the value is malformed. An unknown key is ignored.
bool assign(Options& o, std::string_view key, const std::vector<std::string>& items) {
    const bool one = items.size() == 1;
    const std::string& value = items.front();
    auto take = [&](std::string& into) { return one && (into = value, true); };
    if (key == "run_dir") return take(o.run_dir);
    if (key == "save_twin") return take(o.save_twin);
    if (key == "save_real") return take(o.save_real);
    if (key == "tool") return take(o.tool);
    if (key == "step_range") return take(o.step_range);
    if (key == "mode") return one && parse(value, o.mode);
    if (key == "steps") return parse(items, o.steps);
    if (key == "budget") return one && parse(value, o.budget);
    if (key == "overhead") return one && parse(value, o.overhead) && o.overhead >= 0 && o.overhead <= 1;
    if (key == "eager") return one && parse(value, o.eager);
    if (key == "device_times") return one && parse(value, o.device_times);
    if (key == "free_ints") return one && parse(value, o.free_ints);
    if (key == "twin_noise") return one && parse(value, o.twin_noise);
    if (key == "quiet") return one && parse(value, o.quiet);
    if (key == "adapters") {
        o.adapters.clear();
        for (const std::string& item : items) {
            if (!item.empty()) o.adapters.push_back(item);
        }
    } else if (key == "ranks") {
        o.ranks.clear();
        for (const std::string& item : items) {
            if (item.empty()) continue;
            if (!parse(item, o.ranks.emplace_back())) return false;
        }
    }
    return true;
}

}  // namespace

std::string to_text(const Options& o) {
    std::string out;
    auto line = [&out](std::string_view key, const std::string& value) {
        out.append(key).append("=").append(value).append("\n");
    };
    line("run_dir", escaped(o.run_dir));
    line("mode", std::string(kModes[static_cast<std::size_t>(o.mode)]));
    line("steps", std::to_string(o.steps.first) + ":" + std::to_string(o.steps.last) + ":" +
                      std::to_string(o.steps.every));
    std::string list;
    for (const RankRange& r : o.ranks) {
        if (!list.empty()) list += ':';
        list += std::to_string(r.first) + "-" + std::to_string(r.last);
    }
    line("ranks", list);
    line("budget", std::to_string(o.budget));
    line("overhead", std::to_string(o.overhead));
    list.clear();
    for (const std::string& directory : o.adapters) {
        if (!list.empty()) list += ':';
        list += escaped(directory);
    }
    line("adapters", list);
    line("save_twin", escaped(o.save_twin));
    line("save_real", escaped(o.save_real));
    line("eager", o.eager ? "1" : "0");
    line("device_times", o.device_times ? "1" : "0");
    line("free_ints", o.free_ints ? "1" : "0");
    line("twin_noise", o.twin_noise ? "1" : "0");
    line("step_range", escaped(o.step_range));
    line("quiet", o.quiet ? "1" : "0");
    line("tool", escaped(o.tool));
    return out;
}

Result<Options> options_from_text(std::string_view text) {
    Options options;
    for (int number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.empty()) continue;
        const std::size_t equals = line.find('=');
        const std::string where = "options line " + std::to_string(number) + ": ";
        if (equals == std::string_view::npos)
            return Error{where + "no '=' in '" + std::string(line) + "'", {}};
        const auto items = items_of(line.substr(equals + 1));
        if (!items || !assign(options, line.substr(0, equals), *items))
            return Error{where + "malformed value in '" + std::string(line) + "'", {}};
    }
    return options;
}

Result<Options> read_options(const std::string& path) {
    auto failed = [&path](const char* why) { return Error{path + ": " + why, {}}; };
    const InputFile file(path);
    if (!file.is_open()) return failed(std::strerror(errno));
    struct ::stat info{};
    std::string text;
    const bool regular = ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
    if (regular && static_cast<std::uint64_t>(info.st_size) <= kMaxOptionsFile)
        text.resize(static_cast<std::size_t>(info.st_size));
    const std::size_t done = read_at(file.get(), 0, text.data(), text.size());
    if (!regular) return failed("not a regular file");
    if (done == 0 || done < text.size()) return failed("empty, too large or unreadable");
    auto options = options_from_text(text);
    if (!options) return failed(options.error().message.c_str());
    return options;
}

}  // namespace mp::trace
