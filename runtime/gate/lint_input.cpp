// mp-lint's JSON (version 1) and SARIF 2.1.0.

#include <algorithm>
#include <filesystem>
#include <limits>

#include <nlohmann/json.hpp>

#include "kernels/base/files.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestFile = 256 << 20;
constexpr int kDeepest = 64;  // mp-lint's own files are 12 deep

Error wrong(const std::string& path, const std::string& what) {
    return Error{shown(path) + ": " + what, "mp-lint --output json or --output sarif writes such a file"};
}

// Destroying a deeply nested value recurses, so depth is limited while reading.
Result<Json> parsed(const std::string& path, const std::string& text) {
    bool deep = false;
    const Json::parser_callback_t limit = [&deep](int depth, Json::parse_event_t, Json&) {
        deep = deep || depth > kDeepest;
        return depth <= kDeepest;
    };
    Json out = Json::parse(text, limit, false);
    if (deep) return wrong(path, "nested deeper than any file of mp-lint");
    if (out.is_discarded() || !out.is_object()) return wrong(path, "not JSON, or cut off");
    return out;
}

const Json& member(const Json& object, const char* key) {
    static const Json kNothing;
    if (!object.is_object()) return kNothing;
    const auto it = object.find(key);
    return it == object.end() ? kNothing : *it;
}

std::string text_at(const Json& object, const char* key) {
    const Json& value = member(object, key);
    return value.is_string() ? value.get<std::string>() : std::string();
}

int line_at(const Json& object, const char* key) {
    const Json& value = member(object, key);
    if (!value.is_number_integer()) return 0;
    const auto line = value.get<std::int64_t>();
    return line > 0 && line <= std::numeric_limits<int>::max() ? static_cast<int>(line) : 0;
}

std::vector<LintFinding> from_json(const Json& root) {
    std::vector<LintFinding> out;
    for (const Json& f : member(root, "findings")) {
        if (!f.is_object()) continue;
        out.push_back({.rule = text_at(f, "rule"),
                       .name = text_at(f, "name"),
                       .level = text_at(f, "severity"),
                       .file = text_at(f, "file"),
                       .message = text_at(f, "message"),
                       .line = line_at(f, "line"),
                       .confirmed_by = {}});
    }
    return out;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The path in a uri: without "file://", with %20 decoded.
std::string path_of(std::string_view uri) {
    if (uri.starts_with("file://")) uri.remove_prefix(7);
    std::string out;
    for (std::size_t i = 0; i < uri.size(); ++i) {
        const int high = uri[i] == '%' && i + 2 < uri.size() ? hex_digit(uri[i + 1]) : -1;
        const int low = high >= 0 ? hex_digit(uri[i + 2]) : -1;
        if (low < 0) {
            out += uri[i];
        } else {
            out += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    return out;
}

std::string name_of_rule(const Json& run, const std::string& id) {
    for (const Json& rule : member(member(member(run, "tool"), "driver"), "rules")) {
        if (text_at(rule, "id") == id) return text_at(rule, "name");
    }
    return {};
}

LintFinding from_result(const Json& run, const Json& result) {
    LintFinding f;
    f.rule = text_at(result, "ruleId");
    f.name = name_of_rule(run, f.rule);
    f.level = text_at(result, "level");
    if (f.level.empty()) f.level = "warning";  // SARIF's default
    f.message = text_at(member(result, "message"), "text");
    const Json& places = member(result, "locations");
    if (!places.is_array() || places.empty()) return f;
    const Json& place = member(places[0], "physicalLocation");
    f.file = path_of(text_at(member(place, "artifactLocation"), "uri"));
    f.line = line_at(member(place, "region"), "startLine");
    return f;
}

std::vector<LintFinding> from_sarif(const Json& root) {
    std::vector<LintFinding> out;
    for (const Json& run : member(root, "runs")) {
        for (const Json& result : member(run, "results")) {
            const Json& suppressions = member(result, "suppressions");
            if (result.is_object() && (!suppressions.is_array() || suppressions.empty()))
                out.push_back(from_result(run, result));
        }
    }
    return out;
}

// --- joining ---

struct Spot {
    std::string_view file;
    int line = 0;
};

// "train.py:88"; line 0: none.
Spot spot_of(std::string_view source) {
    const std::size_t colon = source.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == source.size()) return {};
    int line = 0;
    for (const char c : source.substr(colon + 1)) {
        if (c < '0' || c > '9' || line > 100'000'000) return {};
        line = line * 10 + (c - '0');
    }
    return {source.substr(0, colon), line};
}

// Removes "." and "..", also a ".." that leaves the working directory, whose name is not known here.
std::string plain(std::string_view path) {
    std::string out = std::filesystem::path(path).lexically_normal().string();
    while (out.starts_with("../")) out.erase(0, 3);
    return out;
}

// Whether one path ends with all components of the other: "/src/train.py" and "train.py", not "retrain.py".
bool same_file(std::string_view one, std::string_view other) {
    std::string a = plain(one), b = plain(other);
    if (a.size() < b.size()) std::swap(a, b);
    if (b.empty() || !a.ends_with(b)) return false;
    return a.size() == b.size() || b.front() == '/' || a[a.size() - b.size() - 1] == '/';
}

}  // namespace

Result<std::vector<LintFinding>> read_lint(const std::string& path) {
    const Result<std::string> text = read_named_file(path, kLargestFile, "256 MiB");
    if (!text) return Error{shown(path) + ": " + text.error().message, ""};
    const Result<Json> root = parsed(path, *text);
    if (!root) return root.error();
    if (member(*root, "runs").is_array()) return from_sarif(*root);
    if (member(*root, "findings").is_array()) return from_json(*root);
    return wrong(path, "neither a report of mp-lint nor SARIF");
}

void join(std::vector<Finding>& findings, const std::vector<LintFinding>& lint) {
    for (Finding& f : findings) {
        const Spot spot = spot_of(f.source);
        if (spot.line == 0) continue;
        for (const LintFinding& l : lint) {
            if (l.line != spot.line || !same_file(spot.file, l.file)) continue;
            std::string text = l.rule + " " + l.file + ":" + std::to_string(l.line);
            if (std::ranges::find(f.confirmed_by, text) == f.confirmed_by.end())
                f.confirmed_by.push_back(std::move(text));
        }
    }
}

}  // namespace mp::trace
