#include "instrument/cuda/ranges.hpp"

#include "instrument/cuda/range_names.hpp"

namespace mp::raw {
namespace {

Place inner_of(const Place& outer, std::string_view range) {
    Place place = outer;
    const Phase phase = phase_of_range(range);
    if (phase != Phase::unknown) place.phase = phase;
    place.in_phase = false;
    if (!outer.numbered && is_numbered_layer(range)) {
        place.numbered = true;
        place.layer = range;
        return place;
    }
    if (phase != Phase::unknown && !outer.phased && outer.layer.empty()) {
        place.phased = place.in_phase = true;
        place.layer = range;
        return place;
    }
    if (outer.in_phase) place.layer.clear();
    place.layer += (place.layer.empty() ? "" : "/") + std::string(range);
    return place;
}

}  // namespace

const Place& Places::child(PlaceId parent, std::string_view range) {
    const std::lock_guard lock(mutex_);
    const std::pair<PlaceId, std::string> key(parent, range);
    const auto found = children_.find(key);
    if (found != children_.end()) return places_[found->second];
    if (places_.size() >= kMost) {
        ++dropped_;
        return places_[parent];
    }
    const auto id = static_cast<PlaceId>(places_.size());
    Place& place = places_.emplace_back(inner_of(places_[parent], range));
    place.id = id;
    children_.emplace(key, id);
    return place;
}

const Place& Places::operator[](PlaceId id) const {
    const std::lock_guard lock(mutex_);
    return places_[id < places_.size() ? id : 0];
}

std::uint64_t Places::dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
}

bool ThreadRanges::push(PlaceId inner, std::uint32_t domain, bool is_step) noexcept {
    if (depth == kDeepest) {
        ++beyond;
        return false;
    }
    open[depth++] = {place, domain, is_step};
    place = inner;
    return true;
}

bool ThreadRanges::pop(std::uint32_t domain, bool& unbalanced) noexcept {
    unbalanced = false;
    if (beyond > 0) {
        --beyond;
        return false;
    }
    for (int at = depth - 1; at >= 0; --at) {
        if (open[at].domain != domain) continue;
        const bool was_step = open[at].is_step;
        // Ranges of other domains may overlap this one; the place of those above stays as it was.
        if (at == depth - 1) place = open[at].before;
        for (int above = at; above + 1 < depth; ++above) open[above] = open[above + 1];
        if (--depth == 0) place = 0;
        return was_step;
    }
    unbalanced = true;
    return false;
}

}  // namespace mp::raw
