#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "instrument/torch/call.hpp"
#include "instrument/torch/late.hpp"

namespace mp::twin {

// What a rank without a twin puts into the twin's collectives: arguments of the right shapes whose values are NaN, so
// that the twins of other ranks do not take them for results. On a device their memory is the host's, which the device
// reads and writes there: its own memory is the program's, to the last byte.
//
// Each stream has one such buffer, and a collective uses that of its caller's stream again. The stream waits for each
// collective of the twin before it goes on, so this adds no order between streams. Safe from any thread; threads that
// share a stream are ordered by the program.
class Blanks {
public:
    explicit Blanks(Late& late) : late_(late) {}

    // Sets `shadow` of a collective. Of a local call it is the real arguments, widened.
    void prepare(Call&);

private:
    struct Buffer {
        std::byte* begin = nullptr;
        std::size_t bytes = 0;
    };
    // What is left of a buffer.
    using Room = Buffer;

    Room room_for(const Call&);
    Buffer of_stream(const c10::Stream&, std::size_t bytes);

    Late& late_;
    std::mutex mutex_;
    std::unordered_map<c10::Stream, Buffer> buffers_;
};

}  // namespace mp::twin
