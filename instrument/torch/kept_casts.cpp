#include "instrument/torch/kept_casts.hpp"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <utility>

#include "instrument/torch/tensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {

// While autocast runs an op, its dispatch key is excluded.
bool autocast_keeps(const at::Tensor& copy, const at::Tensor& source) {
    if (!has_plain_memory(source) || !has_plain_memory(copy)) return false;
    if (source.scalar_type() != at::kFloat || !is_low_precision(copy.scalar_type())) return false;
    if (!source.requires_grad() || !source.is_leaf() || source.is_view()) return false;
    const auto key = at::autocast::get_autocast_dispatch_key_from_device_type(source.device().type());
    if (!at::autocast::is_autocast_cache_enabled() || !c10::impl::tls_is_dispatch_key_excluded(key))
        return false;
    const int regions = at::autocast::increment_nesting() - 1;
    at::autocast::decrement_nesting();
    return regions > 0 && copy.strides() == source.strides() && copy.storage_offset() == 0;
}

void KeptCasts::made(const at::Tensor& copy, const at::Tensor& source) {
    c10::StorageImpl* const storage = copy.storage().unsafeGetStorageImpl();
    Cast cast{.copy = decltype(Cast::copy)(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)),
              .source = decltype(Cast::source)(source.getIntrusivePtr())};
    const std::lock_guard lock(mutex_);
    if (casts_.size() >= room_) {
        drop_freed();
        room_ = std::max<std::size_t>(1024, 2 * casts_.size());
    }
    casts_.insert_or_assign(storage, std::move(cast));
}

// A program without steps, or one that makes many casts in a step, keeps no more than twice those that are alive.
void KeptCasts::drop_freed() {
    std::erase_if(casts_, [](const auto& entry) { return entry.second.copy.expired(); });
}

void KeptCasts::step_ended() {
    const std::lock_guard lock(mutex_);
    drop_freed();
    for (auto& [storage, cast] : casts_) cast.old = true, cast.looked_at = false;
    any_old_ = !casts_.empty();
}

// The weight, if `copy` is a kept copy of an earlier step that this step has not compared yet.
at::Tensor KeptCasts::source_to_look_at(const at::Tensor& copy) {
    const std::lock_guard lock(mutex_);
    const auto found = casts_.find(copy.storage().unsafeGetStorageImpl());
    if (found == casts_.end() || !found->second.old || found->second.looked_at) return {};
    found->second.looked_at = true;
    auto held = found->second.source.lock();
    return held ? at::Tensor(std::move(held)) : at::Tensor();
}

void KeptCasts::read(const at::Tensor& t) {
    if (!has_plain_memory(t)) return;
    const at::Tensor source = source_to_look_at(t);
    if (!source.defined() || !has_plain_memory(source)) return;
    const auto elements = static_cast<std::size_t>(source.numel());
    if (t.storage().nbytes() != elements * t.element_size()) return;
    if (source.storage().nbytes() < elements * source.element_size()) return;  // a shard whose whole is freed
    const TwinScope scope;
    compare(t.as_strided(source.sizes(), source.strides(), 0), source);
}

// A copy is outdated only if the weight would be cast to other bits now: weights may be written again with the same
// values, or not be trained.
void KeptCasts::compare(const at::Tensor& copy, const at::Tensor& source) {
    const at::Tensor now = source.detach().to(copy.scalar_type());
    const LayerId owner = parameters_.layer_of(source);
    const auto say = [this, step = now_.number.load(),
                      layer = layers_.name(owner ? owner : thread_state().site.layer)] {
        notes_.say(trace::NoteKind::outdated_copy, layer, step);
    };
    if (!late_.serves(copy)) {
        if (!at::equal(copy, now)) say();
        return;
    }
    late_.then([say, differing = late_.value(copy.ne(now).sum())](LateStep&) {
        if (differing.known() && differing.get() > 0) say();
    });
}

}  // namespace mp::twin
