#include "analyzer/driver/python_edits.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/driver/pool.hpp"
#include "analyzer/driver/python_files.hpp"

namespace mp::lint {
namespace {

// Everything in the head of a file that decides which files are analysed.
bool leads_alike(const PackedFile& then, const PackedFile& now, bool large_tree) {
    if (then.mentions != now.mentions) return false;
    return !large_tree ||
           (then.relevant == now.relevant && then.wanted == now.wanted && then.imports == now.imports);
}

PackedFile head_of(const PythonFile& file, Scan&& scan) {
    return {.path = file.path,
            .module = file.module,
            .id = scan.read.id,
            .hash = scan.read.hash,
            .may_suppress = scan.may_suppress,
            .has_facts = false,
            .relevant = scan.relevant,
            .wanted = scan.wanted,
            .imports = std::move(scan.imports)};
}

class Rereader {
public:
    Rereader(const Plan& plan, const LintOptions& options, const FrontEnds& parts, FactsPack& pack,
             const std::vector<std::uint64_t>& low_names)
        : plan_(plan),
          options_(options),
          by_{.parts = parts, .seeds = Seeds(parts.rules)},
          low_names_(low_names),
          large_(is_large_tree(plan.python)),
          pack_(pack) {}

    std::optional<std::vector<RereadFile>> run(const std::vector<EditedFile>& edited) {
        bool same = true;
        for (const EditedFile& e : edited) same = same && reread(e);
        // What was read is kept in any case: the run that follows reads it there.
        pack_.save();
        if (!same) return std::nullopt;
        return std::move(out_);
    }

private:
    bool reread(const EditedFile& e) { return e.then.made ? reread_facts(e) : reread_text(e); }

    // What the pack has of the file as it was.
    const PackedFile* before(const EditedFile& e) const {
        const PythonFile& file = plan_.python[e.index];
        const PackedFile* then = pack_.find(file.path);
        return then && then->module == file.module && then->hash == e.then.hash ? then : nullptr;
    }

    // Nothing led to the file, and nothing does, whatever it says, unless it begins to speak of precision
    // or imports what brings that in.
    bool leads_nowhere(const PackedFile& then, const PackedFile& now) const {
        if (now.wanted || !then.mentions.empty()) return false;
        if (!now.relevant) return true;
        return then.relevant &&
               std::none_of(now.imports.begin(), now.imports.end(), [this](std::uint64_t name) {
                   return std::binary_search(low_names_.begin(), low_names_.end(), name);
               });
    }

    bool reread_text(const EditedFile& e) {
        const PythonFile& file = plan_.python[e.index];
        const PackedFile* then = before(e);
        if (!then) return false;
        Scan scan = scan_file(file, by_);
        if (scan.unreadable) return false;
        const PackedFile now = head_of(file, std::move(scan));
        if (!leads_nowhere(*then, now)) return false;
        SegmentWriter segment;
        const Unit unit = empty_unit(file.path, UnitState::ok, "");
        write_record(segment, now, unit);
        pack_.add(segment.take());
        add(e, now, unit, {});
        return true;
    }

    bool reread_facts(const EditedFile& e) {
        const PythonFile& file = plan_.python[e.index];
        // Most edits change what the file says: then the facts of the others are wanted too.
        const bool idle = options_.jobs.value_or(available_jobs()) > 1;
        JobOutcome outcome;
        run_jobs(
            1, pool_for(options_, 1),
            [&](std::size_t) {
                SegmentWriter segment;
                extract_file(segment, file, by_);
                return segment.take();
            },
            [&](std::size_t, JobOutcome ended) { outcome = std::move(ended); },
            [&] { return idle && pack_.read_ahead(); });
        const PackedFile* then = before(e);
        if (!then || !then->has_facts) return false;
        Segment segment;
        if (outcome.state != JobOutcome::State::done || !segment.open(outcome.output) ||
            segment.records() != 1)
            return false;
        RecordReader in(segment, segment.record(0));
        const PackedFile now = read_head(in);
        Unit unit = read_unit(in);
        if (!in.ok || !now.has_facts) return false;
        add(e, now, unit, outcome.seconds);
        const bool alike = leads_alike(*then, now, large_);
        pack_.add(outcome.output);
        if (!alike || unit.state != UnitState::ok) return false;
        std::optional<LineMap> lines = moved_lines(pack_.read(file.path), std::move(unit));
        if (lines) out_.back().lines = std::move(*lines);
        return lines.has_value();
    }

    void add(const EditedFile& e, const PackedFile& now, const Unit& unit, double seconds) {
        const PythonFile& file = plan_.python[e.index];
        RereadFile& r = out_.emplace_back();
        r.index = e.index;
        r.now = {.path = file.path, .id = now.id, .hash = now.hash, .made = e.then.made};
        r.result = result_of(file, unit);
        r.result.may_suppress = now.may_suppress;
        r.result.seconds = seconds;
    }

    const Plan& plan_;
    const LintOptions& options_;
    PythonReader by_;
    const std::vector<std::uint64_t>& low_names_;
    bool large_;
    FactsPack& pack_;
    std::vector<RereadFile> out_;
};

}  // namespace

std::optional<std::vector<RereadFile>> reread_edited(const Plan& plan, const LintOptions& options,
                                                     const FrontEnds& parts, FactsPack& pack,
                                                     const std::vector<EditedFile>& edited,
                                                     const std::vector<std::uint64_t>& low_names) {
    return Rereader(plan, options, parts, pack, low_names).run(edited);
}

}  // namespace mp::lint
