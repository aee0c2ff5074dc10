#include "instrument/cuda/per_process.hpp"

#include <ctime>

namespace mp::raw {
namespace {

// A lock is held for microseconds. One that is not free by then is not waited for: the child begins anew.
constexpr int kMostTries = 100;
constexpr timespec kPause{0, 1'000'000};

// Two threads may fork at once.
constinit std::mutex g_fork;

}  // namespace

constinit std::atomic<ForkedState*> ForkedState::first_{nullptr};

void ForkedState::watch() noexcept {
    next_ = first_.load();
    while (!first_.compare_exchange_weak(next_, this)) {
    }
}

void ForkedState::before_fork() noexcept {
    g_fork.lock();
    for (ForkedState* state = first_; state; state = state->next_) {
        state->is_locked_ = state->try_lock();
        for (int i = 1; i < kMostTries && !state->is_locked_; ++i) {
            ::nanosleep(&kPause, nullptr);
            state->is_locked_ = state->try_lock();
        }
    }
}

void ForkedState::in_parent() noexcept {
    for (ForkedState* state = first_; state; state = state->next_)
        if (std::exchange(state->is_locked_, false)) state->unlock();
    g_fork.unlock();
}

void ForkedState::in_child() noexcept {
    for (ForkedState* state = first_; state; state = state->next_) {
        state->keep_what_was_locked();
        if (std::exchange(state->is_locked_, false)) state->unlock();
    }
    g_fork.unlock();
}

}  // namespace mp::raw
