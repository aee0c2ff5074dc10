#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/trace/records.hpp"

namespace mp::trace {

// The names of a recording, by number. Those in a damaged place are lost.
class NameList {
public:
    // The payload of a names frame. False: malformed, or more than any writer makes.
    bool add(std::string_view payload);
    // Null: lost.
    const std::string* find(std::uint64_t index) const;
    std::size_t bytes() const { return bytes_; }

private:
    struct Name {
        bool known = false;
        std::string text;
    };
    std::vector<Name> names_;
    std::size_t bytes_ = 0;
};

// Payload -> record. False: malformed; what was read so far is of no use.
bool decode(std::string_view payload, ProcessRecord&);
bool decode(std::string_view payload, NoteRecord&);

struct StepDecoding {
    const NameList& names;
    std::size_t room = 0;       // bytes that lists and names may take; what was taken is subtracted
    std::size_t names_lost = 0;  // references to lost names; they read "?name-17"
    bool left_out = false;       // some list had no room
};
// Into a new step.
bool decode(std::string_view payload, StepDecoding&, StepRecord&);

// The ops of one step, which come before it.
struct StepOps {
    Step step;
    std::int32_t optimizer = 0;
    std::vector<OpRecord> ops;  // what is in it is overwritten; its memory is used again
};
bool decode(std::string_view payload, StepDecoding&, StepOps&);

}  // namespace mp::trace
