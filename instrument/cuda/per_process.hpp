#pragma once

#include <atomic>
#include <mutex>
#include <utility>

namespace mp::raw {

// What a fork does to state under a lock. A child has one thread, so a lock that another thread holds at the fork would
// never be free in it.
class ForkedState {
public:
    // Around every fork, in the order of pthread_atfork().
    static void before_fork() noexcept;
    static void in_parent() noexcept;
    static void in_child() noexcept;

protected:
    constexpr ForkedState() = default;
    ~ForkedState() = default;
    ForkedState(const ForkedState&) = delete;
    ForkedState& operator=(const ForkedState&) = delete;

    void watch() noexcept;

private:
    // False: another thread has the lock.
    virtual bool try_lock() noexcept = 0;
    virtual void unlock() noexcept = 0;
    virtual void keep_what_was_locked() noexcept = 0;

    static std::atomic<ForkedState*> first_;
    ForkedState* next_ = nullptr;
    bool is_locked_ = false;  // from before a fork until after it
};

// A global T with its own `mutex`, made at its first use. A child keeps it where the lock was free, and begins anew
// where a thread was inside. Never destroyed: threads of the program may use it until the process ends.
template <class T>
class PerProcess final : ForkedState {
public:
    constexpr PerProcess() = default;

    T& get() {
        if (T* const known = state_.load(std::memory_order_acquire)) return *known;
        auto* const made = new T;
        T* other = nullptr;
        if (!state_.compare_exchange_strong(other, made)) {
            delete made;
            return *other;
        }
        if (!is_watched_.exchange(true)) watch();
        return *made;
    }

    // What was stays in memory: a thread that the process no longer has may be inside.
    void renew() noexcept { state_ = nullptr; }

private:
    bool try_lock() noexcept override {
        T* const state = state_;
        const bool is_free = !state || state->mutex.try_lock();
        locked_ = is_free ? state : nullptr;
        return is_free;
    }
    void unlock() noexcept override {
        if (T* const state = std::exchange(locked_, nullptr)) state->mutex.unlock();
    }
    void keep_what_was_locked() noexcept override { state_ = locked_; }

    std::atomic<T*> state_{nullptr};
    std::atomic<bool> is_watched_{false};
    T* locked_ = nullptr;
};

}  // namespace mp::raw
