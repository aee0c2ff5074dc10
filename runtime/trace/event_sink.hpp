#pragma once

#include "runtime/trace/records.hpp"

namespace mp::trace {

// The port of the recording side: adapters push, this room stores. Called from any thread of the program
// under test; every call copies what it needs, never blocks on input or output, and never throws: a full
// queue drops the record and counts it.
class EventSink {
public:
    virtual ~EventSink() = default;

    virtual void process(const ProcessRecord&) noexcept = 0;
    virtual void step(const StepRecord&) noexcept = 0;
    virtual void note(const NoteRecord&) noexcept = 0;
};

}  // namespace mp::trace
