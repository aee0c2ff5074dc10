#include "runtime/report/sections.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/divergence.hpp"
#include "runtime/fold/parts.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/report/figure_bases.hpp"
#include "runtime/report/process_rows.hpp"
#include "runtime/report/verdict_text.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

// -1 means that nothing was measured.
void put_measure(Json& into, const std::string& key, double value) {
    if (value < 0) {
        into[key] = nullptr;
    } else {
        put_number(into, key, value);
    }
}

struct Phis {
    double introduced = -1, inherited = -1, total = -1;
};

Phis phis_of(const OpRecord& op) {
    if (one_rounding_floor(op.dtype) == 0) return {};
    return {introduced_phi(op), inherited_phi(op), total_phi(op)};
}

void put_phis(Json& into, const Phis& phis) {
    put_measure(into, "introduced_phi", phis.introduced);
    put_measure(into, "inherited_phi", phis.inherited);
    put_measure(into, "total_phi", phis.total);
}

Json op_entry(const OpSum& sum) {
    const OpRecord& op = sum.total;
    Json one;
    one["op"] = op.op;
    one["dtype"] = name_of(op.dtype);
    one["source"] = op.source;
    one["calls"] = op.calls;
    one["ranks"] = sum.ranks;
    fields(
        [&](const Field& f, auto member) {
            if (!f.report) return;
            if constexpr (std::is_same_v<decltype(member), double OpRecord::*>) {
                put_number(one, std::string(f.name), op.*member);
            } else if constexpr (std::is_same_v<decltype(member), std::uint64_t OpRecord::*>) {
                one[std::string(f.name)] = op.*member;
            }
        },
        Of<OpRecord>{});
    put_measure(one, "twin_amax", op.compared ? op.twin_amax : -1);
    put_measure(one, "relative_l2", op.compared ? relative_error(op.error_squares, op.twin_squares) : -1);
    put_measure(one, "flush_loss", op.compared && op.twin_abs > 0 ? op.flushed_abs / op.twin_abs : -1);
    if (op.loc_compared && op.loc_squares > 0) put_number(one, "gain_bias", op.loc_dot / op.loc_squares);
    put_phis(one, phis_of(op));
    put_measure(one, "worst_introduced_phi", op.loc_compared ? sum.worst_loc_phi : -1);
    one["worst_introduced_step"] = known(sum.worst_loc.step);
    put_measure(one, "worst_total_phi", op.compared ? sum.worst_cum_phi : -1);
    one["worst_total_step"] = known(sum.worst_cum.step);
    one["absorbed"] =
        op.added ? Json(static_cast<double>(op.absorbed) / static_cast<double>(op.added)) : Json(nullptr);
    return one;
}

struct LayerSum {
    std::uint64_t order = 0, calls = 0, elements = 0, nonfinite = 0;
    bool guessed = false;
    double amax = 0, flushed_abs = 0, twin_abs = 0;
    Phis worst;
    std::set<DType> dtypes;
    Json ops = Json::array(), exponents = Json::array();
};

void add(LayerSum& layer, const OpSum& sum) {
    const OpRecord& op = sum.total;
    layer.order = layer.ops.empty() ? op.first : std::min(layer.order, op.first);
    layer.calls += op.calls;
    layer.elements += op.elements;
    layer.nonfinite += op.nan + op.pos_inf + op.neg_inf;
    layer.guessed |= op.guessed;
    layer.amax = larger(layer.amax, op.amax);
    layer.flushed_abs += op.flushed_abs;
    layer.twin_abs += op.twin_abs;
    // No φ of an fp32 result in the sum of the layer: in floors of fp32 the errors of its low-precision inputs would
    // look immense. The entry of the op has it.
    const Phis phis = is_low_precision(op.dtype) ? phis_of(op) : Phis{};
    layer.worst.introduced = larger(layer.worst.introduced, phis.introduced);
    layer.worst.inherited = larger(layer.worst.inherited, phis.inherited);
    layer.worst.total = larger(layer.worst.total, phis.total);
    layer.dtypes.insert(op.dtype);
    layer.ops.push_back(op_entry(sum));
}

Json layer_entry(const std::string& name, Phase phase, LayerSum& sum) {
    Json one;
    one["layer"] = name;
    one["phase"] = name_of(phase);
    one["order"] = sum.order;
    one["guessed"] = sum.guessed;
    Json dtypes = Json::array();
    for (const DType d : sum.dtypes) dtypes.push_back(name_of(d));
    one["dtypes"] = std::move(dtypes);
    one["calls"] = sum.calls;
    one["elements"] = sum.elements;
    one["nonfinite"] = sum.nonfinite;
    put_number(one, "amax", sum.amax);
    put_measure(one, "flush_loss", sum.twin_abs > 0 ? sum.flushed_abs / sum.twin_abs : -1);
    put_phis(one, sum.worst);
    one["exponents"] = std::move(sum.exponents);
    one["ops"] = std::move(sum.ops);
    return one;
}

bool same_place(const Finding& f, std::string_view layer, std::string_view op, Phase phase) {
    return f.layer == layer && (f.op.empty() || f.op == op) &&
           (f.phase == Phase::unknown || f.phase == phase);
}

std::string_view name_of(Check::Answer answer) {
    switch (answer) {
        case Check::Answer::yes:
            return "yes";
        case Check::Answer::no:
            return "no";
        case Check::Answer::not_observed:
            break;
    }
    return "not observed";
}

}  // namespace

std::string_view name_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::pass:
            return "pass";
        case Outcome::warn:
            return "warn";
        case Outcome::fail:
            return "fail";
        case Outcome::inconclusive:
            break;
    }
    return "inconclusive";
}

Outcome outcome_of(const Judgement& judgement) {
    Severity worst = Severity::note;
    for (const Finding& f : judgement.findings) worst = std::max(worst, f.severity);
    if (worst == Severity::error) return Outcome::fail;
    if (!judgement.inconclusive.empty()) return Outcome::inconclusive;
    return worst == Severity::warning ? Outcome::warn : Outcome::pass;
}

std::string ranks_text(const RunModel& model) {
    const std::uint64_t ranks = ranks_of(model), processes = model.ranks.size();
    return counted(ranks, "rank") + (ranks == processes ? ""
                                                        : " in " + std::to_string(processes) +
                                                              (processes == 1 ? " process" : " processes"));
}

std::string headline_of(const RunModel& model, const Judgement& judgement) {
    if (!judgement.findings.empty() && judgement.findings[0].severity != Severity::note) {
        const Finding& first = judgement.findings[0];
        const bool says_where = first.layer.empty() || first.message.find(first.layer) != std::string::npos;
        return says_where ? first.message : first.layer + ": " + first.message;
    }
    if (!judgement.inconclusive.empty()) return judgement.inconclusive[0];
    return "nothing found in " + counted(model.step_count, "step") + " of " + ranks_text(model);
}

// Every field of the list, and after some of them what follows from them.
void put_coverage(Json& into, const CoverageSum& c) {
    fields(
        [&](const Field& f, auto member) {
            const std::string name(f.name);
            if constexpr (std::is_same_v<decltype(member), double Coverage::*>) {
                put_number(into, name, c.sum.*member);
            } else {
                into[name] = c.sum.*member;
            }
            if (name == "unshadowed") put_measure(into, "ops_fraction", fraction_of_ops(c.sum));
            if (name == "unshadowed_bytes") put_measure(into, "bytes_fraction", fraction_of_bytes(c.sum));
            if (name == "external") {
                into["seeds_after_step_0"] = c.seeds_after_first;
                into["external_after_step_0"] = c.external_after_first;
            }
        },
        Of<Coverage>{});
}

Json verdict_section(const RunModel& model, const Judgement& judgement) {
    std::map<Severity, int> counts;
    for (const Finding& f : judgement.findings) ++counts[f.severity];
    Json out;
    out["result"] = name_of(outcome_of(judgement));
    out["headline"] = headline_of(model, judgement);
    out["loss"] = loss_text(model, judgement);
    out["errors"] = counts[Severity::error];
    out["warnings"] = counts[Severity::warning];
    out["notes"] = counts[Severity::note];
    put_number(out, "samples_lost", judgement.samples_lost);
    out["inconclusive"] = judgement.inconclusive;
    return out;
}

Json findings_section(const Judgement& judgement) {
    Json out = Json::array();
    for (const Finding& f : judgement.findings) out.push_back(finding_entry(f));
    return out;
}

Json first_overflow_section(const Judgement& judgement) {
    const FirstOverflow& o = judgement.first_overflow;
    if (!o.found) return nullptr;
    Json out;
    out["layer"] = o.layer;
    out["op"] = o.op;
    out["phase"] = name_of(o.phase);
    out["dtype"] = name_of(o.dtype);
    out["rank"] = known(o.rank);
    out["device"] = known_device(o.device);
    out["step"] = known(o.step);
    out["source"] = o.source;
    out["nonfinite"] = o.nonfinite;
    out["elements"] = o.elements;
    put_number(out, "input_amax", o.input_amax);
    put_number(out, "twin_amax", o.twin_amax);
    return out;
}

Json layers_section(const RunModel& model) {
    // Sorted by phase, then depth. Ops have that order, and a layer has the place of its first op.
    std::map<std::pair<Phase, std::string_view>, std::size_t> index;
    std::vector<std::pair<std::pair<Phase, std::string_view>, LayerSum>> layers;
    for (const OpSum& op : model.ops) {
        const std::pair<Phase, std::string_view> key{op.total.phase, op.total.layer};
        const auto [it, added] = index.try_emplace(key, layers.size());
        if (added) layers.emplace_back(key, LayerSum{});
        add(layers[it->second].second, op);
    }
    for (const LayerExponents& e : model.exponents) {
        const auto at = index.find({e.phase, e.layer});
        if (at != index.end()) layers[at->second].second.exponents.push_back(exponents_entry(e));
    }
    Json out = Json::array();
    for (auto& [key, sum] : layers) out.push_back(layer_entry(std::string(key.second), key.first, sum));
    return out;
}

Json ladder_section(const Judgement& judgement) {
    Json out = Json::array();
    for (const Rung& r : judgement.ladder) {
        Json one;
        one["layer"] = r.layer;
        one["op"] = r.op;
        one["phase"] = name_of(r.phase);
        one["dtype"] = name_of(r.dtype);
        one["order"] = r.order;
        put_phis(one, {.introduced = r.introduced, .inherited = r.inherited, .total = r.total});
        out.push_back(std::move(one));
    }
    return out;
}

Json skips_section(const Judgement& judgement) {
    Json out = Json::array();
    for (const SkipVerdict& s : judgement.skips) {
        Json one;
        one["step"] = known(s.step);
        one["cause"] = name_of(s.cause);
        one["parameter"] = s.parameter;
        one["layer"] = s.layer;
        one["op"] = s.op;
        one["rank"] = known(s.rank);
        one["device"] = known_device(s.device);
        put_number(one, "loss_scale", s.loss_scale);
        one["ranks_disagree"] = s.ranks_disagree;
        one["why"] = s.why;
        out.push_back(std::move(one));
    }
    return out;
}

Json loss_scale_section(const RunModel& model) {
    Json out = Json::array();
    double last = std::nan("");
    for (const StepSummary& s : model.steps) {
        // The exact value is compared. A NaN scale differs from itself, so it is listed at every step.
        if (!s.has_loss_scale || s.loss_scale == last) continue;
        last = s.loss_scale;
        Json one;
        one["step"] = known(s.step);
        put_number(one, "loss_scale", s.loss_scale);
        out.push_back(std::move(one));
    }
    return out;
}

std::string shown_dtype(DType dtype) {
    return dtype == DType::tf32 ? "fp32 (TF32)" : std::string(name_of(dtype));
}

Json dtype_map_section(const RunModel& model) {
    Json out = Json::array();
    for (const PlaceTotal& p : model.places) {
        out.push_back({{"role", name_of(p.place.role)},
                       {"layer", p.place.layer},
                       {"phase", name_of(p.place.phase)},
                       {"dtype", shown_dtype(p.place.dtype)},
                       {"tensors", p.place.tensors},
                       {"elements", p.place.elements},
                       {"first_step", known(p.first_step)}});
    }
    return out;
}

Json checks_section(const Judgement& judgement) {
    Json out = Json::array();
    for (const Check& c : judgement.checks)
        out.push_back({{"sentence", c.sentence},
                       {"answer", name_of(c.answer)},
                       {"evidence", c.evidence},
                       {"violated", c.violated}});
    return out;
}

Json collectives_section(const RunModel& model) {
    Json out = Json::array();
    for (const CollectiveTotal& c : model.collectives) {
        Json one;
        one["op"] = c.total.op;
        one["reduction"] = c.total.reduction;
        one["dtype"] = name_of(c.total.dtype);
        one["group"] = c.total.group;
        one["calls"] = c.total.calls;
        one["bytes"] = c.total.bytes;
        put_measure(one, "relative_l2",
                    c.total.compared ? relative_error(c.total.error_squares, c.total.sum_squares) : -1);
        put_measure(one, "worst_phi", c.total.compared ? c.worst_phi : -1);
        one["worst_step"] = known(c.worst_at.step);
        one["made_nonfinite"] = c.total.made_nonfinite;
        one["first_nonfinite_step"] = known(c.first_nonfinite);
        one["sketched_blocks"] = c.sketched;
        one["differing_blocks"] = c.differing;
        one["algorithms"] = c.total.algorithms;
        one["memory"] = c.total.memory;
        out.push_back(std::move(one));
    }
    return out;
}

Json figures_section(const RunModel& model) {
    Json out = Json::array();
    for (const FigureBasis& f : figures_of(model))
        out.push_back({{"basis", name_of(f.basis)}, {"what", f.what}, {"count", f.count}, {"unit", f.unit}});
    return out;
}

Json products_section(const RunModel& model) {
    Json out = Json::array();
    for (const ProductSum& p : model.products) {
        Json one = {{"layer", p.worst.layer},
                    {"op", p.worst.op},
                    {"phase", name_of(p.worst.phase)},
                    {"dtype", name_of(p.worst.dtype)},
                    {"sketched", p.products}};
        put_measure(one, "error", relative_error(p.error_squares, p.squares));
        put_measure(one, "times_rounding", relative_error(p.error_squares, p.rounding_squares));
        one["worst_row"] = p.worst.first_row;
        one["rows"] = p.worst.rows;
        put_measure(one, "worst_error", relative_error(p.worst.block_error_squares, p.worst.block_squares));
        put_measure(one, "worst_times_rounding",
                    relative_error(p.worst.block_error_squares, p.worst.block_rounding_squares));
        out.push_back(std::move(one));
    }
    return out;
}

Json matmuls_section(const RunModel& model) {
    Json out = Json::array();
    for (const MatmulRecord& r : model.matmuls)
        out.push_back({{"layer", r.layer},
                       {"op", r.op},
                       {"phase", name_of(r.phase)},
                       {"a", name_of(r.a)},
                       {"b", name_of(r.b)},
                       {"result", name_of(r.result)},
                       {"how", r.how},
                       {"calls", r.calls},
                       {"m", r.m},
                       {"n", r.n},
                       {"k", r.k},
                       {"batches", r.batches}});
    return out;
}

Json times_section(const RunModel& model) {
    Json out = Json::array();
    for (const DeviceTime& t : model.times)
        out.push_back({{"layer", t.layer},
                       {"phase", name_of(t.phase)},
                       {"kernels", t.kernels},
                       {"device_ns", t.device_ns}});
    return out;
}

const OpSum* op_of(const RunModel& model, const Finding& finding) {
    for (const OpSum& op : model.ops) {
        if (!finding.layer.empty() && same_place(finding, op.total.layer, op.total.op, op.total.phase))
            return &op;
    }
    return nullptr;
}

const Rung* rung_of(const Judgement& judgement, const Finding& finding) {
    for (const Rung& rung : judgement.ladder) {
        if (!finding.layer.empty() && same_place(finding, rung.layer, rung.op, rung.phase)) return &rung;
    }
    return nullptr;
}

}  // namespace mp::trace
