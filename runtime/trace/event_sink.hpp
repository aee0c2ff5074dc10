#pragma once

#include "runtime/trace/records.hpp"

namespace mp::trace {

// The interface through which adapters record. Safe to call from any thread of the program under test. Every call
// copies what it needs, never blocks on input or output, and never throws. When the queue is full, the record is
// dropped and counted.
class EventSink {
public:
    virtual ~EventSink() = default;

    virtual void process(const ProcessRecord&) noexcept = 0;
    virtual void step(const StepRecord&) noexcept = 0;
    virtual void note(const NoteRecord&) noexcept = 0;
};

}  // namespace mp::trace
