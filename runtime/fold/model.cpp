#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "runtime/fold/intervals.hpp"
#include "runtime/fold/partial.hpp"
#include "runtime/fold/parts.hpp"
#include "runtime/trace/note_texts.hpp"

// From what was folded to the model that reports and the gate read.

namespace mp::trace {

StepSummary Partial::summary_of(const StepState& state) {
    StepSummary m = state.summary;
    m.has_loss = state.losses > 0;
    m.has_twin = state.twins > 0;
    if (m.has_loss) m.loss = state.loss.value() / static_cast<double>(state.losses);
    if (m.has_twin) m.twin_loss = state.twin_loss.value() / static_cast<double>(state.twins);
    if (const double twin = state.gradient_twin.value(); twin > 0)
        m.gradient_error = std::sqrt(state.gradient_error.value() / twin);
    return m;
}

// One of each rank, its restarts together; processes without a rank stay apart.
std::vector<Partial::RankState> Partial::by_rank() const {
    std::vector<RankState> all;
    std::map<Rank, std::size_t> known;
    for (const RankState& r : ranks_) {
        const Rank rank = r.facts.process.rank;
        const auto [at, fresh] = known.try_emplace(rank, all.size());
        if (fresh || !rank.known()) {
            RankState& one = all.emplace_back();
            one.facts.process.rank = rank;
            one.recorded = r.recorded;
            one.skipped = r.skipped;
            continue;
        }
        for (const auto& [first, last] : r.recorded) insert(all[at->second].recorded, first, last);
        for (const auto& [first, last] : r.skipped) insert(all[at->second].skipped, first, last);
    }
    return all;
}

SkipFacts Partial::facts_of(const SkipState& skip, const std::vector<RankState>& ranks) {
    SkipFacts f = skip.facts;
    std::set<Rank> skipped, stepped;
    for (const RankState& r : ranks) {
        const Rank rank = r.facts.process.rank;
        if (contains(r.skipped, f.step.value)) {
            skipped.insert(rank);
        } else if (contains(r.recorded, f.step.value)) {
            stepped.insert(rank);
        }
    }
    f.skipped_by.assign(skipped.begin(), skipped.end());
    for (const Rank rank : stepped) {
        if (!skipped.contains(rank)) f.stepped_by.push_back(rank);
    }
    for (const auto& [name, gradient] : skip.gradients) f.gradients.push_back(gradient);
    return f;
}

namespace {

// Counts in how many sets each of the sorted `steps` is.
class Members {
public:
    explicit Members(const std::vector<StepSummary>& steps) : steps_(steps), change_(steps.size() + 1) {}

    void add(const Intervals& set) {
        for (const auto& [first, last] : set) {
            const auto from = std::lower_bound(
                steps_.begin(), steps_.end(), first,
                [](const StepSummary& s, std::int64_t value) { return s.step.value < value; });
            const auto to = std::upper_bound(
                from, steps_.end(), last,
                [](std::int64_t value, const StepSummary& s) { return value < s.step.value; });
            ++change_[static_cast<std::size_t>(from - steps_.begin())];
            --change_[static_cast<std::size_t>(to - steps_.begin())];
        }
    }
    // To be asked for 0, 1, 2, ... in turn.
    int next(std::size_t i) { return count_ += change_[i]; }

private:
    const std::vector<StepSummary>& steps_;
    std::vector<int> change_;
    int count_ = 0;
};

}  // namespace

void Partial::put_steps(RunModel& m) const {
    const std::vector<RankState> ranks = by_rank();
    std::map<std::int64_t, StepSummary> steps;
    for (const auto& [step, state] : steps_) steps.emplace(step, summary_of(state));
    for (const auto& [step, skip] : skips_) {
        steps.try_emplace(step, summary_of(skip.step));
        m.skips.push_back(facts_of(skip, ranks));
    }
    for (const auto& [step, summary] : steps) m.steps.push_back(summary);
    Intervals recorded, skipped;
    Members of_recorded(m.steps), of_skipped(m.steps);
    for (const RankState& r : ranks) {
        for (const auto& [first, last] : r.recorded) insert(recorded, first, last);
        for (const auto& [first, last] : r.skipped) insert(skipped, first, last);
        of_recorded.add(r.recorded);
        of_skipped.add(r.skipped);
    }
    for (std::size_t i = 0; i < m.steps.size(); ++i) {
        m.steps[i].ranks = of_recorded.next(i);
        m.steps[i].skipped = of_skipped.next(i);
    }
    if (unfinished_) m.unfinished = summary_of(*unfinished_);
    m.steps_every = steps_every_;
    m.step_count = size_of(recorded);
    m.skipped_steps = size_of(skipped);
}

void Partial::put_trainings(RunModel& m) const {
    for (const auto& [key, state] : others_) {
        if (m.others.empty() || m.others.back().optimizer != key.first) m.others.push_back({key.first, {}});
        m.others.back().steps.push_back(summary_of(state));
    }
    std::set<Step> starts;
    for (const auto& [key, note] : notes_) {
        if (key.first != NoteKind::not_observed) continue;
        for (const std::string_view beginning : {kNewTraining, kCountsAgain}) {
            if (!key.second.starts_with(beginning)) continue;
            const std::int64_t from = std::atoll(key.second.c_str() + beginning.size());
            if (from > 0) starts.insert(Step{from});
        }
    }
    m.trainings.assign(starts.begin(), starts.end());
}

void Partial::put_places(RunModel& m) const {
    for (const auto& [key, place] : places_) m.places.push_back(place);
    std::sort(m.places.begin(), m.places.end(), [](const PlaceTotal& a, const PlaceTotal& b) {
        return std::tie(a.place.role, a.place.layer, a.place.phase, a.place.dtype) <
               std::tie(b.place.role, b.place.layer, b.place.phase, b.place.dtype);
    });
}

void Partial::put_ranks(RunModel& m) const {
    std::set<std::int32_t> seen;
    std::int32_t world = 0;
    m.mode = Mode::off;
    for (const RankState& r : ranks_) {
        const ProcessRecord& p = r.facts.process;
        m.ranks.push_back(r.facts);
        m.mode = std::max(m.mode, p.mode);
        world = std::max(world, p.world_size);
        if (p.rank.known()) seen.insert(p.rank.value);
    }
    if (ranks_.empty()) m.mode = Mode::watch;
    std::sort(m.ranks.begin(), m.ranks.end(), [](const RankFacts& a, const RankFacts& b) {
        return precedes(a.process, a.path, b.process, b.path);
    });
    m.missing = missing_ranks(world, seen);
}

RunModel Partial::model(const std::string& directory) const {
    RunModel m;
    m.directory = directory;
    put_ranks(m);
    put_steps(m);
    put_trainings(m);
    ops_.put(m);
    tensors_.put(m, names_);
    put_places(m);
    for (const auto& [key, exponents] : exponents_)
        m.exponents.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), exponents});
    for (const auto& [key, state] : collectives_) {
        CollectiveTotal c = state.total;
        for (std::size_t i = 0; i < state.sums.size(); ++i)
            c.total.*kDoubleSums<CollectiveRecord>[i] = state.sums[i].value();
        m.collectives.push_back(std::move(c));
    }
    sketches_.put(m);
    products_.put(m);
    for (const auto& [key, matmul] : matmuls_) m.matmuls.push_back(matmul);
    for (const auto& [key, time] : times_)
        m.times.push_back({key.first, key.second, time.first, time.second});
    std::ranges::sort(m.times, {}, [](const DeviceTime& t) {
        return std::tuple<std::uint64_t, const std::string&, Phase>(~t.device_ns, t.layer, t.phase);
    });
    m.ops_by_dtype = ops_by_dtype_;
    for (const auto& [text, used] : policies_) m.policies.push_back(text);
    // On a device the adapter does not know in time whether integers differ, so it notes every op that reads some.
    const bool differ = coverage_.sum.flips > 0;
    for (const auto& [key, note] : notes_)
        if (differ || note.kind != NoteKind::decision) m.notes.push_back(note);
    if (ops_.left_out())
        m.unreadable.push_back({std::to_string(ops_.left_out()) + " ops are not counted: more than " +
                                    std::to_string(kMaxOps) + " different ones",
                                {}});
    m.unreadable.insert(m.unreadable.end(), unreadable_.begin(), unreadable_.end());
    std::sort(m.unreadable.begin(), m.unreadable.end(),
              [](const Error& a, const Error& b) { return a.message < b.message; });
    m.coverage = coverage_.sum;
    m.seeds_after_first = coverage_.seeds_after_first;
    m.external_after_first = coverage_.external_after_first;
    m.total_wall_ns = total_wall_ns_;
    return m;
}

std::uint64_t ranks_of(const RunModel& model) {
    std::uint64_t ranks = 0;
    for (const RankFacts& r : model.ranks)
        ranks += static_cast<std::uint64_t>(std::max(r.process.local_ranks, 1));
    return ranks;
}

}  // namespace mp::trace
