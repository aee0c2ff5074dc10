#include "instrument/torch/work.hpp"

#include "instrument/torch/thread_state.hpp"

namespace mp::twin {

HiddenWork::HiddenWork(c10::intrusive_ptr<c10d::Work> inner, std::function<void()> finished,
                       std::shared_ptr<std::atomic<bool>> chained)
    : c10d::Work(-1, inner->retrieveOpType()),
      inner_(std::move(inner)),
      finished_(std::move(finished)),
      chained_(std::move(chained)) {}

void HiddenWork::after_wait() {
    if (!finished_) return;
    try {
        finished_();
    } catch (const std::exception&) {
        finished_ = nullptr;  // an error here only loses a figure
    }
}

bool HiddenWork::isCompleted() { return inner_->isCompleted(); }
bool HiddenWork::isSuccess() const { return inner_->isSuccess(); }
std::exception_ptr HiddenWork::exception() const { return inner_->exception(); }
int HiddenWork::sourceRank() const { return inner_->sourceRank(); }
std::vector<at::Tensor> HiddenWork::result() { return inner_->result(); }
void HiddenWork::abort() { inner_->abort(); }
c10::intrusive_ptr<c10::ivalue::Future> HiddenWork::getFuture() {
    *chained_ = true;
    return inner_->getFuture();
}

void HiddenWork::synchronize() {
    const Internal internal;
    inner_->synchronize();
    after_wait();
}

bool HiddenWork::wait(std::chrono::milliseconds timeout) {
    const Internal internal;
    const bool done = inner_->wait(timeout);
    if (done) after_wait();
    return done;
}

#if MP_TORCH_AT_LEAST(2, 1)
float HiddenWork::getDuration() const { return inner_->getDuration(); }
#endif
#if MP_TORCH_AT_LEAST(2, 2)
std::uint64_t HiddenWork::getSequencenumber() const { return inner_->getSequencenumber(); }
#endif
#if MP_TORCH_AT_LEAST(2, 6)
c10::intrusive_ptr<c10::ivalue::Future> HiddenWork::getFutureResult() { return inner_->getFutureResult(); }
#endif
#if MP_TORCH_AT_LEAST(2, 9)
void HiddenWork::blockCurrentStream() {
    const Internal internal;
    inner_->blockCurrentStream();
}
#endif

}  // namespace mp::twin
