#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/trace/records.hpp"

namespace mp::trace {

// Names that recur in every step are written once and referred to by number. The table is bounded: when it is
// full, further names are written in the records that use them.
class NameTable {
public:
    static constexpr std::size_t kMaxNames = 1u << 16;
    static constexpr std::size_t kMaxBytes = 4u << 20;

    // 0: write the name itself; 1: the empty name; else the name's index + 2. Strong exception guarantee.
    std::uint64_t reference(std::string_view name);

    std::size_t size() const { return names_.size(); }
    std::size_t bytes() const { return bytes_; }
    // Removes the names [from, size()), because they could not be written.
    void forget(std::size_t from);
    // The payload of a names frame with the names [from, size()).
    void encode(std::size_t from, std::string& out) const;

private:
    std::deque<std::string> names_;  // never moves its elements: ids_ points into them
    std::unordered_map<std::string_view, std::uint64_t> ids_;
    std::size_t bytes_ = 0;
};

// Payloads of the frames. `out` is replaced. All may throw bad_alloc.
void encode(const ProcessRecord&, std::string& out);
void encode(const NoteRecord&, std::string& out);
// A step without its ops. They have a separate frame, which precedes the frame of the step.
void encode(const StepRecord&, NameTable&, bool with_tensors, std::string& out);
void encode_ops(const StepRecord&, NameTable&, std::string& out);

// Approximate bytes of a record in memory, heap included. Used to bound the queue.
std::size_t memory_of(const ProcessRecord&);
std::size_t memory_of(const NoteRecord&);
std::size_t memory_of(const StepRecord&);

}  // namespace mp::trace
