#include "analyzer/driver/python_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analyzer/cache/cache.hpp"
#include "analyzer/driver/discover.hpp"
#include "analyzer/suppress/suppress.hpp"

namespace mp::lint {
namespace {

constexpr int kBatchesPerWorker = 1000;
constexpr std::uint64_t kLargeTree = std::uint64_t{8} << 20;
// Nobody wrote a larger one by hand.
constexpr std::uint64_t kLargestFile = std::uint64_t{16} << 20;

std::vector<std::string> mentions_of(const Unit& unit, const FrontEnds& parts) {
    if (!parts.configuration_files || unit.functions.empty()) return {};
    return parts.configuration_files(unit);
}

Scan scan_text(const PythonFile& file, const PythonReader& by, std::string_view text) {
    Scan out;
    out.wanted = by.seeds.any_in_code(text);
    out.relevant =
        out.wanted || by.whole_tree || !by.parts.is_relevant || by.parts.is_relevant(file.path, text);
    if (out.relevant) out.imports = imported_names(text);
    out.may_suppress = mentions_suppression(text);
    out.read = {.path = file.path, .id = trusted(file.id), .hash = hash_bytes(text)};
    return out;
}

Unit facts_of_text(const PythonFile& file, const FrontEnds& parts, std::string_view text, bool relevant) {
    if (!is_configuration(file.path) && !relevant) return empty_unit(file.path, UnitState::ok, "");
    return parts.extract_python({.path = file.path, .module = file.module, .text = text});
}

Unit unread_unit(const PythonFile& file) {
    const bool large = file.id.size > kLargestFile;
    return empty_unit(file.path, UnitState::failed, large ? "larger than 16 MiB" : "cannot be read");
}

}  // namespace

Scan scan_file(const PythonFile& file, const PythonReader& by) {
    std::string text;
    const bool readable = read_file(file.path, text, kLargestFile);
    Scan out = scan_text(file, by, text);
    out.unreadable = !readable;
    if (!readable) out.relevant = out.wanted = false;
    return out;
}

void extract_file(SegmentWriter& out, const PythonFile& file, const PythonReader& by) {
    std::string text;
    const bool readable = read_file(file.path, text, kLargestFile);
    Scan scan = scan_text(file, by, text);
    const Unit unit = readable ? facts_of_text(file, by.parts, text, scan.relevant) : unread_unit(file);
    PackedFile head{.path = file.path, .module = file.module, .id = {}, .hash = scan.read.hash};
    struct ::stat info{};
    // Written to while it was read: what is kept must not pass for the file.
    if (::stat(file.path.c_str(), &info) == 0 && id_of(info) == file.id) head.id = scan.read.id;
    const std::vector<std::string> mentions = mentions_of(unit, by.parts);
    head.mentions.assign(mentions.begin(), mentions.end());
    head.may_suppress = scan.may_suppress;
    head.relevant = scan.relevant;
    head.wanted = scan.wanted;
    head.imports = std::move(scan.imports);
    write_record(out, head, unit);
}

bool is_large_tree(const std::vector<PythonFile>& files) {
    std::uint64_t bytes = 0;
    for (const PythonFile& f : files) bytes += f.id.size;
    return bytes > kLargeTree;
}

Unit empty_unit(const std::string& path, UnitState state, std::string_view message) {
    Unit unit;
    unit.path = Symbol(path);
    unit.language = Language::python;
    unit.state = state;
    if (!message.empty()) unit.coverage.messages.emplace_back(message);
    return unit;
}

UnitResult result_of(const PythonFile& file, const Unit& unit) {
    UnitResult r;
    r.path = file.path;
    r.state = unit.state;
    r.coverage = unit.coverage;
    if (unit.state != UnitState::ok && !unit.coverage.messages.empty())
        r.message = unit.coverage.messages.front().str();
    return r;
}

FileId trusted(FileId id) {
    id.mtime_ns = trusted_mtime(id.mtime_ns);
    return id;
}

std::unique_ptr<FactsPack> pack_of(const Plan& plan, const LintOptions& options) {
    const std::string directory = cache_directory(options);
    const std::string binary = own_binary();  // Python facts are made by nothing else
    const std::array<std::string_view, 3> parts{
        "python", binary, plan.project_root.empty() ? options.working_directory : plan.project_root};
    return std::make_unique<FactsPack>(directory, directory + "/" + make_key(parts).hex() + ".pack");
}

PoolOptions pool_for(const LintOptions& options, std::size_t batches) {
    PoolOptions pool;
    pool.jobs = std::min(options.jobs.value_or(available_jobs()), static_cast<int>(batches));
    pool.timeout = options.timeout.value_or(pool.timeout);
    pool.jobs_per_worker = kBatchesPerWorker;
    return pool;
}

}  // namespace mp::lint
