#include "instrument/torch/shadow_map.hpp"

#include "instrument/torch/tensors.hpp"
#include "instrument/torch/test_hooks.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

// A NaN that arithmetic does not produce: a lane with it holds no float of the twin.
constexpr std::int32_t kEmptyLane = 0x7FA5A5A5;

std::size_t component_bytes(at::ScalarType type) {
    const std::size_t bytes = c10::elementSize(type);
    return c10::isComplexType(type) ? bytes / 2 : bytes;
}

at::ScalarType component_type(at::ScalarType type) {
    if (!c10::isComplexType(type)) return type;
    if (type == at::kComplexDouble) return at::kDouble;
    return type == at::kComplexFloat ? at::kFloat : at::kHalf;
}

std::size_t storage_bytes(const at::Tensor& t) { return t.storage().nbytes(); }

// A tensor over given memory, made without the dispatcher and with ordinary view keys, so that it serves
// under inference mode too.
at::Tensor view_of(const c10::Storage& storage, at::ScalarType type, at::IntArrayRef sizes,
                   at::IntArrayRef strides, std::int64_t offset) {
    const c10::DispatchKey backend = c10::computeDispatchKey(type, c10::nullopt, storage.device());
    const c10::DispatchKeySet key(backend);
    const c10::DispatchKeySet keys =
        key | c10::getAutogradRelatedKeySetFromBackend(c10::toBackendComponent(backend));
    at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(storage),
                                                               keys, c10::scalarTypeToTypeMeta(type));
    view.unsafeGetTensorImpl()->set_storage_offset(offset);
    view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    return view;
}

// As above, with the geometry of a real tensor, and its lazy conjugation or negation.
at::Tensor view_like(const at::Tensor& real, const c10::Storage& storage, at::ScalarType type) {
    at::Tensor view = view_of(storage, type, real.sizes(), real.strides(), real.storage_offset());
    if (real.is_conj()) view._set_conj(true);
    if (real.is_neg()) view._set_neg(true);
    return view;
}

at::Tensor flat_of(const c10::Storage& storage, at::ScalarType type, std::size_t elements) {
    const std::int64_t size = static_cast<std::int64_t>(elements);
    return view_of(storage, type, {size}, {1}, 0);
}

at::Tensor allocate(const at::Tensor& real, at::ScalarType type, std::size_t elements) {
    c10::InferenceMode ordinary(false);
    return at::empty({static_cast<std::int64_t>(elements)}, at::TensorOptions(type).device(real.device()));
}

bool covers_storage(const at::Tensor& t) {
    return static_cast<std::size_t>(t.numel()) * t.element_size() == storage_bytes(t) &&
           t.is_non_overlapping_and_dense();
}

bool can_fingerprint(const at::Tensor& t) { return t.device().is_cpu() && !rule_disabled("fingerprint"); }

bool same_layout(const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset() &&
           a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

}  // namespace

struct ShadowMap::Offer {
    c10::weak_intrusive_ptr<c10::TensorImpl> indices;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // of the indices
    std::size_t saved;
    const OpInfo* maker;
    c10::Storage values;  // the twin's choice, laid out as the shadow
};

class ShadowMap::Locked {
public:
    explicit Locked(ShadowMap& map) : map_(map) { map_.mutex_.lock(); }
    ~Locked() {
        const auto dropped = std::move(map_.dropped_);
        map_.dropped_.clear();
        map_.mutex_.unlock();
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

private:
    ShadowMap& map_;
};

ShadowMap::ShadowMap(CoverageCounters& coverage) : coverage_(coverage) {}
ShadowMap::~ShadowMap() = default;

ShadowMap::Shadow* ShadowMap::entry(const at::Tensor& real) {
    const auto it = shadows_.find(real.storage().unsafeGetStorageImpl());
    if (it == shadows_.end()) return nullptr;
    // The weak pointer keeps the address in use, so an expired entry cannot be this storage. A resized storage can.
    if (it->second.real_bytes == storage_bytes(real)) return &it->second;
    erase(it->second);
    return nullptr;
}

ShadowMap::Shadow& ShadowMap::make(const at::Tensor& real) {
    c10::StorageImpl* storage = real.storage().unsafeGetStorageImpl();
    auto it = shadows_.find(storage);
    if (it == shadows_.end()) {
        release_some();
        auto held = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage);
        Shadow fresh{.storage = c10::weak_intrusive_ptr<c10::StorageImpl>(held)};
        fresh.older = newest_;
        it = shadows_.emplace(storage, std::move(fresh)).first;
        if (newest_) newest_->newer = &it->second;
        newest_ = &it->second;
    }
    Shadow& made = it->second;
    lose(made);
    made.real_bytes = storage_bytes(real);
    ++made.writes;
    made.source.reset();
    made.fingerprint_known = false;
    made.maker = nullptr;
    drop(std::move(made.offer));
    return made;
}

void ShadowMap::lose(Shadow& shadow) {
    if (shadow.memory) dropped_.emplace_back(std::move(shadow.memory));
    if (shadow.other.defined()) dropped_.emplace_back(std::move(shadow.other));
    shadow.memory = c10::Storage();
    shadow.other.reset();
    shadow.view.reset();
    shadow.found_stale = false;
}

void ShadowMap::drop(std::unique_ptr<Offer> offer) {
    if (offer && offer->values) dropped_.emplace_back(std::move(offer->values));
}

// Most tensors have the same geometry as in the last look-up.
at::Tensor ShadowMap::view(Shadow& shadow, const at::Tensor& real) {
    const at::ScalarType type = twin_dtype(real.scalar_type());
    const bool same =
        shadow.view.defined() && shadow.view.scalar_type() == type && same_layout(real, shadow.view);
    if (!same) shadow.view = view_like(real, shadow.memory, type);
    // The program orders its streams for its own memory, but a shadow may be made on another stream, and freed at
    // another time.
    record_use(shadow.memory);
    return shadow.view;
}

void ShadowMap::erase(Shadow& shadow) {
    if (shadow.newer)
        shadow.newer->older = shadow.older;
    else
        newest_ = shadow.older;
    if (shadow.older) shadow.older->newer = shadow.newer;
    if (next_looked_at_ == &shadow) next_looked_at_ = shadow.older;
    lose(shadow);
    drop(std::move(shadow.offer));
    shadows_.erase(shadow.storage._unsafe_get_target());
}

// PyTorch does not report when a storage is freed. Each new shadow therefore checks the 8 youngest shadows, and 4
// others in rotation. The youngest are the likeliest to be free: temporaries live briefly, and backward frees
// activations last to first.
void ShadowMap::release_some() {
    constexpr int kYoungest = 8;
    constexpr int kInTurn = 4;
    Shadow* shadow = newest_;
    for (int i = 0; i < kYoungest && shadow; ++i) {
        Shadow* const older = shadow->older;
        if (shadow->storage.expired()) erase(*shadow);
        shadow = older;
    }
    for (int i = 0; i < kInTurn; ++i) {
        if (!next_looked_at_) next_looked_at_ = newest_;
        if (!next_looked_at_) return;
        Shadow& looked_at = *next_looked_at_;
        next_looked_at_ = looked_at.older;
        if (looked_at.storage.expired()) erase(looked_at);
    }
}

void ShadowMap::sweep() {
    for (Shadow* shadow = newest_; shadow;) {
        Shadow* const older = shadow->older;
        if (shadow->storage.expired()) erase(*shadow);
        shadow = older;
    }
}

bool ShadowMap::stale(const Shadow& shadow, const at::Tensor& real) const {
    return shadow.fingerprint_known && can_fingerprint(real) && fingerprint_of(real) != shadow.fingerprint;
}

ShadowMap::Lookup ShadowMap::find(const at::Tensor& real) {
    Lookup found;
    Rest rest;
    {
        const Locked lock(*this);
        found = look_up(real, rest);
    }
    if (rest.lanes) found.shadow = from_lanes(real, rest.lanes);
    if (rest.to.defined()) rest.to.copy_(rest.from);
    return found;
}

ShadowMap::Lookup ShadowMap::look_up(const at::Tensor& real, Rest& rest) {
    Shadow* shadow = entry(real);
    if (!shadow) return {};
    if (shadow->maker) return look_up_integers(*shadow, real);
    const OpInfo* const decider = shadow->offer ? settle(*shadow) : nullptr;
    if (!shadow->memory) return {{}, shadow->left || shadow->found_stale ? Found::stale : Found::lost};
    if (shadow->left || stale(*shadow, real)) {
        lose(*shadow);
        shadow->found_stale = true;
        return {{}, Found::stale};
    }
    const at::ScalarType type = real.scalar_type();
    const bool is_float = carries_floats(real);
    if (is_float && shadow->lane_bytes == 1 && component_bytes(type) != 1) {
        rest.lanes = shadow->memory;
        return {{}, Found::hit};
    }
    const at::ScalarType wanted = is_float ? component_type(twin_dtype(type)) : type;
    if (shadow->type != wanted || shadow->lane_bytes != component_bytes(type)) {
        // The memory is now read as another type. For integers the real values are used.
        return {{}, is_float ? Found::lost : Found::unknown};
    }
    if (shadow->source) follow_source(*shadow, real, rest);
    return {.shadow = view(*shadow, real), .found = Found::hit, .decider = decider};
}

void ShadowMap::is_cast_of(const at::Tensor& copy, const at::Tensor& source) {
    const Locked lock(*this);
    Shadow* const from = entry(source);
    Shadow* const made = entry(copy);
    if (!from || !made || !made->memory) return;
    made->source.emplace(source.getIntrusivePtr());
    made->source_writes = from->writes;
}

// If the source was written. A backward reads the values of its forward, whoever wrote the source since.
void ShadowMap::follow_source(Shadow& copy, const at::Tensor& real, Rest& rest) {
    auto held = copy.source->lock();
    if (!held) return copy.source.reset();
    const at::Tensor source(std::move(held));
    dropped_.emplace_back(source);  // if this is the last reference, freeing it may run Python
    if (thread_state().autograd_depth > 0 ||
        static_cast<std::size_t>(source.numel()) * component_bytes(real.scalar_type()) != copy.real_bytes)
        return;
    Shadow* const from = entry(source);
    if (!from || !from->memory || from->writes == copy.source_writes) return;
    copy.source_writes = from->writes;
    rest.to = view_of(copy.memory, copy.type, source.sizes(), source.strides(), 0);
    rest.from = view(*from, source);
}

ShadowMap::Lookup ShadowMap::look_up_integers(Shadow& shadow, const at::Tensor& real) {
    if (real.scalar_type() != shadow.type) return {};  // read as another type: the real values are used
    if (shadow.other_size)
        return {covers_storage(real) ? shadow.other : at::Tensor(), Found::own, shadow.maker};
    if (shadow.readers == Readers::nobody) return {{}, Found::unknown, shadow.maker};
    const Found found = shadow.readers == Readers::everyone ? Found::hit : Found::own;
    return {view(shadow, real), found, shadow.maker};
}

at::Tensor ShadowMap::seed(const at::Tensor& real, bool overwritten) {
    const at::ScalarType type = real.scalar_type();
    const std::size_t elements = storage_bytes(real) / component_bytes(type);
    const at::Tensor buffer = allocate(real, component_type(twin_dtype(type)), elements);
    if (!(overwritten && covers_storage(real)))
        buffer.copy_(flat_of(real.storage(), component_type(type), elements));
    const Locked lock(*this);
    Shadow& shadow = make(real);
    shadow.lane_bytes = component_bytes(type);
    shadow.type = buffer.scalar_type();
    shadow.memory = buffer.storage();
    return view(shadow, real);
}

void ShadowMap::bind(const at::Tensor& real, const at::Tensor& shadow) {
    const at::ScalarType type = real.scalar_type();
    const std::size_t elements = storage_bytes(real) / component_bytes(type);
    const at::ScalarType wanted = twin_dtype(type);
    const bool own = shadow.has_storage() && shadow.storage().use_count() == 1 &&
                     shadow.scalar_type() == wanted &&
                     storage_bytes(shadow) / component_bytes(wanted) == elements && same_layout(real, shadow);
    if (own) {
        const Locked lock(*this);
        Shadow& made = make(real);
        made.lane_bytes = component_bytes(type);
        made.memory = shadow.storage();
        made.type = component_type(wanted);
        if (!shadow.is_inference()) made.view = shadow;
        if (carries_floats(real)) set_fingerprint(made, real, false);
        return;
    }
    if (carries_floats(real) && has_other_order(real, shadow)) coverage_.relaid();
    const Lookup found = find(real);
    (found.shadow.defined() ? found.shadow : seed(real, true)).copy_(shadow);
    const Locked lock(*this);
    Shadow* const filled = carries_floats(real) ? entry(real) : nullptr;
    if (filled) set_fingerprint(*filled, real, false);
}

void ShadowMap::bind_integers(const at::Tensor& real, const at::Tensor& twin, const OpInfo& maker,
                              Readers readers) {
    bind(real, twin);
    const Locked lock(*this);
    Shadow& shadow = *entry(real);
    shadow.maker = &maker;
    shadow.readers = readers;
    shadow.other_size = false;
}

void ShadowMap::bind_others(const at::Tensor& real, const at::Tensor& twin, const OpInfo& maker) {
    const Locked lock(*this);
    Shadow& shadow = make(real);
    shadow.type = real.scalar_type();
    shadow.maker = &maker;
    shadow.other_size = true;
    shadow.other = twin;
}

void ShadowMap::offer(const at::Tensor& values, const at::Tensor& indices, const Choice& choice) {
    bind_integers(indices, choice.indices, choice.maker, Readers::nobody);
    if (!covers_storage(values)) return;
    const at::ScalarType type = values.scalar_type();
    const at::Tensor own =
        allocate(values, component_type(twin_dtype(type)), storage_bytes(values) / component_bytes(type));
    view_like(values, own.storage(), twin_dtype(type)).copy_(choice.values);
    const Locked lock(*this);
    Shadow* const shadow = entry(values);
    if (!shadow || !shadow->memory || shadow->memory.nbytes() != own.storage().nbytes()) return;
    const auto storage =
        c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(indices.storage().unsafeGetStorageImpl());
    drop(std::move(shadow->offer));
    shadow->offer = std::make_unique<Offer>(Offer{
        c10::weak_intrusive_ptr<c10::TensorImpl>(indices.getIntrusivePtr()),
        c10::weak_intrusive_ptr<c10::StorageImpl>(storage), choice.saved, &choice.maker, own.storage()});
}

const OpInfo* ShadowMap::settle(Shadow& values) {
    std::unique_ptr<Offer> offer = std::move(values.offer);
    if (is_held(offer->indices, offer->saved)) {
        const OpInfo* const maker = offer->maker;
        drop(std::move(offer));
        return maker;
    }
    lose(values);
    values.memory = std::move(offer->values);
    const auto indices = shadows_.find(offer->storage._unsafe_get_target());
    if (indices != shadows_.end() && indices->second.maker == offer->maker)
        indices->second.readers = Readers::own_backward;
    return nullptr;
}

void ShadowMap::forget_integers(const at::Tensor& real) {
    const Locked lock(*this);
    if (Shadow* const shadow = entry(real)) erase(*shadow);
}

void ShadowMap::lose(const at::Tensor& real) {
    const Locked lock(*this);
    make(real);
}

void ShadowMap::leave(const at::Tensor& real) {
    const Locked lock(*this);
    make(real).left = true;
}

void ShadowMap::lose_floats(const at::Tensor& real) {
    const Locked lock(*this);
    Shadow* shadow = entry(real);
    if (shadow && shadow->memory && c10::isFloatingType(shadow->type)) lose(*shadow);
}

bool ShadowMap::written(const at::Tensor& real, bool later) {
    const Locked lock(*this);
    Shadow* const shadow = entry(real);
    if (shadow) {
        ++shadow->writes;
        shadow->source.reset();
        set_fingerprint(*shadow, real, later);
    }
    return shadow && shadow->memory;
}

void ShadowMap::set_fingerprint(Shadow& shadow, const at::Tensor& real, bool later) {
    if (!can_fingerprint(real)) return;
    shadow.fingerprint_known = !later;
    if (!later) shadow.fingerprint = fingerprint_of(real);
}

at::Tensor ShadowMap::lanes(const at::Tensor& real, bool create) {
    at::Tensor values;  // of the shadow that becomes lanes
    std::size_t step = 0;
    {
        const Locked lock(*this);
        const Shadow* const shadow = entry(real);
        const bool has = shadow && shadow->memory && !stale(*shadow, real) && shadow->type == at::kFloat;
        if (!has && !create) return {};
        if (has) {
            record_use(shadow->memory);
            if (shadow->lane_bytes == 1) return view_like(real, shadow->memory, at::kInt);
            step = shadow->lane_bytes;
            values = flat_of(shadow->memory, shadow->type, shadow->real_bytes / step);
        }
    }
    const std::size_t count = storage_bytes(real);
    const at::Tensor bytes = allocate(real, at::kInt, count).fill_(kEmptyLane);
    if (values.defined())
        flat_of(bytes.storage(), at::kFloat, count)
            .as_strided({values.numel()}, {static_cast<std::int64_t>(step)})
            .copy_(values);
    const Locked lock(*this);
    Shadow& made = make(real);
    made.memory = bytes.storage();
    made.type = at::kFloat;
    made.lane_bytes = 1;
    return view_like(real, made.memory, at::kInt);
}

// Converts lanes back to one element per component, for a float access to memory that was last moved as bytes.
// Components without a float in their lane get the real values.
at::Tensor ShadowMap::from_lanes(const at::Tensor& real, const c10::Storage& lanes) {
    const at::ScalarType type = real.scalar_type();
    const std::size_t bytes = storage_bytes(real);
    const std::int64_t step = static_cast<std::int64_t>(component_bytes(type));
    const std::int64_t elements = static_cast<std::int64_t>(bytes) / step;
    record_use(lanes);
    const at::Tensor bits = flat_of(lanes, at::kInt, bytes).as_strided({elements}, {step});
    const at::Tensor values = flat_of(lanes, at::kFloat, bytes).as_strided({elements}, {step});
    const at::Tensor own =
        flat_of(real.storage(), component_type(type), static_cast<std::size_t>(elements)).to(at::kFloat);
    const at::Tensor floats = at::where(bits.eq(kEmptyLane), own, values).contiguous();
    const Locked lock(*this);
    Shadow* const shadow = entry(real);
    if (!shadow) return view_like(real, floats.storage(), twin_dtype(type));
    lose(*shadow);
    shadow->memory = floats.storage();
    shadow->type = at::kFloat;
    shadow->lane_bytes = static_cast<std::size_t>(step);
    return view(*shadow, real);
}

at::Tensor ShadowMap::value(const at::Tensor& real) {
    const TwinScope scope;
    if (!has_plain_memory(real)) return real.clone();
    const Lookup found = find(real);
    if (found.found == Found::hit) return found.shadow.clone();
    return carries_floats(real) ? real.detach().to(twin_dtype(real.scalar_type()), false, true)
                                : real.clone();
}

void ShadowMap::clear() {
    decltype(shadows_) cleared;
    const Locked lock(*this);
    cleared.swap(shadows_);
    newest_ = next_looked_at_ = nullptr;
}

std::uint64_t ShadowMap::bytes() {
    const Locked lock(*this);
    sweep();
    std::uint64_t total = 0;
    for (const auto& [storage, shadow] : shadows_)
        if (shadow.memory) total += shadow.memory.nbytes();
    return total;
}

}  // namespace mp::twin
