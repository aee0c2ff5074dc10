#include "analyzer/driver/gather.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "analyzer/analyses/python_code.hpp"
#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/given_options.hpp"
#include "analyzer/driver/named_devices.hpp"
#include "kernels/base/parallel.hpp"
#include "kernels/base/sorted.hpp"

namespace mp::lint {
namespace {

constexpr std::uint64_t kLargeTree = std::uint64_t{8} << 20;
// A fork costs more than parsing a small file. The files of a batch that is lost are extracted twice.
constexpr std::size_t kBatchFiles = 64;
constexpr std::uint64_t kBatchBytes = std::uint64_t{1} << 20;
constexpr int kBatchesPerWorker = 1000;
// Reading the facts of fewer files takes less time than starting a thread.
constexpr std::size_t kFilesWorthAThread = 8;
// Scripts, configurations and documents of a project. Larger ones, and more of them, are data.
constexpr std::uint64_t kLargestText = std::uint64_t{1} << 18;
constexpr std::size_t kMostTexts = 2000;

void append(std::vector<std::uint64_t>& to, const std::vector<std::uint64_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

bool is_large_tree(const std::vector<PythonFile>& files) {
    std::uint64_t bytes = 0;
    for (const PythonFile& f : files) bytes += f.id.size;
    return bytes > kLargeTree;
}

Gatherer::Gatherer(UnitPlanner& planner, FactStore* store)
    : planner_(planner), options_(planner.options), store_(store), extractor_(planner) {}

void Gatherer::run(const std::vector<PlannedUnit>& commands) {
    const std::vector<PythonFile>& python = planner_.plan.python;
    total_ = commands.size() + python.size();
    units_.reserve(total_);
    for (const PlannedUnit& unit : commands) add(unit);
    extract_missing(0);
    add_unreached_headers();
    first_python_ = units_.size();
    total_ = first_python_ + python.size();
    for (const PythonFile& file : python) {
        files_.set(file.path, file.id);
        add(planner_.python(file));
    }
    has_slice_ = !options_.reads_all() && is_large_tree(python);
    has_slice_ ? gather_slice() : extract_missing(first_python_);
    add_configuration_files();
    if (planner_.plan.is_whole) read_project();
}

std::size_t Gatherer::add(PlannedUnit planned) {
    GatheredUnit& unit = units_.emplace_back();
    unit.planned = std::move(planned);
    look_up(unit);
    return units_.size() - 1;
}

void Gatherer::look_up(GatheredUnit& unit) {
    const StoredHead* stored = store_ ? store_->find(unit.planned.key) : nullptr;
    if (!stored) return;
    unit.head = *stored;
    const InputsMatch match = match_inputs(unit.head.inputs, files_);
    // A file without any word has facts only in a program with native code.
    const bool is_as_relevant =
        stored->has_words || stored->is_relevant == may_all_be_relevant(planner_.plan, options_);
    unit.is_known = match != InputsMatch::changed && is_as_relevant;
    if (unit.is_known && match == InputsMatch::touched)
        to_store_.push_back(static_cast<std::size_t>(&unit - units_.data()));
}

// Headers of the plan that no command has read are units of their own.
void Gatherer::add_unreached_headers() {
    const std::size_t first = units_.size();
    const std::vector<std::string>& headers = planner_.plan.headers;
    if (headers.empty()) return;
    std::set<std::pair<dev_t, ino_t>> reached;
    std::unordered_set<Symbol> asked;
    struct stat info{};
    for (const GatheredUnit& unit : units_) {
        for (const InputFile& f : unit.head.inputs.files) {
            if (!asked.insert(f.path).second) continue;
            if (::stat(std::string(f.path.str()).c_str(), &info) == 0)
                reached.insert({info.st_dev, info.st_ino});
        }
    }
    for (const std::string& header : headers) {
        const bool exists = ::stat(header.c_str(), &info) == 0;
        if (exists && !reached.contains({info.st_dev, info.st_ino}))
            add(planner_.command(planner_.plan.fallback(header)));
    }
    total_ += units_.size() - first;
    extract_missing(first);
}

void Gatherer::add_configuration_files() {
    // Configurations name others, to a depth that no project needs more of.
    constexpr int kDeepest = 5;
    std::size_t from = first_python_;
    for (int depth = 0; depth < kDeepest && from < units_.size(); ++depth) {
        const std::size_t first = units_.size();
        for (; from < first; ++from) {
            if (!units_[from].in_program) continue;
            const std::vector<std::string> mentions = units_[from].head.mentions;
            const std::string path = units_[from].planned.path();
            for (const std::string& name : mentions) look_for(name, path);
        }
        total_ += units_.size() - first;
        extract_missing(first);
    }
    sort_unique(absent_);
}

// Adds the nearest file of that name ("ds_config.json"), in the directory of the code or above.
void Gatherer::look_for(const std::string& name, const std::string& from) {
    if (name.starts_with('/') || name.find('\0') != std::string::npos) return;
    for (const std::string& directory : search_directories(from)) {
        const std::string path = absolute_path(name, directory);
        struct ::stat info{};
        if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
            const auto same = [&](const GatheredUnit& u) { return u.planned.path() == path; };
            if (std::ranges::none_of(units_, same))
                add(planner_.python({.path = path, .module = {}, .id = id_of(info)}));
            return;
        }
        absent_.push_back(path);
        if (directory == options_.working_directory) return;
    }
}

void Gatherer::gather_slice() {
    find_slice();
    for (std::size_t i = first_python_; i < units_.size(); ++i) {
        GatheredUnit& unit = units_[i];
        if (!unit.in_program)
            leave_out(unit);
        else if (!unit.has_unit)
            describe_stored(unit);
    }
}

// The outlines of stored files lead to the slice, so only the facts of missing files are extracted and none are read.
void Gatherer::find_slice() {
    PythonReach reach;
    for (std::size_t i = first_python_; i < units_.size(); ++i) {
        GatheredUnit& unit = units_[i];
        if (!unit.is_known) scan(unit);
        const StoredHead& head = unit.head;
        reach.add(unit.planned.python.module, head.is_seed, head.is_relevant,
                  head.is_relevant ? head.imports : std::vector<std::uint64_t>{});
    }
    for (std::vector<std::size_t> next = reach.next(); !next.empty(); next = reach.next()) {
        std::vector<std::size_t> missing;
        for (const std::size_t n : next) {
            GatheredUnit& unit = units_[first_python_ + n];
            unit.in_program = true;
            if (!unit.is_known || !unit.head.has_facts) missing.push_back(first_python_ + n);
        }
        extract(missing);
        for (const std::size_t n : next) reach.take(n, units_[first_python_ + n].head.outline);
    }
}

void Gatherer::scan(GatheredUnit& unit) {
    Scan found = scan_file(unit.planned, planner_);
    unit.head = std::move(found.head);
    set_unit(unit, found.is_readable ? empty_unit(unit.planned, UnitState::ok, "")
                                     : empty_unit(unit.planned, UnitState::failed, "cannot be read"));
    to_store_.push_back(static_cast<std::size_t>(&unit - units_.data()));
}

// Gives a file outside the slice a unit without facts.
void Gatherer::leave_out(GatheredUnit& unit) {
    if (unit.head.has_facts)
        set_unit(unit, empty_unit(unit.planned, UnitState::ok, ""));
    else if (!unit.has_unit)
        set_unit(unit, store_->read_shell(unit.planned.key));
    finish(unit);
    unit.result.cached = unit.is_known;
}

void Gatherer::extract_missing(std::size_t first) {
    std::vector<std::size_t> missing;
    for (std::size_t i = first; i < units_.size(); ++i) {
        GatheredUnit& unit = units_[i];
        unit.in_program = true;
        if (!unit.is_known || !unit.head.has_facts) {
            missing.push_back(i);
        } else {
            describe_stored(unit);
        }
    }
    extract(missing);
}

// Fills the result of a unit whose facts stay in the store until read_facts().
void Gatherer::describe_stored(GatheredUnit& unit) {
    unit.result = result_of(unit.planned, store_->read_shell(unit.planned.key));
    unit.result.cached = true;
    finish(unit);
}

void Gatherer::extract(const std::vector<std::size_t>& units) {
    extract_batches(batches_of(units));
    std::vector<Batch> again;
    for (const std::size_t i : std::exchange(retry_, {})) again.push_back({i});
    extract_batches(again);
}

std::vector<Gatherer::Batch> Gatherer::batches_of(const std::vector<std::size_t>& units) const {
    std::vector<Batch> out;
    std::uint64_t bytes = 0;
    for (const std::size_t i : units) {
        const bool alone = units_[i].planned.command.has_value();
        if (out.empty() || alone || out.back().size() == kBatchFiles || bytes > kBatchBytes) {
            out.emplace_back();
            bytes = 0;
        }
        out.back().push_back(i);
        bytes += units_[i].planned.python.id.size;
    }
    return out;
}

PoolOptions Gatherer::pool_for(const std::vector<Batch>& batches) const {
    PoolOptions pool;
    pool.jobs = std::min(options_.jobs.value_or(available_jobs()), static_cast<int>(batches.size()));
    pool.timeout = options_.timeout.value_or(pool.timeout);
    if (!units_[batches.front().front()].planned.command) pool.jobs_per_worker = kBatchesPerWorker;
    return pool;
}

void Gatherer::extract_batches(const std::vector<Batch>& batches) {
    if (batches.empty()) return;
    // Most edits change facts. The facts of the other files are then needed, too.
    const bool idle = store_ && batches.size() == 1 && batches.front().size() == 1 && has_slice_ &&
                      options_.jobs.value_or(available_jobs()) > 1;
    run_jobs(
        batches.size(), pool_for(batches),
        [&](std::size_t b) {
            SegmentWriter out;
            for (const std::size_t i : batches[b]) extractor_.extract(out, units_[i].planned);
            return out.take();
        },
        [&](std::size_t b, JobOutcome outcome) { receive(batches[b], std::move(outcome)); },
        [&] { return idle && store_->read_ahead(); });
}

void Gatherer::receive(const Batch& batch, JobOutcome outcome) {
    if (outcome.state == JobOutcome::State::done && receive_segment(batch, outcome)) return;
    if (batch.size() > 1) {
        retry_.insert(retry_.end(), batch.begin(), batch.end());
        return;
    }
    const bool late = outcome.state == JobOutcome::State::timeout;
    const std::string why = outcome.message.empty() ? "unreadable facts" : outcome.message;
    GatheredUnit& unit = units_[batch.front()];
    set_unit(unit, empty_unit(unit.planned, late ? UnitState::timeout : UnitState::crashed, why));
    unit.is_lost = true;
    unit.head.inputs = {};
    unit.head.mentions.clear();
    unit.head.outline = {};
    finish(unit);
    unit.result.seconds = outcome.seconds;
}

bool Gatherer::receive_segment(const Batch& batch, JobOutcome& outcome) {
    Segment segment;
    if (!segment.open(outcome.output) || segment.records() != batch.size()) return false;
    bool can_be_kept = true;
    for (std::size_t n = 0; n < batch.size(); ++n) {
        GatheredUnit& unit = units_[batch[n]];
        RecordReader in(segment, segment.record(n));
        unit.head = read_head(in);
        unit.is_known = false;
        can_be_kept = can_be_kept && !unit.head.inputs.files.empty();
        set_unit(unit, in.unit(unit.head.facts.lines));
        finish(unit);
        unit.result.seconds = outcome.seconds / static_cast<double>(batch.size());
    }
    if (store_ && can_be_kept) store_->add(std::move(outcome.output));
    return true;
}

void Gatherer::read(const std::vector<std::size_t>& units) {
    const auto most = static_cast<int>(units.size() / kFilesWorthAThread);
    const int threads = std::min(options_.jobs.value_or(available_jobs()), most);
    in_parallel(units.size(), threads, [&](std::size_t n) {
        GatheredUnit& unit = units_[units[n]];
        set_unit(unit, store_->read(unit.planned.key));
    });
    for (const std::size_t i : units) {
        units_[i].result.cached = true;
        finish(units_[i]);
    }
}

void Gatherer::read_facts() {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < units_.size(); ++i)
        if (!units_[i].has_unit) missing.push_back(i);
    read(missing);
}

void Gatherer::set_unit(GatheredUnit& unit, Unit facts) {
    unit.unit = std::move(facts);
    unit.has_unit = true;
}

void Gatherer::finish(GatheredUnit& unit) {
    if (unit.has_unit) {
        const bool cached = unit.result.cached;
        unit.result = result_of(unit.planned, unit.unit);
        unit.result.cached = cached;
    }
    unit.result.may_suppress = unit.head.may_suppress;
    if (std::exchange(unit.is_finished, true)) return;
    ++done_;
    if (options_.progress) options_.progress(done_, total_, unit.planned.path());
}

bool Gatherer::save() {
    if (!store_) return true;
    SegmentWriter heads;
    for (const std::size_t i : to_store_) {
        const GatheredUnit& unit = units_[i];
        if (unit.head.has_facts && !unit.is_known) continue;  // extracted since
        const bool in_memory = unit.has_unit && (unit.in_program || !unit.head.has_facts);
        write_record(heads, unit.head, in_memory ? unit.unit : store_->read(unit.planned.key));
    }
    if (!to_store_.empty()) store_->add(heads.take());
    return store_->save();
}

bool Gatherer::is_test(const std::string& path) const {
    return code_kind(relative_path(path, planner_.plan.project_root)) == CodeKind::test;
}

void Gatherer::read_project() {
    std::vector<std::uint64_t> options;
    for (const GatheredUnit& unit : units_) {
        if (is_test(unit.planned.path())) continue;
        const bool has_all_facts =
            unit.in_program && unit.head.is_relevant && unit.result.state == UnitState::ok;
        const bool evaluates = std::ranges::binary_search(unit.head.imports, hash_bytes(kEvaluates));
        if (!has_all_facts || evaluates) append(unread_imports_, unit.head.imports);
        append(options, unit.head.given);
    }
    sort_unique(unread_imports_);
    const std::vector<FoundFile>& texts = planner_.plan.texts;
    if (texts.size() > kMostTexts) return;
    for (const FoundFile& file : texts) {
        std::string text;
        if (is_test(file.path) || !read_file(file.path, text, kLargestText)) continue;
        append(options, lint::given_options(text, TextKind::data));
        append(options, named_devices(text));
    }
    sort_unique(options);
    given_options_ = std::move(options);
}

bool Gatherer::is_complete() const {
    return std::ranges::none_of(
        units_, [](const GatheredUnit& u) { return u.is_lost || u.head.inputs.files.empty(); });
}

}  // namespace mp::lint
