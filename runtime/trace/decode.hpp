#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/trace/op_columns.hpp"
#include "runtime/trace/records.hpp"

namespace mp::trace {

// The names of a recording, by number. Names in a damaged part of the file are lost.
class NameList {
public:
    // The payload of a names frame. False: malformed, or more names than a writer can produce.
    bool add(std::string_view payload);
    // Null: lost.
    const std::string* find(std::uint64_t index) const;
    std::size_t bytes() const { return bytes_; }
    // Removes the names but keeps their memory.
    void clear();

private:
    struct Name {
        bool known = false;
        std::string text;
    };
    std::vector<Name> names_;
    std::size_t bytes_ = 0;
};

// Payload -> record. False: malformed; the record is then incomplete.
bool decode(std::string_view payload, ProcessRecord&);
bool decode(std::string_view payload, NoteRecord&);

struct StepDecoding {
    const NameList& names;
    std::size_t room = 0;        // bytes that lists and names may still take; decoding subtracts from it
    std::size_t names_lost = 0;  // references to lost names; they read "?name-17"
    bool left_out = false;       // a list exceeded the room and is empty
};
// Expects a new, empty step.
bool decode(std::string_view payload, StepDecoding&, StepRecord&);

// The ops of one step. Their frame precedes the frame of the step.
struct StepOps {
    Step step;
    std::int32_t optimizer = 0;
    std::vector<OpRecord> ops;  // overwritten; its memory is used again
};
bool decode(std::string_view payload, StepDecoding&, StepOps&);

// A name as a frame stores it: 0 is `text`, 1 the empty name, others refer to names[reference - 2].
struct NameRef {
    std::uint64_t reference = 1;
    std::string_view text;
};
std::string text_of(const NameRef&, const NameList&);  // a lost name reads "?name-17"

// The ops of one step as their frame stores them: rows by number, values in columns of 8 bytes, little-endian.
struct OpColumns {
    struct Row {
        NameRef layer, op, source;
        bool guessed = false;
        Phase phase = Phase::unknown;
        DType dtype = DType::unknown;
    };
    Step step;
    std::int32_t optimizer = 0;
    std::string head;  // the bytes that `rows` were read from; the texts of `rows` point into them
    std::vector<Row> rows;
    std::uint64_t version = 0;  // changes when the rows differ from those of the frame before
    std::size_t names_lost = 0;
    std::vector<std::pair<std::size_t, Exponents>> exponents;  // by row; only rows that have exponents
    std::array<const char*, kOpBits> columns{};                // into the payload, by bit; null: all 0
};
bool decode(std::string_view payload, StepDecoding&, OpColumns&);
// Row `row` as a separate record.
OpRecord record_of(const OpColumns&, std::size_t row, const NameList&);

// A step without its ops. The names of its tensors and places are stored beside the records, not in them.
struct StepRows {
    StepRecord record;  // its lists keep their memory from step to step
    std::vector<NameRef> tensors, places;
};
bool decode(std::string_view payload, StepDecoding&, StepRows&);

}  // namespace mp::trace
