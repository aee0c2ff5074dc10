#include "analyzer/driver/python_units.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "analyzer/driver/pool.hpp"
#include "analyzer/driver/python_files.hpp"
#include "analyzer/driver/python_reach.hpp"
#include "kernels/base/parallel.hpp"

namespace mp::lint {
namespace {

// A fork costs more than parsing a small file; a batch that is lost costs its files' time twice.
constexpr std::size_t kBatchFiles = 64;
constexpr std::uint64_t kBatchBytes = std::uint64_t{1} << 20;

// Facts of fewer are read before a thread has started.
constexpr std::size_t kFilesWorthAThread = 8;

using Batch = std::vector<std::size_t>;  // indices of the files

// Directories above a file in which a name that its code mentions is looked for.
constexpr int kLevels = 4;

class PythonGatherer {
public:
    PythonGatherer(const Plan& plan, const LintOptions& options, const FrontEnds& parts, const PythonRun& run,
                   Gathered& out)
        : files_(plan.python),
          options_(options),
          by_{.parts = parts, .seeds = Seeds(parts.rules), .whole_tree = options.whole_tree},
          out_(out),
          pack_(run.pack),
          done_(run.done) {}

    void run() {
        process(0);
        const std::size_t found = files_.size();
        add_configuration_files();
        process(found);
        save();
        std::move(units_.begin(), units_.end(), std::back_inserter(out_.units));
        std::move(results_.begin(), results_.end(), std::back_inserter(out_.results));
    }

private:
    const PythonFile& file(std::size_t i) const { return files_[i]; }

    void process(std::size_t first) {
        units_.resize(files_.size());
        outlines_.resize(files_.size());
        results_.resize(files_.size());
        heads_.resize(files_.size());
        mentions_.resize(files_.size());
        out_.python.resize(files_.size());
        total_ = done_ + files_.size() - first;
        std::vector<std::size_t> all;
        for (std::size_t i = first; i < files_.size(); ++i) {
            known_in_pack(i);
            all.push_back(i);
        }
        reaching_ = first == 0 && !options_.whole_tree && is_large_tree(files_);
        if (reaching_) {
            make_what_is_reached();
        } else {
            make(all);
        }
    }

    // Most files of a large tree neither speak of precision nor are reached from where it is spoken of.
    void make_what_is_reached() {
        PythonReach reach;
        for (std::size_t i = 0; i < files_.size(); ++i) {
            if (!heads_[i].known) scan(i);
            const Head& head = heads_[i];
            reach.add(file(i).module, head.wanted, head.relevant, head.imports);
        }
        for (std::vector<std::size_t> next = reach.next(); !next.empty(); next = reach.next()) {
            make(next);
            for (const std::size_t i : next) reach.take(i, std::move(outlines_[i]));
        }
        out_.low_names = reach.low_names();
        for (std::size_t i = 0; i < files_.size(); ++i) {
            if (heads_[i].made) continue;
            keep(i, empty_unit(file(i).path, heads_[i].unreadable ? UnitState::failed : UnitState::ok,
                               heads_[i].unreadable ? "cannot be read" : ""));
            results_[i].cached = heads_[i].known;
            out_.python[i].made = false;
            if (!heads_[i].known) heads_only_.push_back(i);
        }
    }

    // From the pack, else from workers.
    void make(const std::vector<std::size_t>& files) {
        std::vector<std::size_t> known, missing;
        for (const std::size_t i : files)
            (heads_[i].known && heads_[i].has_facts ? known : missing).push_back(i);
        read(known);
        extract(batches_of(missing));
        std::vector<Batch> again;
        for (const std::size_t i : std::exchange(lost_, {})) again.push_back({i});
        extract(again);
    }

    void scan(std::size_t i) {
        Scan found = scan_file(file(i), by_);
        heads_[i].unreadable = found.unreadable;
        heads_[i].relevant = found.relevant;
        heads_[i].wanted = found.wanted;
        heads_[i].may_suppress = found.may_suppress;
        heads_[i].imports = std::move(found.imports);
        out_.python[i] = std::move(found.read);
    }

    // Files that the code names, beside it or above: "ds_config.json".
    void add_configuration_files() {
        std::set<std::string> found, absent;
        const std::size_t named = files_.size();
        for (std::size_t i = 0; i < named; ++i) {
            for (const std::string& name : mentions_[i]) look_for(name, i, found, absent);
        }
        out_.absent.assign(absent.begin(), absent.end());
    }

    void look_for(const std::string& name, std::size_t from, std::set<std::string>& found,
                  std::set<std::string>& absent) {
        if (name.starts_with('/') || name.find('\0') != std::string::npos) return;
        std::string directory = file(from).path;
        for (int level = 0; level < kLevels && directory.size() > 1; ++level) {
            directory.resize(std::max<std::size_t>(directory.rfind('/'), 1));
            const std::string path = absolute_path(name, directory);
            struct ::stat info{};
            if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
                const auto same = [&](const PythonFile& f) { return f.path == path; };
                if (found.insert(path).second && std::ranges::none_of(files_, same))
                    files_.push_back({.path = path, .module = {}, .id = id_of(info)});
                return;
            }
            absent.insert(path);
            if (directory == options_.working_directory) return;
        }
    }

    // What the pack says of an unchanged file.
    void known_in_pack(std::size_t i) {
        const PackedFile* known = pack_ ? pack_->find(file(i).path) : nullptr;
        if (!known || known->module != file(i).module) return;
        FileId id = file(i).id;
        if (known->id != id) {
            std::string content;
            if (known->id.size != id.size || !read_file(file(i).path, content) ||
                hash_bytes(content) != known->hash)
                return;
            // The same content under a new time, as after a checkout: remembered for the next run.
            id = trusted(id);
            if (known->id != id) refreshed_.push_back(i);
        }
        out_.python[i] = {.path = file(i).path, .id = id, .hash = known->hash};
        mentions_[i].assign(known->mentions.begin(), known->mentions.end());
        heads_[i] = {.known = true,
                     .has_facts = known->has_facts,
                     .relevant = known->relevant,
                     .wanted = known->wanted,
                     .may_suppress = known->may_suppress,
                     .imports = known->imports};
    }

    void read(const std::vector<std::size_t>& files) {
        const auto most = static_cast<int>(files.size() / kFilesWorthAThread);
        const int threads = std::min(options_.jobs.value_or(available_jobs()), most);
        in_parallel(files.size(), threads,
                    [&](std::size_t n) { set_unit(files[n], pack_->read(file(files[n]).path)); });
        for (const std::size_t i : files) {
            kept(i);
            results_[i].cached = true;
        }
    }

    void keep(std::size_t i, Unit unit) {
        set_unit(i, std::move(unit));
        kept(i);
    }

    // On any thread.
    void set_unit(std::size_t i, Unit unit) {
        units_[i] = std::move(unit);
        if (reaching_) outlines_[i] = outline_of(units_[i], file(i).module, by_.seeds);
    }

    void kept(std::size_t i) {
        results_[i] = result_of(file(i), units_[i]);
        results_[i].may_suppress = heads_[i].may_suppress;
        heads_[i].made = true;
        ++done_;
        if (options_.progress) options_.progress(done_, total_, file(i).path);
    }

    std::vector<Batch> batches_of(const std::vector<std::size_t>& files) const {
        std::vector<Batch> out;
        std::uint64_t bytes = 0;
        for (const std::size_t i : files) {
            if (out.empty() || out.back().size() == kBatchFiles || bytes > kBatchBytes) {
                out.emplace_back();
                bytes = 0;
            }
            out.back().push_back(i);
            bytes += file(i).id.size;
        }
        return out;
    }

    void extract(const std::vector<Batch>& batches) {
        if (batches.empty()) return;
        run_jobs(
            batches.size(), pool_for(options_, batches.size()),
            [&](std::size_t b) { return extract_batch(batches[b]); },
            [&](std::size_t b, JobOutcome outcome) { receive(batches[b], std::move(outcome)); });
    }

    // In a worker process: a segment with a record per file.
    std::string extract_batch(const Batch& batch) const {
        SegmentWriter out;
        for (const std::size_t i : batch) extract_file(out, file(i), by_);
        return out.take();
    }

    void receive(const Batch& batch, JobOutcome outcome) {
        if (outcome.state == JobOutcome::State::done && receive_segment(batch, outcome)) return;
        if (batch.size() > 1) {
            lost_.insert(lost_.end(), batch.begin(), batch.end());
            return;
        }
        const bool late = outcome.state == JobOutcome::State::timeout;
        const std::string why = outcome.message.empty() ? "unreadable facts" : outcome.message;
        const std::size_t i = batch.front();
        out_.python[i].path = file(i).path;
        keep(i, empty_unit(file(i).path, late ? UnitState::timeout : UnitState::crashed, why));
        results_[i].seconds = outcome.seconds;
    }

    bool receive_segment(const Batch& batch, JobOutcome& outcome) {
        Segment segment;
        if (!segment.open(outcome.output) || segment.records() != batch.size()) return false;
        for (std::size_t n = 0; n < batch.size(); ++n) {
            const std::size_t i = batch[n];
            RecordReader in(segment, segment.record(n));
            const PackedFile head = read_head(in);
            out_.python[i] = {.path = file(i).path, .id = head.id, .hash = head.hash};
            mentions_[i].assign(head.mentions.begin(), head.mentions.end());
            heads_[i].may_suppress = head.may_suppress;
            keep(i, read_unit(in));
            results_[i].seconds = outcome.seconds / static_cast<double>(batch.size());
        }
        if (pack_) pack_->add(std::move(outcome.output));
        return true;
    }

    void save() {
        if (!pack_) return;
        SegmentWriter heads;
        for (const std::size_t i : refreshed_) write_head(heads, i, heads_[i].has_facts);
        for (const std::size_t i : heads_only_) write_head(heads, i, false);
        if (!refreshed_.empty() || !heads_only_.empty()) pack_->add(heads.take());
        if (!pack_->save())
            out_.warnings.push_back(std::string("cache: cannot be written: ") + std::strerror(errno));
    }

    // A file of which nothing was extracted, or whose facts are known under another time.
    void write_head(SegmentWriter& out, std::size_t i, bool has_facts) {
        const ReadFile& now = out_.python[i];
        PackedFile head{.path = now.path, .module = file(i).module, .id = now.id, .hash = now.hash};
        head.mentions.assign(mentions_[i].begin(), mentions_[i].end());
        head.may_suppress = heads_[i].may_suppress;
        head.has_facts = has_facts;
        head.relevant = heads_[i].relevant;
        head.wanted = heads_[i].wanted;
        head.imports = heads_[i].imports;
        const bool made = heads_[i].known && has_facts && !units_[i].functions.empty();
        write_record(out, head, made || !has_facts ? units_[i] : pack_->read(now.path));
    }

    // What is known of a file without its facts.
    struct Head {
        bool known = false;  // the pack has it, unchanged
        bool has_facts = false;
        bool relevant = true;
        bool wanted = true;
        bool may_suppress = true;
        bool unreadable = false;
        bool made = false;  // its unit is there
        std::vector<std::uint64_t> imports;
    };

    std::vector<PythonFile> files_;  // the plan's, then the configuration files they name
    const LintOptions& options_;
    const PythonReader by_;
    Gathered& out_;
    FactsPack* pack_;
    std::vector<Unit> units_;
    bool reaching_ = false;  // not all files are made
    std::vector<Outline> outlines_;
    std::vector<UnitResult> results_;
    std::vector<std::vector<std::string>> mentions_;
    std::vector<Head> heads_;
    std::vector<std::size_t> heads_only_;
    std::vector<std::size_t> refreshed_;
    std::vector<std::size_t> lost_;
    std::size_t done_ = 0;
    std::size_t total_ = 0;
};

}  // namespace

void gather_python(const Plan& plan, const LintOptions& options, const FrontEnds& parts, const PythonRun& run,
                   Gathered& out) {
    if (!plan.python.empty()) PythonGatherer(plan, options, parts, run, out).run();
}

}  // namespace mp::lint
