#include "analyzer/driver/gather.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "analyzer/cache/cache.hpp"
#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/pool.hpp"
#include "analyzer/driver/python_units.hpp"
#include "analyzer/facts/text.hpp"

namespace mp::lint {
namespace {

struct Work {
    Invocation invocation;
    CacheKey key;
    Unit unit;
    UnitResult result;
};

CacheKey key_of(const Invocation& in, const ExtractOptions& options, const std::string& version) {
    const std::string settings =
        std::string(options.exact ? "exact" : "quick") + " facts " + std::to_string(kFactsVersion);
    std::vector<std::string_view> parts{version, settings,     options.project_root,
                                        in.file, in.directory, in.headers};
    auto add = [&parts](const std::vector<std::string>& list) {
        parts.push_back("-");  // the lists must not run into each other
        parts.insert(parts.end(), list.begin(), list.end());
    };
    add(in.host);
    add(in.device);
    add(in.flags);
    add(in.architectures);
    return make_key(parts);
}

// Directories in which the unit's includes are looked up.
std::vector<std::string> include_roots(const Invocation& in) {
    static constexpr std::string_view kFlags[] = {"-I", "-isystem", "-iquote", "-idirafter", "-cxx-isystem"};
    std::set<std::string> roots;
    for (const auto* arguments : {&in.host, &in.device}) {
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

// One name per file from here on, whatever the working directory of the command was.
void make_paths_absolute(Unit& unit, const std::string& directory) {
    for (Dependency& d : unit.dependencies) d.path = Symbol(absolute_path(d.path.str(), directory));
}

Unit lost_unit(const Work& work, UnitState state, const std::string& message) {
    Unit unit;
    unit.path = Symbol(work.invocation.file);
    unit.language = work.invocation.language;
    unit.state = state;
    unit.coverage.messages.emplace_back(message);
    return unit;
}

void describe(Work& work) {
    UnitResult& r = work.result;
    const Unit& unit = work.unit;
    r.path = work.invocation.file;
    r.state = unit.state;
    r.headers = unit.headers.str();
    for (const Symbol pass : unit.passes) r.passes.emplace_back(pass.str());
    r.coverage = unit.coverage;
    r.warnings = work.invocation.warnings;
    if (unit.state == UnitState::ok || !r.message.empty()) return;
    if (!unit.coverage.messages.empty()) {
        r.message = unit.coverage.messages.front().str();
    } else if (!unit.coverage.missing_headers.empty()) {
        r.message = "missing header " + std::string(unit.coverage.missing_headers.front().str());
    }
}

class Gatherer {
public:
    Gatherer(const Plan& plan, const LintOptions& options, const FrontEnds& parts, FactsPack& pack)
        : plan_(plan),
          options_(options),
          parts_(parts),
          pack_(pack),
          extract_(extract_options(options, plan)),
          cache_(options.use_cache ? Cache::open(cache_directory(options)) : Cache::disabled()) {}

    Gathered run() {
        for (const CompileCommand& c : plan_.commands) add(c);
        total_ = work_.size() + plan_.python.size();
        process(0);
        const std::size_t first_header = work_.size();
        for (const std::string& header : unreached_headers()) add(plan_.fallback(header));
        total_ = work_.size() + plan_.python.size();
        process(first_header);
        Gathered out;
        for (Work& w : work_) {
            out.units.push_back(std::move(w.unit));
            out.results.push_back(std::move(w.result));
        }
        out.warnings = plan_.warnings;
        gather_python(plan_, options_, parts_,
                      {.pack = cache_.directory().empty() ? nullptr : &pack_, .done = done_}, out);
        cache_.evict();
        out.warnings.insert(out.warnings.end(), cache_.warnings().begin(), cache_.warnings().end());
        return out;
    }

private:
    void add(const CompileCommand& command) {
        Work w;
        w.invocation = parts_.translate(command, extract_);
        w.invocation.file = absolute_path(w.invocation.file, command.directory);
        // Asked for only now: it hashes all our headers.
        if (version_.empty()) version_ = parts_.version() + " " + own_binary();
        w.key = key_of(w.invocation, extract_, version_);
        // A database may name one compilation twice (two targets, equal flags).
        if (keys_.insert(w.key.hex()).second) work_.push_back(std::move(w));
    }

    bool from_cache(Work& w) {
        const std::optional<std::string> text = cache_.find(w.key);
        if (!text) return false;
        Result<Unit> unit = parse_facts(*text, w.invocation.file);
        if (!unit) return false;
        w.unit = std::move(*unit);
        w.result.cached = true;
        finish(w);
        return true;
    }

    void finish(Work& w) {
        describe(w);
        ++done_;
        if (options_.progress) options_.progress(done_, total_, w.result.path);
    }

    // In a worker process: facts as text, stored on the way.
    std::string extract_one(const Work& w) {
        Unit unit = parts_.extract(w.invocation, extract_);
        make_paths_absolute(unit, w.invocation.directory);
        std::string text = print_facts(unit);
        cache_.store(w.key, unit, text, include_roots(w.invocation));
        return text;
    }

    void receive(Work& w, JobOutcome outcome) {
        w.result.seconds = outcome.seconds;
        w.result.message = outcome.message;
        if (outcome.state == JobOutcome::State::done) {
            Result<Unit> unit = parse_facts(outcome.output, w.invocation.file);
            if (unit) {
                w.unit = std::move(*unit);
            } else {
                w.unit = lost_unit(w, UnitState::crashed, "unreadable facts: " + unit.error().message);
            }
        } else {
            const bool late = outcome.state == JobOutcome::State::timeout;
            w.unit = lost_unit(w, late ? UnitState::timeout : UnitState::crashed, outcome.message);
        }
        finish(w);
    }

    void process(std::size_t first) {
        std::vector<std::size_t> missing;
        for (std::size_t i = first; i < work_.size(); ++i) {
            if (!from_cache(work_[i])) missing.push_back(i);
        }
        if (missing.empty()) return;
        PoolOptions pool;
        pool.jobs = std::min(options_.jobs.value_or(available_jobs()), static_cast<int>(missing.size()));
        pool.timeout = options_.timeout.value_or(pool.timeout);
        run_jobs(
            missing.size(), pool, [&](std::size_t i) { return extract_one(work_[missing[i]]); },
            [&](std::size_t i, JobOutcome outcome) { receive(work_[missing[i]], std::move(outcome)); });
    }

    std::vector<std::string> unreached_headers() {
        if (plan_.headers.empty()) return {};
        std::set<std::pair<dev_t, ino_t>> reached;
        std::unordered_set<std::string> asked;
        struct stat info{};
        for (const Work& w : work_) {
            for (const Dependency& d : w.unit.dependencies) {
                std::string path(d.path.str());
                if (!asked.insert(path).second) continue;
                if (::stat(path.c_str(), &info) == 0) reached.insert({info.st_dev, info.st_ino});
            }
        }
        std::vector<std::string> out;
        for (const std::string& header : plan_.headers) {
            const bool there = ::stat(header.c_str(), &info) == 0;
            if (there && !reached.contains({info.st_dev, info.st_ino})) out.push_back(header);
        }
        return out;
    }

    const Plan& plan_;
    const LintOptions& options_;
    const FrontEnds& parts_;
    FactsPack& pack_;
    ExtractOptions extract_;
    std::string version_;  // of what makes the facts, so that another one does not read them
    Cache cache_;
    std::vector<Work> work_;
    std::unordered_set<std::string> keys_;
    std::size_t done_ = 0;
    std::size_t total_ = 0;
};

}  // namespace

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
            .cuda_path = options.cuda_path,
            .exact = options.exact,
            .project_root = plan.project_root,
            .extra_args = options.extra_args};
}

Gathered gather(const Plan& plan, const LintOptions& options, const FrontEnds& parts, FactsPack& pack) {
    return Gatherer(plan, options, parts, pack).run();
}

}  // namespace mp::lint
