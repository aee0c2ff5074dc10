#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <functional>
#include <memory>

#include "instrument/torch/compat.hpp"

namespace mp::twin {

// The program's Work, with one difference: the ops of wait() on the caller's thread are not ops of the program.
// gloo's reduce-scatter copies the received chunk into the output there, from memory that has no shadow.
// As an op of the program that copy would put low-precision values into the twin.
class HiddenWork final : public c10d::Work {
public:
    // `finished` is called after every wait(), and never throws into the program. `chained` becomes true when the
    // program takes the future, and so may never wait here.
    HiddenWork(c10::intrusive_ptr<c10d::Work> inner, std::function<void()> finished,
               std::shared_ptr<std::atomic<bool>> chained);

    bool isCompleted() override;
    bool isSuccess() const override;
    std::exception_ptr exception() const override;
    int sourceRank() const override;
    std::vector<at::Tensor> result() override;
    void synchronize() override;
    bool wait(std::chrono::milliseconds timeout) override;
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
#if MP_TORCH_AT_LEAST(2, 1)
    float getDuration() const override;
#endif
#if MP_TORCH_AT_LEAST(2, 2)
    std::uint64_t getSequencenumber() const override;
#endif
#if MP_TORCH_AT_LEAST(2, 6)
    c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
#endif
#if MP_TORCH_AT_LEAST(2, 9)
    void blockCurrentStream() override;
#endif

private:
    void after_wait();

    c10::intrusive_ptr<c10d::Work> inner_;
    std::function<void()> finished_;
    std::shared_ptr<std::atomic<bool>> chained_;
};

}  // namespace mp::twin
