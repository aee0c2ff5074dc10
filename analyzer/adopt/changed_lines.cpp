#include "analyzer/adopt/changed_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "kernels/base/child.hpp"
#include "kernels/base/paths.hpp"

namespace mp::lint {
namespace {

std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

// The file name in a header of git's diff: b/src/a.py; "b/a\"b\303\251.py" with quotes for names with
// special characters; a name with blanks has a tab after it.
std::string unquoted(std::string_view name) {
    if (name.ends_with('\t')) name.remove_suffix(1);
    if (!name.starts_with('"')) return std::string(name);
    constexpr std::string_view kLetters = "abtnvfr", kMeant = "\a\b\t\n\v\f\r";
    std::string out;
    for (std::size_t i = 1; i + 1 < name.size(); ++i) {
        if (name[i] != '\\') {
            out += name[i];
            continue;
        }
        const char c = name[++i];
        const std::size_t letter = kLetters.find(c);
        if (c >= '0' && c <= '3' && i + 2 < name.size()) {
            out += static_cast<char>((c - '0') * 64 + (name[i + 1] - '0') * 8 + name[i + 2] - '0');
            i += 2;
        } else {
            out += letter == std::string_view::npos ? c : kMeant[letter];
        }
    }
    return out;
}

// "-12,3": start and count; git omits a count of one.
std::pair<std::size_t, std::size_t> range_of(std::string_view text) {
    std::size_t start = 0, count = 1;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, start);
    if (first.ptr != end && *first.ptr == ',') std::from_chars(first.ptr + 1, end, count);
    return {start, count};
}

// git's output, or an Error with its error message.
Result<std::string> git(std::vector<std::string> arguments, const std::string& directory) {
    // Hooks, helpers and drivers in the repository's configuration must not run.
    std::vector<std::string> words{"git", "-c", "core.quotepath=off", "-c", "core.fsmonitor=false"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Result<ChildEnd> child = run_tool(words, directory);
    if (!child) return Error{"--diff-base: " + child.error().message, "it needs git"};
    if (child->good()) return child->out;
    std::string_view said = child->err;
    return Error{"--diff-base: git: " + std::string(take_line(said)), ""};
}

std::string without_line_end(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text;
}

}  // namespace

Result<ChangedLines> ChangedLines::since(const std::string& revision, const std::string& directory) {
    const Result<std::string> top = git({"rev-parse", "--show-toplevel"}, directory);
    if (!top) return top.error();
    const std::string root = without_line_end(*top);
    const Result<std::string> commit =
        git({"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"}, root);
    if (!commit)
        return Error{"--diff-base: '" + revision + "' is not a commit of " + root,
                     "a branch, a tag or a hash; in CI fetch it first"};
    const Result<std::string> diff =
        git({"diff", "-U0", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/",
             "--dst-prefix=b/", "--ignore-submodules", without_line_end(*commit), "--"},
            root);
    if (!diff) return diff.error();
    const Result<std::string> others = git({"ls-files", "--others", "--exclude-standard", "-z"}, root);
    if (!others) return others.error();
    std::vector<std::string> added;
    for (std::size_t at = 0; at < others->size();) {
        const std::size_t end = std::min(others->find('\0', at), others->size());
        added.push_back(others->substr(at, end - at));
        at = end + 1;
    }
    return parse(*diff, added, real_path(root));
}

ChangedLines ChangedLines::parse(std::string_view diff, const std::vector<std::string>& added,
                                 const std::string& root) {
    ChangedLines out;
    for (const std::string& name : added)
        out.files_[root + "/" + name] = {{1, std::numeric_limits<std::size_t>::max()}};
    std::vector<Range>* file = nullptr;
    while (!diff.empty()) {
        std::string_view line = take_line(diff);
        if (line.starts_with("diff ")) {
            file = nullptr;
        } else if (line.starts_with("+++ ")) {
            const std::string name = unquoted(line.substr(4));
            if (name.starts_with("b/")) file = &out.files_[root + name.substr(1)];
        } else if (line.starts_with("@@ -")) {
            line.remove_prefix(4);
            const std::size_t removed = range_of(line).second;
            const std::size_t plus = std::min(line.find(" +") + 2, line.size());
            const auto [start, count] = range_of(line.substr(plus));
            if (file && count) file->push_back({start, start + count - 1});
            // The lines themselves may contain any text, so skip them by count.
            for (std::size_t left = removed + count; left > 0 && !diff.empty();) {
                if (!take_line(diff).starts_with('\\')) --left;
            }
        }
    }
    return out;
}

bool ChangedLines::contains(std::string_view path, std::size_t first, std::size_t last) const {
    const auto file = files_.find(path);
    return file != files_.end() && std::ranges::any_of(file->second, [first, last](const Range& r) {
               return r.first <= std::max(first, last) && first <= r.last;
           });
}

void ChangedLines::filter(Report& report) const {
    std::map<std::string_view, std::string> real;
    const std::size_t before = report.findings.size();
    std::erase_if(report.findings, [&](const Finding& f) {
        const auto [at, added] = real.try_emplace(f.span.file.str());
        if (added) at->second = real_path(std::string(f.span.file.str()));
        return !contains(at->second, f.span.line, f.span.end_line);
    });
    report.outside_diff = before - report.findings.size();
}

}  // namespace mp::lint
