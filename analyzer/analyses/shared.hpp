#pragma once

// What several rules ask, found once. Rules run on several threads.

#include <memory>
#include <mutex>
#include <unordered_map>

namespace mp::lint {

// One thing, made by the first that asks; the others wait for it.
template <typename T>
class Shared {
public:
    // `make` gives a shared_ptr, for what cannot be moved.
    template <typename Make>
    const T& get(Make make) const {
        std::call_once(once_, [&] { value_ = make(); });
        return *value_;
    }

private:
    mutable std::once_flag once_;
    mutable std::shared_ptr<const T> value_;
};

// One answer per key; references to answers stay good.
template <typename Key, typename T>
class Memo {
public:
    // `make` asks no other answer of this memo.
    template <typename Make>
    const T& get(const Key& key, Make make) const {
        const std::scoped_lock lock(mutex_);
        const auto [entry, is_new] = known_.try_emplace(key);
        if (is_new) entry->second = make();
        return entry->second;
    }

private:
    mutable std::mutex mutex_;
    mutable std::unordered_map<Key, T> known_;
};

}  // namespace mp::lint
