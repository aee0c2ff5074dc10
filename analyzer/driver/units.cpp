#include "analyzer/driver/units.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "analyzer/cache/directory.hpp"
#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/given_options.hpp"
#include "analyzer/driver/named_devices.hpp"
#include "analyzer/driver/python_reach.hpp"
#include "analyzer/suppress/suppress.hpp"

namespace mp::lint {
namespace {

// Larger files are generated.
constexpr std::uint64_t kLargestFile = std::uint64_t{16} << 20;

std::string invocation_key(const Invocation& in, const ExtractOptions& options, const std::string& version) {
    const std::string settings =
        std::string(options.exact ? "exact" : "quick") + " facts " + std::to_string(kFactsVersion);
    std::vector<std::string_view> parts{version, settings,     options.project_root,
                                        in.file, in.directory, in.headers};
    auto add = [&parts](const std::vector<std::string>& list) {
        parts.push_back("-");  // separates the lists
        parts.insert(parts.end(), list.begin(), list.end());
    };
    add(in.host);
    add(in.device);
    add(in.flags);
    add(in.architectures);
    for (const Invocation& other : in.with_our_headers) {
        add(other.host);
        add(other.device);
    }
    return make_key(parts).hex();
}

// Directories in which the unit's includes are looked up.
std::vector<std::string> include_roots(const Invocation& in) {
    static constexpr std::string_view kFlags[] = {"-I", "-isystem", "-iquote", "-idirafter", "-cxx-isystem"};
    std::set<std::string> roots;
    std::vector<const std::vector<std::string>*> all{&in.host, &in.device};
    for (const Invocation& other : in.with_our_headers) all.insert(all.end(), {&other.host, &other.device});
    for (const auto* arguments : all) {
        for (std::size_t i = 0; i < arguments->size(); ++i) {
            const std::string_view argument = (*arguments)[i];
            for (const std::string_view flag : kFlags) {
                if (!argument.starts_with(flag)) continue;
                if (argument.size() > flag.size()) {
                    roots.insert(absolute_path(argument.substr(flag.size()), in.directory));
                } else if (i + 1 < arguments->size()) {
                    roots.insert(absolute_path((*arguments)[i + 1], in.directory));
                }
            }
        }
    }
    return {roots.begin(), roots.end()};
}

// Gives every file one name, whatever the working directory of the command is.
void make_paths_absolute(Unit& unit, const std::string& directory) {
    for (Dependency& d : unit.dependencies) d.path = Symbol(absolute_path(d.path.str(), directory));
}

// A carriage return alone ends a line too; what reads Python looks for line feeds.
void end_lines_with_line_feeds(std::string& text) {
    for (std::size_t at = text.find('\r'); at != text.npos; at = text.find('\r', at + 1))
        if (at + 1 == text.size() || text[at + 1] != '\n') text[at] = '\n';
}

// What the text says without being parsed. Its line ends become line feeds.
StoredHead scan_text(const PlannedUnit& unit, const UnitPlanner& planner, std::string& text) {
    StoredHead head{.key = unit.key, .has_facts = false};
    const PythonFile& file = unit.python;
    head.inputs.files.push_back(
        {.path = Symbol(file.path), .id = trusted(file.id), .hash = hash_bytes(text)});
    if (file.path.ends_with(".py")) end_lines_with_line_feeds(text);
    const FrontEnds& front_ends = planner.front_ends;
    head.is_seed = planner.seeds.any_in_code(text);
    head.has_words = head.is_seed || !front_ends.is_relevant || front_ends.is_relevant(file.path, text);
    head.is_relevant = head.has_words || may_all_be_relevant(planner.plan, planner.options);
    head.imports = imported_names(text);
    head.given = given_options(text, TextKind::code);
    if (file.path.ends_with(".ipynb"))
        for (const std::uint64_t mark : named_devices(text)) head.given.push_back(mark);
    head.may_suppress = mentions_suppression(text);
    return head;
}

Unit unread_unit(const PlannedUnit& unit) {
    const bool large = unit.python.id.size > kLargestFile;
    return empty_unit(unit, UnitState::failed, large ? "larger than 16 MiB" : "cannot be read");
}

bool is_unchanged(const PythonFile& file) {
    struct ::stat info{};
    return ::stat(file.path.c_str(), &info) == 0 && id_of(info) == file.id;
}

std::string key_of(std::string_view path, std::string_view variant) {
    return std::string(path).append(1, '\0').append(variant);
}

}  // namespace

bool may_all_be_relevant(const Plan& plan, const LintOptions& options) {
    return options.reads_all() || plan.has_native_code();
}

UnitPlanner::UnitPlanner(const Plan& plan, const LintOptions& options, const FrontEnds& front_ends)
    : plan(plan),
      options(options),
      front_ends(front_ends),
      seeds(front_ends.rules),
      extract_(extract_options(options, plan)) {}

PlannedUnit UnitPlanner::command(const CompileCommand& command) {
    PlannedUnit out{.key = {}, .command = front_ends.translate(command, extract_)};
    out.command->file = absolute_path(out.command->file, command.directory);
    if (version_.empty()) version_ = front_ends.version();
    out.key = key_of(out.command->file, invocation_key(*out.command, extract_, version_));
    return out;
}

PlannedUnit UnitPlanner::python(PythonFile file) const {
    return {.key = key_of(file.path, file.module), .command = {}, .python = std::move(file)};
}

std::vector<PlannedUnit> UnitPlanner::commands() {
    std::vector<PlannedUnit> out;
    std::unordered_set<std::string> keys;
    for (const CompileCommand& c : plan.commands) {
        PlannedUnit unit = command(c);
        if (keys.insert(unit.key).second) out.push_back(std::move(unit));
    }
    return out;
}

void UnitExtractor::extract(SegmentWriter& out, const PlannedUnit& unit) {
    unit.command ? extract_command(out, unit) : extract_python(out, unit);
}

void UnitExtractor::extract_command(SegmentWriter& out, const PlannedUnit& planned) {
    Unit unit = front_ends_.extract(*planned.command, options_);
    make_paths_absolute(unit, planned.command->directory);
    StoredHead head{.key = planned.key};
    if (std::optional<Inputs> inputs = inputs_of(unit, include_roots(*planned.command), files_))
        head.inputs = std::move(*inputs);
    write_record(out, head, unit);
}

void UnitExtractor::extract_python(SegmentWriter& out, const PlannedUnit& planned) {
    const PythonFile& file = planned.python;
    std::string text;
    const bool readable = read_file(file.path, text, kLargestFile);
    StoredHead head = scan_text(planned, planner_, text);
    head.has_facts = true;
    // Written to while it was read: the identity in the record must not match the file.
    if (!is_unchanged(file)) head.inputs.files.front().id = {};
    Unit unit;
    if (!readable)
        unit = unread_unit(planned);
    else if (!head.is_relevant && !is_configuration(file.path))
        unit = empty_unit(planned, UnitState::ok, "");
    else
        unit = front_ends_.extract_python({.path = file.path, .module = file.module, .text = text});
    if (front_ends_.configuration_files && !unit.functions.empty())
        head.mentions = front_ends_.configuration_files(unit);
    head.outline = outline_of(unit, file.module, planner_.seeds);
    write_record(out, head, unit);
}

Scan scan_file(const PlannedUnit& unit, const UnitPlanner& planner) {
    std::string text;
    Scan out;
    out.is_readable = read_file(unit.python.path, text, kLargestFile);
    out.head = scan_text(unit, planner, text);
    if (!out.is_readable) out.head.is_relevant = out.head.is_seed = false;
    return out;
}

Unit empty_unit(const PlannedUnit& planned, UnitState state, std::string_view message) {
    Unit unit;
    unit.path = Symbol(planned.path());
    unit.language = planned.language();
    unit.state = state;
    if (!message.empty()) unit.coverage.messages.emplace_back(message);
    return unit;
}

UnitResult result_of(const PlannedUnit& planned, const Unit& unit) {
    UnitResult r;
    r.path = planned.path();
    r.state = unit.state;
    r.headers = unit.headers.str();
    for (const Symbol pass : unit.passes) r.passes.emplace_back(pass.str());
    r.coverage = unit.coverage;
    if (planned.command) r.warnings = planned.command->warnings;
    if (unit.state == UnitState::ok) return r;
    if (!unit.coverage.messages.empty())
        r.message = unit.coverage.messages.front().str();
    else if (!unit.coverage.missing_headers.empty())
        r.message = "missing header " + std::string(unit.coverage.missing_headers.front().str());
    return r;
}

std::string cache_directory(const LintOptions& options) {
    return options.cache_directory.empty() ? default_cache_directory() : options.cache_directory;
}

std::string own_binary() {
    struct ::stat info{};
    if (::stat("/proc/self/exe", &info) != 0) return {};
    return std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) + "." +
           std::to_string(info.st_mtim.tv_nsec);
}

ExtractOptions extract_options(const LintOptions& options, const Plan& plan) {
    return {.cuda = options.cuda.value_or(CudaHeaders::automatic),
            .torch = options.torch_headers.value_or(TorchHeaders::automatic),
            .cuda_path = options.cuda_path,
            .torch_path = options.torch_path,
            .exact = options.exact,
            .project_root = plan.project_root,
            .extra_args = options.extra_args};
}

}  // namespace mp::lint
