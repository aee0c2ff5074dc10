// The fp32 masters of 16-bit parameters: whose update arrives in them is not lost in the parameter.

#include <algorithm>

#include "instrument/torch/parameters.hpp"
#include "instrument/torch/tensor_figures.hpp"

namespace mp::twin {

// Searches for the masters of all parameters once, then for those of parameters that stagnated without one.
void Parameters::find_masters(const std::vector<Live>& all) {
    std::vector<at::Tensor> low;
    std::vector<const std::string*> names;
    for (const Live& l : all) {
        if (l.kind == trace::TensorKind::parameter || l.kind == trace::TensorKind::optimizer_state)
            masters_.saw(l.tensor);
        if (l.kind != trace::TensorKind::parameter || !Masters::can_have_one(l.tensor)) continue;
        const auto known = mastered_.find(l.name);
        if (known == mastered_.end() ? searched_ && suspects_.count(l.name) == 0
                                     : holds(known->second, l.tensor))
            continue;
        if (refuted_.count(l.name)) continue;
        low.push_back(l.tensor);
        names.push_back(&l.name);
    }
    searched_ = true;
    const auto found = masters_.find(low, true);
    for (std::size_t i = 0; i < found.size(); ++i) {
        std::vector<Master>& masters = mastered_[*names[i]];
        // What is made anew in every step and has moved before stays under suspicion.
        const bool moved =
            std::any_of(masters.begin(), masters.end(), [](const Master& m) { return m.moved; });
        masters.clear();
        for (const Masters::Slice& slice : found[i]) masters.push_back({slice, moved});
        if (masters.empty()) mastered_.erase(*names[i]);
    }
}

// Whether a master that an optimizer moves still has the bits.
bool Parameters::holds(const std::vector<Master>& masters, const at::Tensor& low) {
    return std::any_of(masters.begin(), masters.end(), [&](const Master& master) {
        const at::Tensor wide = master.slice.wide(), own = master.slice.of(low);
        return master.moved && wide.defined() && own.defined() && Masters::rounds_to(wide, own);
    });
}

void Parameters::keep_masters(const std::vector<Live>& all, ShadowMap* shadows) {
    for (const Live& l : all) {
        const auto known = l.kind == trace::TensorKind::parameter ? mastered_.find(l.name) : mastered_.end();
        if (known == mastered_.end()) continue;
        std::vector<Master>& masters = known->second;
        const bool moved = masters.front().moved;
        const auto is_none = [&](const Master& m) {
            const at::Tensor wide = m.slice.wide(), own = m.slice.of(l.tensor);
            return !wide.defined() || !own.defined() || (m.moved && !Masters::carries_more(wide, own));
        };
        masters.erase(std::remove_if(masters.begin(), masters.end(), is_none), masters.end());
        if (masters.empty()) {  // its bits went back to those of the 16-bit weights
            if (moved) refuted_.insert(l.name);
            mastered_.erase(known);
            continue;
        }
        for (Master& master : masters) {
            const at::Tensor wide = master.slice.wide();
            master.before = wide.clone();
            // The first update of an exact copy arrives whether or not the copy lives on, and so tells nothing.
            if (!shadows || !Masters::carries_more(wide, master.slice.of(l.tensor))) continue;
            const at::Tensor twin = shadows->find(wide).shadow;
            if (twin.defined()) master.twin_before = twin.clone();
        }
    }
}

void Parameters::follow_masters(std::vector<trace::TensorRecord>& records,
                                const std::vector<at::Tensor>& measured, ShadowMap* shadows) {
    std::vector<at::Tensor> low;
    std::vector<trace::TensorRecord*> sought;
    for (std::size_t i = 0; i < records.size(); ++i) {
        trace::TensorRecord& r = records[i];
        const auto known = mastered_.find(r.name);
        if (known != mastered_.end() && follow_master(r, known->second, shadows)) continue;
        if (r.unmoved <= r.meant_to_move / 4 || refuted_.count(r.name) || !Masters::can_have_one(measured[i]))
            continue;
        suspects_.insert(r.name);
        low.push_back(measured[i]);
        sought.push_back(&r);
    }
    const auto found = masters_.find(low, false);
    for (std::size_t i = 0; i < found.size(); ++i) {
        trace::TensorRecord& r = *sought[i];
        const auto known = mastered_.find(r.name);
        // A copy that did not move in this step is no master.
        const auto fresh = std::find_if(found[i].begin(), found[i].end(), [&](const Masters::Slice& slice) {
            return known == mastered_.end() ||
                   std::none_of(known->second.begin(), known->second.end(), [&](const Master& m) {
                       const at::Tensor wide = m.slice.wide();
                       return wide.defined() && wide.data_ptr() == slice.wide().data_ptr();
                   });
        });
        if (fresh != found[i].end()) {
            Master master{*fresh, true};
            if (known != mastered_.end()) {
                master.before = known->second.front().before;
                master.twin_before = known->second.front().twin_before;
            }
            put_master_figures(r, master, fresh->wide(), shadows);
            mastered_[r.name] = {std::move(master)};
        } else if (several_ranks_ && !mastered_.empty() && known == mastered_.end()) {
            put(r, {}, false);  // another rank may hold its master
        }
    }
}

// Whether the record now has the figures of a master. What no optimizer has moved is none: a copy of the first weights
// may lie about.
bool Parameters::follow_master(trace::TensorRecord& r, std::vector<Master>& masters, ShadowMap* shadows) {
    for (Master& master : masters) {
        const at::Tensor wide = master.slice.wide();
        if (!wide.defined()) continue;
        if (master.before.defined()) master.moved |= !at::equal(wide, master.before);
        if (!master.moved) continue;
        put_master_figures(r, master, wide, shadows);
        // It kept more bits than its copy from the step before, so nothing is lost. How far its way is from the twin's
        // says how far the runs have parted. Only what is made anew has to show that its update arrives.
        if (master.before.defined()) r.wanted_squares = r.moved_dot = 0;
        if (&master != &masters.front()) std::swap(master, masters.front());
        masters.resize(1, masters.front());
        return true;
    }
    return false;
}

void Parameters::put_master_figures(trace::TensorRecord& r, const Master& master, const at::Tensor& wide,
                                    ShadowMap* shadows) {
    put(r, {}, false);
    r.mastered = static_cast<std::uint64_t>(master.slice.length());
    if (!shadows || !master.twin_before.defined() || master.before.sizes() != wide.sizes()) return;
    const at::Tensor twin = shadows->find(wide).shadow;
    if (!twin.defined()) return;
    if (const auto still = stagnation_of({master.before, wide, master.twin_before, twin}))
        put(r, *still, true);
}

}  // namespace mp::twin
