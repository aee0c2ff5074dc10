// Collectives of the device, as NCCL's: they run later, in the order of their calls, on a stream of their own, which
// waits for the caller's stream. A wait for the work makes the caller's stream wait. Gloo moves the bytes.
#include <Python.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/torch/late_device.hpp"

namespace mp::late {
namespace {

using Tensors = std::vector<at::Tensor>;
using c10d::Backend;
using c10d::OpType;

template <typename T>
using Ptr = c10::intrusive_ptr<T>;

class LateWork final : public c10d::Work {
public:
    LateWork(OpType type, Tensors results, const c10::Stream& on)
        : Work(-1, type), results_(std::move(results)), end_(kType) {
        end_.record(on);
        const c10::StreamGuard guard(on);
        future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                           std::vector<c10::Device>{c10::Device(kType, 0)});
        future_->markCompleted(c10::IValue(results_));
    }
    bool isCompleted() override { return end_.query(); }
    bool isSuccess() const override { return true; }
    void synchronize() override { end_.block(current_stream()); }
    bool wait(std::chrono::milliseconds) override { return synchronize(), true; }
    void blockCurrentStream() override { synchronize(); }
    Tensors result() override { return results_; }
    Ptr<c10::ivalue::Future> getFuture() override { return future_; }

private:
    Tensors results_;
    c10::Event end_;
    Ptr<c10::ivalue::Future> future_;
};

Tensors seen(const Tensors& tensors) {
    Tensors here;
    for (const at::Tensor& t : tensors) here.push_back(seen_by_device(t));
    return here;
}

std::vector<Tensors> seen(const std::vector<Tensors>& lists) {
    std::vector<Tensors> here;
    for (const Tensors& list : lists) here.push_back(seen(list));
    return here;
}

Tensors all_of(const std::vector<Tensors>& lists) {
    Tensors all;
    for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
}

class Collectives final : public Backend {
public:
    explicit Collectives(Ptr<Backend> gloo)
        : Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)) {}

    const std::string getBackendName() const override { return "late"; }
    void setSequenceNumberForGroup() override {}
    std::uint64_t getSequenceNumberForGroup() override { return 0; }

    Ptr<c10d::Work> broadcast(Tensors& all, const c10d::BroadcastOptions& o) override {
        return later(OpType::BROADCAST, all, {},
                     [gloo = gloo_, all = seen(all), o]() mutable { return gloo->broadcast(all, o); });
    }
    Ptr<c10d::Work> allreduce(Tensors& all, const c10d::AllreduceOptions& o) override {
        return later(OpType::ALLREDUCE, all, {},
                     [gloo = gloo_, all = seen(all), o]() mutable { return gloo->allreduce(all, o); });
    }
    Ptr<c10d::Work> allgather(std::vector<Tensors>& into, Tensors& from,
                              const c10d::AllgatherOptions& o) override {
        return later(OpType::ALLGATHER, all_of(into), from,
                     [gloo = gloo_, into = seen(into), from = seen(from), o]() mutable {
                         return gloo->allgather(into, from, o);
                     });
    }
    Ptr<c10d::Work> _allgather_base(at::Tensor& into, at::Tensor& from,
                                    const c10d::AllgatherOptions& o) override {
        return later(OpType::_ALLGATHER_BASE, {into}, {from},
                     [gloo = gloo_, into = seen_by_device(into), from = seen_by_device(from), o]() mutable {
                         return gloo->_allgather_base(into, from, o);
                     });
    }
    Ptr<c10d::Work> _reduce_scatter_base(at::Tensor& into, at::Tensor& from,
                                         const c10d::ReduceScatterOptions& o) override {
        return later(OpType::_REDUCE_SCATTER_BASE, {into}, {from},
                     [gloo = gloo_, into = seen_by_device(into), from = seen_by_device(from), o]() mutable {
                         return gloo->_reduce_scatter_base(into, from, o);
                     });
    }
    // The host waits, as NCCL's does.
    Ptr<c10d::Work> barrier(const c10d::BarrierOptions& o) override {
        synchronise(stream());
        return gloo_->barrier(o);
    }

private:
    static c10::Stream stream() { return stream_of_collectives(); }

    Ptr<c10d::Work> later(OpType type, const Tensors& into, const Tensors& from,
                          std::function<Ptr<c10d::Work>()> run) {
        const c10::Stream on = stream();
        c10::Event ready(kType);
        ready.record(current_stream());
        ready.block(on);
        for (const Tensors* list : {&into, &from})
            for (const at::Tensor& t : *list) record_stream(t.storage().data_ptr(), on);
        {
            const fake::Inside inside;
            fake::enqueue(native(on), [run = std::move(run)] { do_now(run); });
        }
        return c10::make_intrusive<LateWork>(type, into, on);
    }

    static void do_now(const std::function<Ptr<c10d::Work>()>& run) {
        try {
            const at::AutoDispatchBelowADInplaceOrView below;
            run()->wait();
        } catch (const std::exception& e) {
            std::fprintf(stderr, "late: a collective: %s\n", e.what());
            std::abort();
        }
    }

    const Ptr<Backend> gloo_;
};

}  // namespace
}  // namespace mp::late

// For late.py: the group of the device over a group of gloo.
extern "C" __attribute__((visibility("default"))) PyObject* late_collectives(PyObject* gloo) {
    const auto inner = py::cast<c10::intrusive_ptr<c10d::Backend>>(py::handle(gloo));
    const c10::intrusive_ptr<c10d::Backend> group = c10::make_intrusive<mp::late::Collectives>(inner);
    return py::cast(group).release().ptr();
}
