#include "runtime/judge/finding_json.hpp"

#include <cmath>

#include "runtime/trace/display.hpp"

namespace mp::trace {

void put_number(Json& into, const std::string& key, double value) {
    if (std::isfinite(value)) {
        into[key] = value;
    } else {
        into[key] = nullptr;
        into[key + "_hex"] = hex_of(value);
    }
}

Json known(Rank rank) { return rank.known() ? Json(rank.value) : Json(nullptr); }
Json known(Step step) { return step.known() ? Json(step.value) : Json(nullptr); }

Json known_device(int device) { return device >= 0 ? Json(device) : Json(nullptr); }

Json finding_entry(const Finding& f) {
    Json one;
    one["rule"] = f.rule;
    one["name"] = f.name;
    one["severity"] = name_of(f.severity);
    one["layer"] = f.layer;
    one["op"] = f.op;
    one["phase"] = name_of(f.phase);
    one["rank"] = known(f.rank);
    one["device"] = known_device(f.device);
    one["step"] = known(f.step);
    one["source"] = f.source;
    one["message"] = f.message;
    one["advice"] = f.advice;
    put_number(one, "value", f.value);
    put_number(one, "limit", f.limit);
    one["unit"] = f.unit;
    if (f.basis != Basis::unknown) one["basis"] = name_of(f.basis);
    put_number(one, "importance", f.importance);
    one["confirmed_by"] = f.confirmed_by;
    one["more_layers"] = f.more_layers;
    return one;
}

}  // namespace mp::trace
