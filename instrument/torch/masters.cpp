#include "instrument/torch/masters.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {
namespace {

constexpr std::int64_t kWindow = 4;      // elements of a key, 8 bytes
constexpr std::int64_t kFewest = 16;     // elements below which equal bits prove nothing
constexpr std::int64_t kPart = 64;       // elements of a tensor whose rest another rank holds
constexpr std::int64_t kMostEqual = 64;  // memories for one tensor; constants are everywhere
// Elements compared for one tensor with parts of larger memories, if that is more than kMostEqual times its own. A
// table of positions has a row of ones for each position, which the gains of a norm are compared with.
constexpr std::int64_t kMostCompared = 1 << 16;
constexpr std::size_t kMostFound = 4;  // an fp32 copy of the first weights may lie about too
constexpr std::size_t kFilter = 1 << 16;

at::Tensor flat_over(const c10::Storage& storage, at::ScalarType type, std::int64_t offset, std::int64_t n) {
    at::Tensor t = at::empty({0}, at::TensorOptions(type));
    t.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
    t.unsafeGetTensorImpl()->set_storage_offset(offset);
    t.unsafeGetTensorImpl()->set_sizes_contiguous({n});
    return t;
}

// All elements in the order of memory.
at::Tensor flat(const at::Tensor& t) {
    return flat_over(t.storage(), t.scalar_type(), t.storage_offset(), t.numel());
}

std::uint64_t key_at(const std::uint16_t* values) {
    std::uint64_t key;
    std::memcpy(&key, values, sizeof key);
    return key;
}

bool is_constant(std::uint64_t key) { return key == (key & 0xFFFF) * 0x0001000100010001ull; }

// Windows of all tensors: the first and the last one that is not constant, because a rank may hold either end.
class Windows {
public:
    explicit Windows(const std::vector<at::Tensor>& low) : filter_(kFilter, false) {
        for (std::size_t i = 0; i < low.size(); ++i)
            if (low[i].numel() >= kFewest) add(i, low[i]);
    }

    bool may_hold(std::uint64_t key) const { return filter_[slot(key)]; }
    auto equal(std::uint64_t key) const { return windows_.equal_range(key); }

private:
    static std::size_t slot(std::uint64_t key) { return (key * 0x9E3779B97F4A7C15ull) >> 48; }

    void add(std::size_t index, const at::Tensor& low) {
        const auto* const values = static_cast<const std::uint16_t*>(low.data_ptr());
        const std::int64_t last = low.numel() - kWindow;
        std::int64_t first = 0, end = last;
        while (first < last && is_constant(key_at(values + first))) ++first;
        while (end > first && is_constant(key_at(values + end))) --end;
        if (first == last) first = end = 0;  // a constant tensor, such as the gains of a norm
        put(index, first, key_at(values + first));
        if (end != first) put(index, end, key_at(values + end));
    }

    void put(std::size_t index, std::int64_t at, std::uint64_t key) {
        filter_[slot(key)] = true;
        windows_.emplace(key, std::pair(index, at));
    }

    std::vector<bool> filter_;
    std::unordered_multimap<std::uint64_t, std::pair<std::size_t, std::int64_t>> windows_;
};

struct Overlap {
    std::int64_t offset, begin, length;
};

// What the search has spent on one tensor.
struct Spent {
    std::int64_t equal = 0, compared = 0;

    bool is_all_of(std::int64_t length, bool with_a_part) const {
        return equal >= kMostEqual ||
               (with_a_part && compared > std::max(kMostEqual * length, kMostCompared));
    }
};

// The part of `low` that lies within `n` values when its element `at` lies at `i`, if all of it is equal.
std::optional<Overlap> overlap(const std::uint16_t* wide, std::int64_t n, std::int64_t i,
                               const at::Tensor& low, std::int64_t at, Spent& spent) {
    const auto* const values = static_cast<const std::uint16_t*>(low.data_ptr());
    const std::int64_t begin = std::max<std::int64_t>(0, at - i);
    const std::int64_t end = std::min(low.numel(), at + (n - i));
    const std::int64_t offset = i - (at - begin), length = end - begin;
    if (length < low.numel() && length < kPart) return std::nullopt;
    const std::uint16_t* const there = wide + offset;
    if (std::memcmp(there, values + begin, static_cast<std::size_t>(length) * 2) != 0) {
        spent.compared += std::mismatch(there, there + length, values + begin).first - there + 1;
        return std::nullopt;
    }
    spent.compared += length;
    ++spent.equal;
    return Overlap{offset, begin, length};
}

// Each tensor gets a slice that no tensor before it has, if there is one.
void share_out(std::vector<std::vector<Masters::Slice>>& found) {
    std::set<std::pair<const void*, std::int64_t>> taken;
    for (std::vector<Masters::Slice>& own : found) {
        const auto first = std::find_if(own.begin(), own.end(),
                                        [&](const auto& slice) { return taken.count(slice.place()) == 0; });
        if (first != own.end()) std::rotate(own.begin(), first, first + 1);
        if (!own.empty()) taken.insert(own.front().place());
        if (own.size() > kMostFound) own.erase(own.begin() + kMostFound, own.end());
    }
}

}  // namespace

Masters::Slice::Slice(const at::Tensor& wide, std::int64_t offset, std::int64_t begin, std::int64_t length)
    : storage_(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(wide.storage().unsafeGetStorageImpl())),
      offset_(offset),
      begin_(begin),
      length_(length) {}

at::Tensor Masters::Slice::wide() const {
    c10::intrusive_ptr<c10::StorageImpl> alive = storage_.lock();
    if (!alive || !alive->data() ||
        alive->nbytes() < static_cast<std::size_t>(offset_ + length_) * sizeof(float))
        return {};
    return flat_over(c10::Storage(std::move(alive)), at::kFloat, offset_, length_);
}

at::Tensor Masters::Slice::of(const at::Tensor& low) const {
    if (!can_have_one(low) || low.numel() < begin_ + length_) return {};
    return flat(low).narrow(0, begin_, length_);
}

bool Masters::can_have_one(const at::Tensor& t) {
    return (t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16) && has_plain_memory(t) &&
           t.device().is_cpu() && t.is_non_overlapping_and_dense();
}

bool Masters::rounds_to(const at::Tensor& wide, const at::Tensor& low) {
    const at::Tensor rounded = wide.to(low.scalar_type());
    return std::memcmp(rounded.data_ptr(), low.data_ptr(), static_cast<std::size_t>(low.numel()) * 2) == 0;
}

bool Masters::carries_more(const at::Tensor& wide, const at::Tensor& low) {
    return !at::equal(wide, low.to(at::kFloat));
}

void Masters::saw(const at::Tensor& t) {
    if (t.scalar_type() != at::kFloat || t.numel() < kFewest || !has_plain_memory(t)) return;
    c10::StorageImpl* const storage = t.storage().unsafeGetStorageImpl();
    const std::lock_guard lock(mutex_);
    Seen& seen = t.device().is_cpu() ? seen_ : elsewhere_;
    if (seen.count(storage)) return;  // the weak pointer keeps the address in use
    if (seen_.size() + elsewhere_.size() >= sweep_at_) sweep();
    seen.emplace(storage, Storage{c10::weak_intrusive_ptr<c10::StorageImpl>(
                                      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)),
                                  number_++});
}

void Masters::sweep() {
    for (Seen* const seen : {&seen_, &elsewhere_})
        for (auto it = seen->begin(); it != seen->end();)
            it = it->second.weak.expired() ? seen->erase(it) : std::next(it);
    sweep_at_ = std::max<std::size_t>(1024, 2 * (seen_.size() + elsewhere_.size()));
}

std::size_t Masters::largest_elsewhere(const std::unordered_set<const c10::StorageImpl*>& others) {
    const std::lock_guard lock(mutex_);
    std::size_t largest = 0;
    for (const auto& [address, seen] : elsewhere_) {
        if (others.count(address)) continue;
        if (const auto storage = seen.weak.lock()) largest = std::max(largest, storage->nbytes());
    }
    return largest;
}

std::vector<at::Tensor> Masters::alive() {
    const std::lock_guard lock(mutex_);
    std::vector<const Storage*> ordered;
    for (const auto& [address, seen] : seen_) ordered.push_back(&seen);
    std::sort(ordered.begin(), ordered.end(),
              [](const Storage* a, const Storage* b) { return a->number < b->number; });
    std::vector<at::Tensor> all;
    for (const Storage* const seen : ordered) {
        c10::intrusive_ptr<c10::StorageImpl> storage = seen->weak.lock();
        if (!storage || !storage->data()) continue;
        const auto n = static_cast<std::int64_t>(storage->nbytes() / sizeof(float));
        all.push_back(flat_over(c10::Storage(std::move(storage)), at::kFloat, 0, n));
    }
    return all;
}

std::vector<std::vector<Masters::Slice>> Masters::find(const std::vector<at::Tensor>& low, bool allow_exact) {
    std::vector<std::vector<Slice>> found(low.size());
    if (low.empty()) return found;
    std::vector<at::Tensor> sought(low.size());
    for (std::size_t i = 0; i < low.size(); ++i) sought[i] = flat(low[i]);
    const Windows windows(sought);
    std::vector<Spent> spent(low.size());
    const auto compare = [&](const at::Tensor& wide, const at::Tensor& rounded, std::int64_t i,
                             std::size_t index, std::int64_t at) {
        if (sought[index].scalar_type() != rounded.scalar_type()) return;
        const std::int64_t length = sought[index].numel();
        if (spent[index].is_all_of(length, rounded.numel() > length)) return;
        const auto* const values = static_cast<const std::uint16_t*>(rounded.data_ptr());
        const auto part = overlap(values, rounded.numel(), i, sought[index], at, spent[index]);
        if (!part) return;
        const Slice slice(wide, part->offset, part->begin, part->length);
        if (allow_exact || carries_more(slice.wide(), slice.of(sought[index]))) found[index].push_back(slice);
    };
    const auto look = [&](const at::Tensor& wide, at::ScalarType type) {
        const at::Tensor rounded = wide.to(type);
        const auto* const values = static_cast<const std::uint16_t*>(rounded.data_ptr());
        std::uint64_t previous = ~std::uint64_t{0};
        for (std::int64_t i = 0; i + kWindow <= rounded.numel(); ++i) {
            const std::uint64_t key = key_at(values + i);
            // If a value repeats, only the first window of it is compared.
            if (key == std::exchange(previous, key) || !windows.may_hold(key)) continue;
            const auto [first, last] = windows.equal(key);
            for (auto it = first; it != last; ++it)
                compare(wide, rounded, i, it->second.first, it->second.second);
        }
    };
    for (const at::Tensor& wide : alive())
        for (const at::ScalarType type : {at::kHalf, at::kBFloat16})
            if (std::any_of(sought.begin(), sought.end(),
                            [type](const at::Tensor& t) { return t.scalar_type() == type; }))
                look(wide, type);
    share_out(found);
    return found;
}

}  // namespace mp::twin
