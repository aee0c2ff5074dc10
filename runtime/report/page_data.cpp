#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/float_format.hpp"
#include "runtime/report/page.hpp"
#include "runtime/report/page_map.hpp"
#include "runtime/report/sections.hpp"
#include "runtime/report/verdict_text.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::size_t kMaxFindings = 200, kMaxSkips = 1000, kMaxNotes = 200, kMaxRanks = 200, kMaxOps = 3;
constexpr std::size_t kMaxRungs = 8000, kMaxPlaces = 20'000, kMaxExponents = 200;

// Escapes and shortens every text of a recording inside `value`.
void make_safe(Json& value) {
    if (value.is_string()) {
        value = shown_short(value.get_ref<const std::string&>(), kPageText);
    } else if (value.is_structured()) {
        for (Json& inner : value) make_safe(inner);
    }
}

// Rounded to seven digits, as many as an fp32 has, because that is shorter than a double. Null if not a number.
Json rounded(double value) {
    if (!std::isfinite(value)) return nullptr;
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 7).ptr;
    double back = 0;
    std::from_chars(text.data(), end, back);
    return back;
}
Json measured(double value) { return value < 0 ? Json(nullptr) : rounded(value); }

Json run_part(const RunModel& model) {
    Json out;
    out["directory"] = model.directory;
    out["mode"] = name_of(model.mode);
    std::set<std::string> frameworks;
    std::int32_t world = -1;
    for (const RankFacts& r : model.ranks) {
        frameworks.insert(r.process.framework);
        world = std::max(world, r.process.world_size);
    }
    frameworks.erase("");
    out["frameworks"] = frameworks;
    out["program"] = model.ranks.empty() ? "" : model.ranks[0].process.program;
    out["world"] = world < 0 ? Json(nullptr) : Json(world);
    out["ranks"] = model.ranks.size();
    out["steps"] = model.step_count;
    out["skipped"] = model.skipped_steps;
    out["wall_s"] = rounded(static_cast<double>(model.total_wall_ns) / 1e9);
    return out;
}

Json steps_part(const RunModel& model) {
    Json step = Json::array(), loss = Json::array(), twin = Json::array(), scale = Json::array(),
         skipped = Json::array();
    for (const StepSummary& s : model.steps) {
        step.push_back(s.step.value);
        loss.push_back(s.has_loss ? rounded(s.loss) : Json(nullptr));
        twin.push_back(s.has_twin ? rounded(s.twin_loss) : Json(nullptr));
        scale.push_back(s.has_loss_scale ? rounded(s.loss_scale) : Json(nullptr));
        if (s.skipped > 0) skipped.push_back(s.step.value);
    }
    return {{"every", model.steps_every}, {"step", std::move(step)},   {"loss", std::move(loss)},
            {"twin", std::move(twin)},    {"scale", std::move(scale)}, {"skipped", std::move(skipped)}};
}

Json near_op(const OpSum& sum) {
    const OpRecord& op = sum.total;
    // No φ for an fp32 result: in floors of fp32 the errors of its low-precision inputs would look immense.
    const bool low = is_low_precision(op.dtype);
    return {{"op", op.op},
            {"layer", op.layer},
            {"dtype", name_of(op.dtype)},
            {"total", op.compared && low ? measured(sum.worst_cum_phi) : Json(nullptr)}};
}

// The tensors with the largest share of elements that were meant to move and did not.
Json stagnant_part(const RunModel& model) {
    const auto share = [](const TensorSum* t) {
        return static_cast<double>(t->unmoved) / static_cast<double>(t->meant_to_move);
    };
    std::vector<const TensorSum*> still;
    for (const TensorSum& t : model.tensors) {
        if (t.meant_to_move > 0 && share(&t) > 0.3) still.push_back(&t);
    }
    std::sort(still.begin(), still.end(), [&](const TensorSum* a, const TensorSum* b) {
        return share(a) != share(b) ? share(a) > share(b) : a->name < b->name;
    });
    if (still.size() > 2 * kMaxOps) still.resize(2 * kMaxOps);
    Json out = Json::array();
    for (const TensorSum* t : still) out.push_back({{"name", t->name}, {"share", rounded(share(t))}});
    return out;
}

// The figures of the op that the first finding names, and the ops before and after it.
Json cause_part(const RunModel& model, const Judgement& judgement) {
    if (judgement.findings.empty()) return nullptr;
    const Finding& finding = judgement.findings[0];
    Json out = Json::object();
    if (const Rung* rung = rung_of(judgement, finding)) {
        out["introduced"] = measured(rung->introduced);
        out["inherited"] = measured(rung->inherited);
        out["total"] = measured(rung->total);
        out["dtype"] = name_of(rung->dtype);
    }
    if (finding.phase == Phase::optimizer) out["stagnant"] = stagnant_part(model);
    const OpSum* sum = op_of(model, finding);
    if (!sum) return out;
    const OpRecord& op = sum->total;
    // At an overflow the record of its step is more precise than the sum over all steps.
    const OpRecord& at = sum->first_origin.step.known() ? sum->at_origin : op;
    out["dtype"] = name_of(op.dtype);
    out["guessed"] = op.guessed;
    out["amax"] = rounded(at.amax);
    out["nonfinite"] = at.nan + at.pos_inf + at.neg_inf;
    out["elements"] = at.elements;
    out["twin_amax"] = at.compared ? rounded(at.twin_amax) : Json(nullptr);
    out["input_amax"] = at.input_amax > 0 ? rounded(at.input_amax) : Json(nullptr);
    out["absorbed"] =
        op.added ? rounded(static_cast<double>(op.absorbed) / static_cast<double>(op.added)) : nullptr;
    std::vector<const OpSum*> phase;
    for (const OpSum& o : model.ops) {
        if (o.total.phase == op.phase) phase.push_back(&o);
    }
    const auto place = std::find(phase.begin(), phase.end(), sum);
    Json before = Json::array(), after = Json::array();
    const auto first = place - std::min<std::ptrdiff_t>(kMaxOps, place - phase.begin());
    for (auto it = first; it != place; ++it) before.push_back(near_op(**it));
    const auto last = place + std::min<std::ptrdiff_t>(kMaxOps + 1, phase.end() - place);
    for (auto it = place + 1; it < last; ++it) after.push_back(near_op(**it));
    out["before"] = std::move(before);
    out["after"] = std::move(after);
    return out;
}

// One rung per layer and phase: its op with the largest introduced error, and the largest total of its ops.
Json ladder_part(const Judgement& judgement) {
    std::map<std::pair<Phase, std::string_view>, std::size_t> index;
    std::vector<Rung> rungs;
    for (const Rung& r : judgement.ladder) {
        const auto [it, added] = index.try_emplace({r.phase, r.layer}, rungs.size());
        if (added) {
            rungs.push_back(r);
            continue;
        }
        Rung& to = rungs[it->second];
        if (is_worse(r.introduced, to.introduced))
            to.introduced = r.introduced, to.op = r.op, to.dtype = r.dtype;
        to.inherited = larger(to.inherited, r.inherited);
        to.total = larger(to.total, r.total);
    }
    if (rungs.size() > kMaxRungs) rungs.resize(kMaxRungs);
    Json out = Json::array();
    for (const Rung& r : rungs)
        out.push_back({r.layer, r.op, name_of(r.phase), name_of(r.dtype), measured(r.introduced),
                       measured(r.inherited), measured(r.total)});
    return out;
}

Json dtype_part(const RunModel& model) {
    Json out = Json::array();
    for (const PlaceTotal& p : model.places) {
        if (out.size() == kMaxPlaces) break;
        out.push_back({name_of(p.place.role), p.place.layer, name_of(p.place.phase),
                       shown_dtype(p.place.dtype), p.place.tensors, p.place.elements, known(p.first_step)});
    }
    return out;
}

Json rank_entry(const RankFacts& r) {
    return {{"rank", known(r.process.rank)},
            {"restart", r.process.restart},
            {"host", r.process.host},
            {"pid", r.process.pid},
            {"mode", name_of(r.process.mode)},
            {"steps", r.steps},
            {"last_step", known(r.last_step)},
            {"ended", r.ended},
            {"problems", r.problems},
            {"lost_records", r.lost_records},
            {"first_problems", r.first_problems}};
}

Json trust_part(const RunModel& model) {
    Json out;
    put_coverage(out["coverage"], {model.coverage, model.seeds_after_first, model.external_after_first});
    out["figures"] = figures_section(model);
    Json ranks = Json::array(), missing = Json::array(), unreadable = Json::array(), notes = Json::array(),
         floors = Json::array(), ops = Json::array();
    // Ranks with problems come first, because the list has a limit.
    for (const bool sound : {false, true}) {
        for (const RankFacts& r : model.ranks) {
            if ((r.ended && !r.problems && !r.lost_records) == sound && ranks.size() < kMaxRanks)
                ranks.push_back(rank_entry(r));
        }
    }
    for (const Rank r : model.missing) {
        if (missing.size() < kMaxRanks) missing.push_back(r.value);
    }
    for (const Error& e : model.unreadable) {
        if (unreadable.size() < kMaxRanks) unreadable.push_back(e.message);
    }
    for (const RunModel::Note& n : model.notes) {
        if (n.kind == NoteKind::end || n.kind == NoteKind::policy || notes.size() >= kMaxNotes) continue;
        notes.push_back(
            {{"kind", name_of(n.kind)}, {"text", n.text}, {"count", n.count}, {"processes", n.processes}});
    }
    for (const auto& [dtype, count] : model.ops_by_dtype) {
        ops.push_back({{"dtype", name_of(dtype)}, {"ops", count}});
        if (one_rounding_floor(dtype) > 0)
            floors.push_back({{"dtype", name_of(dtype)}, {"floor", rounded(one_rounding_floor(dtype))}});
    }
    out["ranks"] = std::move(ranks);
    out["missing"] = std::move(missing);
    out["missing_total"] = model.missing.size();
    out["unreadable"] = std::move(unreadable);
    out["notes"] = std::move(notes);
    out["floors"] = std::move(floors);
    out["ops_by_dtype"] = std::move(ops);
    return out;
}

// The exponents of the normal values of a dtype's format.
Json normal_exponents(DType dtype) {
    const FloatFormat* format = format_of(dtype);
    return format ? Json{min_exponent(*format), max_exponent(*format)} : Json(nullptr);
}

// Shares of the values other than 0; only the first kMaxExponents entries.
Json exponents_part(const RunModel& model) {
    Json out = Json::array();
    for (const LayerExponents* e : exponents_by_depth(model)) {
        if (out.size() == kMaxExponents) break;
        double total = 0;
        for (const std::uint64_t count : e->exponents.counts) total += static_cast<double>(count);
        Json shares = Json::array();
        for (const std::uint64_t count : e->exponents.counts)
            shares.push_back(
                rounded(static_cast<double>(static_cast<float>(static_cast<double>(count) / total))));
        out.push_back({e->layer, name_of(e->phase), name_of(e->dtype), lowest_exponent(*e), rounded(total),
                       std::move(shares), normal_exponents(e->dtype)});
    }
    return out;
}

Json map_part(const RunModel& model) {
    const PackedMap map = pack_map(model);
    Json rows = Json::array();
    for (const PackedRow& row : map.rows)
        rows.push_back({shown_short(row.layer, kPageText), name_of(row.phase), row.total, row.introduced,
                        row.flush, row.nonfinite});
    const auto scale = [](Scale s) { return Json{{"low", s.low}, {"high", s.high}}; };
    return {{"columns", map.columns},
            {"column_steps", model.column_steps * static_cast<std::int64_t>(map.merged)},
            {"alphabet", level_alphabet()},
            {"phi", scale(kPhiScale)},
            {"flush", scale(kFlushScale)},
            {"rows", std::move(rows)}};
}

void keep_first(Json& list, std::size_t count) {
    while (list.size() > count) list.erase(list.size() - 1);
}

}  // namespace

Json page_data(const RunModel& model, const Judgement& judgement) {
    Json out;
    out["run"] = run_part(model);
    out["verdict"] = verdict_section(model, judgement);
    out["findings"] = findings_section(judgement);
    out["findings_total"] = judgement.findings.size();
    keep_first(out["findings"], kMaxFindings);
    out["cause"] = cause_part(model, judgement);
    out["first_overflow"] = first_overflow_section(judgement);
    out["ladder"] = ladder_part(judgement);
    out["exponents"] = exponents_part(model);
    out["exponents_total"] = model.exponents.size();
    out["skips"] = skips_section(judgement);
    out["skips_total"] = judgement.skips.size();
    keep_first(out["skips"], kMaxSkips);
    out["dtype_map"] = dtype_part(model);
    out["places_total"] = model.places.size();
    out["checks"] = checks_section(judgement);
    out["policies"] = model.policies;
    out["collectives"] = collectives_section(model);
    out["trust"] = trust_part(model);
    make_safe(out);
    // Added after make_safe, which would cut the rows of the map.
    out["steps"] = steps_part(model);
    out["map"] = map_part(model);
    return out;
}

std::string script_json(const Json& value) {
    const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    std::string out;
    out.reserve(text.size() + 64);
    for (const char c : text) {
        switch (c) {
            case '<':
                out += "\\u003c";
                break;
            case '>':
                out += "\\u003e";
                break;
            case '&':
                out += "\\u0026";
                break;
            default:
                out += c;
        }
    }
    return out;
}

}  // namespace mp::trace
