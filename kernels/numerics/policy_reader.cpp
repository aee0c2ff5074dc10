#include "kernels/numerics/policy_reader.hpp"

#include <algorithm>
#include <fstream>
#include <optional>

#include "kernels/base/text.hpp"

namespace mp {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;  // real lists have a few kilobytes
constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxProblems = 50;
constexpr std::string_view kBlanks = " \t\r\v\f";

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// A name in the syntax of C++ or Python: "softmax", "torch.nn.functional.relu", "at::exp".
bool is_name(std::string_view text) {
    const auto part = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    if (text.empty() || text.size() > kMaxName || !part(text.front())) return false;
    if (text.front() >= '0' && text.front() <= '9') return false;
    return std::ranges::all_of(text, [&](char c) { return part(c) || c == '.' || c == ':'; });
}

std::optional<Category> category_named(std::string_view name) {
    for (int i = 1; i <= static_cast<int>(Category::banned); ++i)
        if (name_of(static_cast<Category>(i)) == name) return static_cast<Category>(i);
    return std::nullopt;
}

std::string place(const SourceSpan& at) { return std::string(at.file.str()) + ":" + std::to_string(at.line); }

std::string stem(std::string_view file) {
    const std::size_t slash = file.find_last_of("/\\");
    if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
    if (const std::size_t dot = file.rfind('.'); dot != std::string_view::npos && dot != 0)
        file = file.substr(0, dot);
    return std::string(file);
}

Result<std::string> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in)
        return Error{"cannot open the op list '" + path + "'",
                     "the path is taken relative to the current directory; the file has one op name "
                     "per line"};
    std::string text(kMaxBytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad() || (in.fail() && !in.eof()))
        return Error{"cannot read the op list '" + path + "'", "is it a directory?"};
    if (in.gcount() > static_cast<std::streamsize>(kMaxBytes))
        return Error{"the op list '" + path + "' is larger than 16 MiB", "is it the right file?"};
    text.resize(static_cast<std::size_t>(in.gcount()));
    return text;
}

}  // namespace

std::string printable(std::string_view text) {
    constexpr std::size_t kShown = 40;
    const std::string_view start = utf8_prefix(text, kShown);
    return escape_controls(start) + (start.size() < text.size() ? "..." : "");
}

// A line without comment and blanks, with its place.
struct PolicyReader::Line {
    std::string_view text;
    SourceSpan at;
};

namespace {

// Calls f(text, span) for each line that is not empty without its comment; stops when f returns false.
template <typename F>
void for_each_line(std::string_view text, std::string_view file, F f) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the byte order mark of Windows editors
    const Symbol symbol(file);
    for (std::uint32_t number = 1; !text.empty(); ++number) {
        const std::string_view raw = text.substr(0, text.find('\n'));
        text.remove_prefix(raw.size() < text.size() ? raw.size() + 1 : text.size());
        const std::string_view kept = trimmed(raw.substr(0, raw.find('#')));
        if (kept.empty()) continue;
        const auto column = static_cast<std::uint32_t>(kept.data() - raw.data() + 1);
        const auto end = static_cast<std::uint32_t>(column + kept.size());
        if (!f(kept, SourceSpan{symbol, number, column, number, end})) return;
    }
}

}  // namespace

PolicyReader::PolicyReader(std::string name) { policy_.name_ = std::move(name); }

void PolicyReader::problem(const SourceSpan& at, std::string message) {
    if (policy_.problems_.size() < kMaxProblems) {
        policy_.problems_.push_back({at, std::move(message)});
        return;
    }
    if (unreported_++ == 0) first_unreported_ = at;
}

void PolicyReader::add(const Line& line, Category category) {
    if (!is_name(line.text))
        return problem(line.at, "'" + printable(line.text) + "' is not an op name: one name per line");
    Op op = op_from_name(line.text);
    if (!op.known()) {
        problem(line.at, "no op is known as '" + printable(line.text) + "'; the entry is kept");
        op = Op(line.text);
    }
    const Policy::Entry entry{op, category, line.at};
    const auto [it, added] = entries_.try_emplace(op.name(), entry);
    if (added || it->second.category == category) return;
    // The order of the categories is their priority: lower, fp32, promote, as in Habana's autocast.
    const bool replaces = category < it->second.category;
    const Policy::Entry other = replaces ? it->second : entry;
    if (replaces) it->second = entry;
    problem(line.at, "'" + std::string(op.name()) +
                         "' is on two lists: " + std::string(name_of(it->second.category)) + " (" +
                         place(it->second.at) + "), which counts, and " +
                         std::string(name_of(other.category)) + " (" + place(other.at) + ")");
}

void PolicyReader::read_names(std::string_view text, std::string_view file, Category category) {
    for_each_line(text, file, [&](std::string_view name, const SourceSpan& at) {
        add({name, at}, category);
        return true;
    });
}

// "dtype = bf16" or "family = autocast".
Status PolicyReader::set(const Line& line) {
    const std::size_t equals = line.text.find('=');
    if (equals == std::string_view::npos)
        return Error{place(line.at) + ": '" + printable(line.text) + "' stands before any section",
                     "begin with a section such as [lower] or [fp32]"};
    const std::string_view key = trimmed(line.text.substr(0, equals));
    const std::string_view value = trimmed(line.text.substr(equals + 1));
    const std::string where = place(line.at) + ": ";
    if (key == "dtype") {
        const auto dtype = dtype_from_name(value);
        if (!dtype || !is_low_precision(*dtype) || *dtype == DType::lowp)
            return Error{where + "'" + printable(value) + "' is not a low-precision dtype", "bf16 or fp16"};
        policy_.low_ = *dtype;
        return Done{};
    }
    if (key == "device") {
        policy_.device_ = printable(value);
        return Done{};
    }
    if (key != "family")
        return Error{where + "unknown setting '" + printable(key) + "'", "dtype, family or device"};
    if (value == "hmp")
        policy_.family_ = Policy::Family::hmp;
    else if (value == "autocast")
        policy_.family_ = Policy::Family::autocast;
    else if (value == "apex")
        policy_.family_ = Policy::Family::apex;
    else
        return Error{where + "unknown family '" + printable(value) + "'", "autocast, apex or hmp"};
    return Done{};
}

Status PolicyReader::read_sections(std::string_view text, std::string_view file) {
    std::optional<Category> section;
    Status status = Done{};
    for_each_line(text, file, [&](std::string_view kept, const SourceSpan& at) {
        const Line line{kept, at};
        if (kept.front() == '[' && kept.back() == ']') {
            section = category_named(trimmed(kept.substr(1, kept.size() - 2)));
            if (!section)
                status = Error{place(at) + ": unknown section '" + printable(kept) + "'",
                               "the sections are [lower], [fp32], [fp32_set_opt_dtype], "
                               "[fp32_append_dtype], [promote] and [banned]"};
        } else if (section) {
            add(line, *section);
        } else {
            status = set(line);
        }
        return status.has_value();
    });
    return status;
}

Policy PolicyReader::finish() && {
    if (unreported_ > 0)
        policy_.problems_.push_back(
            {first_unreported_, "and " + std::to_string(unreported_) + " more problems from here on"});
    policy_.entries_.reserve(entries_.size());
    for (auto& [name, entry] : entries_) policy_.entries_.push_back(entry);
    return std::move(policy_);
}

Result<Policy> Policy::parse(std::string_view text, std::string_view file_name) {
    PolicyReader reader(stem(file_name));
    if (Status status = reader.read_sections(text, file_name); !status) return status.error();
    return std::move(reader).finish();
}

Result<Policy> Policy::from_file(std::string_view path) {
    const Result<std::string> text = read_file(std::string(path));
    if (!text) return text.error();
    return parse(*text, path);
}

Result<Policy> Policy::from_hmp_files(std::string_view bf16_path, std::string_view fp32_path) {
    PolicyReader reader("hmp-files");
    for (const auto& [path, category] :
         {std::pair(bf16_path, Category::lower), std::pair(fp32_path, Category::fp32)}) {
        if (path.empty()) continue;
        Result<std::string> text = read_file(std::string(path));
        if (!text) return text.error();
        reader.read_names(*text, path, category);
    }
    Policy policy = std::move(reader).finish();
    const Result<Policy> defaults = built_in("hmp");
    if (!defaults) return defaults.error();
    for (const Entry& entry : defaults->entries_)
        if (entry.category == Category::promote && !policy.find(entry.op)) policy.entries_.push_back(entry);
    std::ranges::sort(policy.entries_, {}, [](const Entry& e) { return e.op.name(); });
    return policy;
}

}  // namespace mp
