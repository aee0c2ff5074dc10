// SARIF 2.1.0, in the shape of mp-lint's, so that a viewer merges both.

#include <algorithm>
#include <map>

#include "kernels/base/files.hpp"
#include "kernels/base/reports/sarif.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/gate/gate_words.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

using sarif::Json;

// "train.py:88" as a location; null when it is none.
Json location_of(std::string_view source) {
    const std::size_t colon = source.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == source.size() ||
        source.size() - colon > 9)
        return {};
    int line = 0;
    for (const char c : source.substr(colon + 1)) {
        if (c < '0' || c > '9') return {};
        line = line * 10 + (c - '0');
    }
    if (line == 0) return {};
    return {{"artifactLocation", sarif::artifact(source.substr(0, colon))},
            {"region", {{"startLine", line}}}};
}

// Survives another step, rank or figure: over what is wrong where.
std::string fingerprint_of(const Finding& f, unsigned ordinal) {
    std::string text;
    for (const std::string_view part :
         {std::string_view(f.rule), std::string_view(f.layer), std::string_view(f.op), name_of(f.phase)})
        text.append(part) += '\0';
    text += std::to_string(ordinal);
    static constexpr char kDigits[] = "0123456789abcdef";
    const std::uint64_t hash = hash_bytes(text);
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(hash >> shift) & 15];
    return out;
}

class Writer {
public:
    explicit Writer(const GateResult& gate) : gate_(gate) {}

    Json write(const std::string& run) {
        Json out = sarif::run_of("mp-trace", driver());
        out["results"] = results();
        out["properties"] = {{"run", run}, {"verdict", name_of(gate_.verdict)}};
        out["invocations"] = Json::array({invocation()});
        return sarif::log_of(std::move(out));
    }

private:
    Json driver() const {
        Json out = {{"name", "mp-trace"}, {"rules", Json::array()}};
        for (const RuleResult& r : gate_.rules)
            out["rules"].push_back({{"id", r.id},
                                    {"name", r.name},
                                    {"shortDescription", {{"text", r.id + " " + title_of(r)}}},
                                    {"properties", sarif::tags()}});
        return out;
    }

    Json results() {
        Json out = Json::array();
        for (const bool suppressed : {false, true}) {
            for (std::size_t i = 0; i < gate_.rules.size(); ++i) {
                const RuleResult& r = gate_.rules[i];
                for (const Finding& f : suppressed ? r.suppressed : r.findings) {
                    if (out.size() < sarif::kMostResults)
                        out.push_back(result(f, i, suppressed));
                    else
                        ++dropped_;
                }
            }
        }
        return out;
    }

    Json result(const Finding& f, std::size_t rule, bool suppressed) {
        Json out = {{"ruleId", f.rule}, {"ruleIndex", rule}, {"level", name_of(f.severity)}};
        out["message"] = {{"text", sarif::message(f.message, f.advice)}};
        Json place = Json::object();
        if (Json physical = location_of(f.source); !physical.is_null())
            place["physicalLocation"] = std::move(physical);
        Json logical = {{"fullyQualifiedName", f.layer.empty() ? std::string("run") : f.layer}};
        if (!f.op.empty()) logical["name"] = f.op;
        place["logicalLocations"] = Json::array({std::move(logical)});
        out["locations"] = Json::array({std::move(place)});
        const unsigned ordinal =
            seen_[f.rule + '\0' + f.layer + '\0' + f.op + '\0' + std::string(name_of(f.phase))]++;
        out["partialFingerprints"] = {{"mpTrace/v1", fingerprint_of(f, ordinal)}};
        if (suppressed) out["suppressions"] = Json::array({{{"kind", "external"}}});
        Json more = {{"phase", name_of(f.phase)}, {"confirmedBy", f.confirmed_by}};
        if (!f.more_layers.empty()) more["moreLayers"] = f.more_layers;
        if (f.step.known()) more["step"] = f.step.value;
        if (f.rank.known()) more["rank"] = f.rank.value;
        if (f.device >= 0) more["device"] = f.device;
        out["properties"] = std::move(more);
        return out;
    }

    Json invocation() const {
        Json notifications = Json::array();
        auto note = [&notifications](const std::string& text) {
            notifications.push_back(sarif::notification("warning", text));
        };
        for (const std::string& why : gate_.inconclusive) note("inconclusive: " + why);
        for (const Suppression& s : gate_.expired) note("suppression expired: " + suppression_text(s));
        for (const Suppression& s : gate_.unused) note("suppression matches nothing: " + suppression_text(s));
        if (dropped_ > 0) note(std::to_string(dropped_) + " results are left out");
        return sarif::invocation(gate_.verdict != Verdict::inconclusive, std::move(notifications));
    }

    const GateResult& gate_;
    std::map<std::string, unsigned> seen_;
    std::size_t dropped_ = 0;
};

}  // namespace

std::string gate_sarif(const GateResult& gate, const std::string& run) {
    return sarif::written(Writer(gate).write(run));
}

}  // namespace mp::trace
