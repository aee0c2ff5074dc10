#include "runtime/report/json_report.hpp"

#include "kernels/base/paths.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/report/figure_bases.hpp"
#include "runtime/report/process_rows.hpp"
#include "runtime/report/sections.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

Json rank_of(const RankFacts& r) {
    return r.process.rank.known() ? Json(r.process.rank.value) : Json(nullptr);
}

// Null: there is none.
void put_loss(Json& into, const std::optional<LossRecord>& loss) {
    for (const auto& [key, value] :
         {std::pair<std::string, const double*>{"loss", loss ? &loss->real : nullptr},
          {"twin_loss", loss && loss->has_twin ? &loss->twin : nullptr}}) {
        into[key] = value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
        into[key + "_hex"] = value ? Json(hex_of(*value)) : Json(nullptr);
    }
}

Json step_entry(const StepPlace& place) {
    const StepRow& s = *place.row;
    Json entry;
    entry["rank"] = rank_of(*place.process);
    entry["restart"] = place.process->process.restart;
    entry["optimizer"] = s.optimizer;
    put_loss(entry, s.loss());
    Json losses = Json::array();
    for (const LossRecord& l : s.losses) {
        Json one;
        one["micro_step"] = l.micro_step;
        one["dtype"] = name_of(l.dtype);
        put_loss(one, l);
        losses.push_back(std::move(one));
    }
    entry["losses"] = std::move(losses);
    entry["skipped"] = s.skipped;
    if (s.has_loss_scale) {
        put_number(entry, "loss_scale", s.loss_scale);
    } else {
        entry["loss_scale"] = nullptr;
    }
    entry["wall_ms"] = static_cast<double>(s.wall_ns) / 1e6;
    entry["seeds"] = s.seeds;
    entry["external"] = s.external;
    return entry;
}

// Every n-th of the different steps, so that at most `limit` records remain; the first one always.
Json steps_section(const RunModel& model, const JsonLimits& limits, std::size_t& every) {
    const std::vector<StepPlace> places = steps_of(model);
    every = 1 + places.size() / (limits.step_records + 1);
    Json steps = Json::array();
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < places.size();) {
        const Step step = places[i].row->step;
        Json ranks = Json::array();
        const bool listed = distinct++ % every == 0;
        for (; i < places.size() && places[i].row->step == step; ++i) {
            // A hostile file may have all its records in one step.
            if (listed && ranks.size() < limits.step_records) ranks.push_back(step_entry(places[i]));
        }
        if (!listed) continue;
        Json one;
        one["step"] = step.value;
        one["ranks"] = std::move(ranks);
        steps.push_back(std::move(one));
    }
    return steps;
}

Json run_section(const RunModel& model) {
    Json out;
    const RankFacts* told = nullptr;
    std::int32_t world = -1;
    std::set<std::int32_t> seen;
    for (const RankFacts& r : model.ranks) {
        if (!told && tables_of(r).counts.has_process) told = &r;
        world = std::max(world, r.process.world_size);
        if (r.process.rank.known()) seen.insert(r.process.rank.value);
    }
    const ProcessRecord process = told ? told->process : ProcessRecord{};
    out["directory"] = model.directory;
    out["mode"] = told ? Json(name_of(process.mode)) : Json(nullptr);
    out["framework"] = process.framework;
    out["adapter"] = process.adapter;
    out["program"] = process.program;
    out["launcher"] = process.launcher;
    out["job"] = process.job;
    out["world_size"] = world < 0 ? Json(nullptr) : Json(world);
    out["ranks_seen"] = seen;
    Json missing = Json::array();
    for (const Rank rank : model.missing) missing.push_back(rank.value);
    out["ranks_missing"] = std::move(missing);
    Json processes = Json::array();
    for (const RankFacts& r : model.ranks) {
        const RecordingCounts& counts = tables_of(r).counts;
        Json one;
        one["rank"] = rank_of(r);
        one["local_rank"] = r.process.local_rank < 0 ? Json(nullptr) : Json(r.process.local_rank);
        one["local_ranks"] = r.process.local_ranks;
        one["members"] = r.process.members;
        one["restart"] = r.process.restart;
        one["host"] = r.process.host;
        one["pid"] = r.process.pid;
        one["mode"] = counts.has_process ? Json(name_of(r.process.mode)) : Json(nullptr);
        one["started_unix_ns"] = r.process.started_unix_ns;
        one["file"] = file_name(r.path);
        one["bytes"] = counts.bytes;
        one["steps"] = counts.steps;
        one["ended"] = counts.ended;
        one["lossy"] = counts.lossy;
        one["problems"] = counts.problems.size();
        processes.push_back(std::move(one));
    }
    out["processes"] = std::move(processes);
    return out;
}

Json coverage_section(const RunModel& model) {
    Json ranks = Json::array();
    for (const RankFacts& r : model.ranks) {
        Json one;
        one["rank"] = rank_of(r);
        one["restart"] = r.process.restart;
        put_coverage(one, tables_of(r).coverage);
        ranks.push_back(std::move(one));
    }
    Json out;
    put_coverage(out, {model.coverage, model.seeds_after_first, model.external_after_first});
    Json not_observed = Json::array();
    for (const RunModel::Note& note : model.notes) {
        if (note.kind != NoteKind::not_observed) continue;
        not_observed.push_back({{"text", note.text}, {"count", note.count}, {"processes", note.processes}});
    }
    out["not_observed"] = std::move(not_observed);
    out["ranks"] = std::move(ranks);
    return out;
}

Json dtypes_section(const RunModel& model) {
    Json out = Json::array();
    for (const auto& [dtype, ops] : model.ops_by_dtype)
        out.push_back({{"dtype", name_of(dtype)}, {"ops", ops}});
    return out;
}

void put_history(Json& into, const std::string& prefix, const TensorHistory& h) {
    put_number(into, prefix + "relative_l2", relative_l2(h.last));
    into[prefix + "step"] = h.last_step.value;
    put_number(into, prefix + "worst_relative_l2", h.worst);
    into[prefix + "worst_step"] = h.worst_step.value;
    into[prefix + "differ"] = h.last.differ;
    into[prefix + "nonfinite_real"] = h.last.nonfinite_real;
    into[prefix + "nonfinite_twin"] = h.last.nonfinite_twin;
}

// Named tensors of one process. A gradient stands beside the parameter of its name, under "gradient_...".
void put_tensors(Json& parameters, Json& others, const RankFacts& process) {
    const TensorHistories& histories = tables_of(process).tensors;
    for (const auto& [key, history] : histories) {
        const auto& [name, kind] = key;
        Json one;
        one["rank"] = rank_of(process);
        one["restart"] = process.process.restart;
        one["name"] = name;
        if (kind == TensorKind::gradient && histories.contains({name, TensorKind::parameter})) continue;
        const bool of_parameter = kind == TensorKind::parameter || kind == TensorKind::gradient;
        if (!of_parameter) one["kind"] = name_of(kind);
        one["dtype"] = name_of(history.last.dtype);
        one["elements"] = history.last.elements;
        if (kind != TensorKind::gradient) put_history(one, "", history);
        if (of_parameter) {
            const auto gradient = histories.find({name, TensorKind::gradient});
            if (gradient != histories.end()) put_history(one, "gradient_", gradient->second);
        }
        (of_parameter ? parameters : others).push_back(std::move(one));
    }
}

Json notes_section(const RunModel& model) {
    Json out = Json::array();
    for (const RunModel::Note& note : model.notes) {
        out.push_back({{"kind", name_of(note.kind)},
                       {"text", note.text},
                       {"count", note.count},
                       {"processes", note.processes},
                       {"first_step", note.first.known() ? Json(note.first.value) : Json(nullptr)}});
    }
    return out;
}

Json problems_section(const RunModel& model) {
    Json out = Json::array();
    for (const RankFacts& r : model.ranks) {
        for (const Problem& p : tables_of(r).counts.problems) {
            out.push_back({{"file", file_name(r.path)},
                           {"offset", p.offset},
                           {"bytes_lost", p.bytes_lost},
                           {"why", p.why}});
        }
    }
    for (const Error& e : model.unreadable) out.push_back({{"file", nullptr}, {"why", e.message}});
    return out;
}

}  // namespace

nlohmann::ordered_json json_report(const RunModel& model, const Judgement& judgement,
                                   const JsonLimits& limits) {
    Json out;
    out["version"] = kJsonReportVersion;
    out["run"] = run_section(model);
    std::size_t every = 1;
    Json steps = steps_section(model, limits, every);
    out["steps_every"] = every;
    out["steps"] = std::move(steps);
    out["coverage"] = coverage_section(model);
    out["dtypes"] = dtypes_section(model);
    out["collectives"] = collectives_section(model);
    out["device_times"] = times_section(model);
    out["matmuls"] = matmuls_section(model);
    if (is_raw(model)) out["products"] = products_section(model);
    if (is_raw(model)) out["figures"] = figures_section(model);
    Json parameters = Json::array(), others = Json::array();
    for (const RankFacts& r : model.ranks) put_tensors(parameters, others, r);
    out["parameters"] = std::move(parameters);
    out["other_tensors"] = std::move(others);
    out["notes"] = notes_section(model);
    out["problems"] = problems_section(model);
    out["verdict"] = verdict_section(model, judgement);
    out["findings"] = findings_section(judgement);
    out["first_overflow"] = first_overflow_section(judgement);
    out["layers"] = layers_section(model);
    out["ladder"] = ladder_section(judgement);
    out["skips"] = skips_section(judgement);
    out["loss_scale"] = loss_scale_section(model);
    out["dtype_map"] = dtype_map_section(model);
    out["policies"] = model.policies;
    out["checks"] = checks_section(judgement);
    return out;
}

std::string json_text(const Json& report) {
    return report.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace mp::trace
