#include "analyzer/fix/edits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "analyzer/report/display.hpp"

namespace mp::lint {
namespace {

// An edit in bytes of the file.
struct Change {
    std::string_view path;
    std::size_t from = 0;
    std::size_t to = 0;  // from: an insertion
    std::string text;

    friend bool operator==(const Change&, const Change&) = default;
};

// Text put into a file that ends its lines with CR LF does so too.
std::string with_line_ends_of(std::string_view file, const std::string& text) {
    const std::size_t first = file.find('\n');
    if (first == std::string_view::npos || first == 0 || file[first - 1] != '\r') return text;
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) out += '\r';
        out += text[i];
    }
    return out;
}

// Adjacent edits do not overlap. Two different insertions at one place do, because their order is unknown.
bool overlap(const Change& a, const Change& b) {
    if (a.from == a.to && b.from == b.to) return a.from == b.from;
    return std::max(a.from, b.from) < std::min(a.to, b.to) ||
           (a.from == a.to && b.from < a.from && a.from < b.to) ||
           (b.from == b.to && a.from < b.from && b.from < a.to);
}

class Planner {
public:
    Planner(const Report& report, bool with_unsafe) : report_(report), with_unsafe_(with_unsafe) {}

    FixPlan run() {
        std::vector<std::vector<Change>> wanted;
        for (const Finding& f : report_.findings) {
            if (f.edits.empty()) continue;
            std::optional<std::vector<Change>> changes = changes_of(f);
            if (!changes) {
                ++plan_.not_ours;
            } else if (!f.safe_edits && !with_unsafe_) {
                ++plan_.need_unsafe;
            } else {
                wanted.push_back(std::move(*changes));
            }
        }
        std::sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) {
            return std::tuple(a[0].path, a[0].from, a[0].to) < std::tuple(b[0].path, b[0].from, b[0].to);
        });
        for (const std::vector<Change>& changes : wanted) take(changes);
        write_texts();
        return std::move(plan_);
    }

private:
    bool may_edit(std::string_view path) const {
        if (path.ends_with(".ipynb") || !report_.sources.has(path)) return false;
        if (relative_path(path, report_.project_root) != path) return true;
        return std::ranges::find(report_.units, path, &UnitResult::path) != report_.units.end();
    }

    // In order of position; nothing when one of them cannot be made.
    std::optional<std::vector<Change>> changes_of(const Finding& f) const {
        std::vector<Change> out;
        for (const Edit& e : f.edits) {
            const std::string_view path = e.at.file.str();
            // One file: the change of two could be interrupted between them.
            if (!may_edit(path) || e.at.file != f.edits[0].at.file) return std::nullopt;
            const auto from = report_.sources.offset(path, e.at.line, e.at.column);
            const auto to = report_.sources.offset(path, e.at.end_line, e.at.end_column);
            if (!from || !to || *to < *from) return std::nullopt;
            const std::string_view whole = report_.sources.text(path);
            out.push_back({path, *from, *to, with_line_ends_of(whole, e.text)});
        }
        std::sort(out.begin(), out.end(), [](const Change& a, const Change& b) {
            return std::tuple(a.from, a.to) < std::tuple(b.from, b.to);
        });
        for (std::size_t i = 1; i < out.size(); ++i) {
            if (overlap(out[i], out[i - 1])) return std::nullopt;
        }
        return out;
    }

    void take(const std::vector<Change>& changes) {
        for (const Change& change : changes) {
            for (const Change& other : accepted_[change.path]) {
                if (!(change == other) && overlap(change, other)) {
                    ++plan_.conflicting;
                    return;
                }
            }
        }
        ++plan_.fixed;
        ++findings_[changes[0].path];
        for (const Change& change : changes) {
            std::vector<Change>& here = accepted_[change.path];
            if (std::find(here.begin(), here.end(), change) == here.end()) here.push_back(change);
        }
    }

    void write_texts() {
        for (auto& [path, changes] : accepted_) {
            if (changes.empty()) continue;
            // At one place an insertion comes before the replacement that begins there.
            std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
                return std::tuple(a.from, a.to) < std::tuple(b.from, b.to);
            });
            const std::string_view before = report_.sources.text(path);
            FixedFile file{.path = std::string(path),
                           .before = std::string(before),
                           .after = {},
                           .findings = findings_[path]};
            std::size_t at = 0;
            for (const Change& change : changes) {
                file.after += before.substr(at, change.from - at);
                file.after += change.text;
                at = change.to;
            }
            file.after += before.substr(at);
            plan_.files.push_back(std::move(file));
        }
    }

    const Report& report_;
    bool with_unsafe_;
    FixPlan plan_;
    std::map<std::string_view, std::vector<Change>> accepted_;
    std::map<std::string_view, std::size_t> findings_;
};

}  // namespace

FixPlan plan_fixes(const Report& report, bool with_unsafe) { return Planner(report, with_unsafe).run(); }

}  // namespace mp::lint
