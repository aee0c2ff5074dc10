#include "instrument/cuda/sketches.hpp"

#include <algorithm>
#include <string_view>

namespace mp::raw {

Sketching sketching_of(const Collective& c) {
    Sketching s;
    const std::string_view reduction = c.reduction;
    const bool adds = reduction == "sum" || reduction == "avg" || reduction == "premul_sum";
    if (!adds || !c.factor || c.communicator == 0 || c.rank < 0 || c.ranks < 2 || !c.send || c.sent == 0)
        return s;
    // Each rank receives one part of a scattered tensor, else all of it or nothing.
    const bool scatters = c.sent == c.received * static_cast<std::uint64_t>(c.ranks) && c.received > 0;
    const std::uint64_t part = scatters ? c.received : c.sent;
    const std::uint64_t length = std::min<std::uint64_t>(part, cuda::SketchedBlocks::kLongest);
    const std::uint64_t in_part = part / length, blocks = c.sent / part * in_part;
    const auto count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, cuda::SketchedBlocks::kMost));
    s.sent.data = c.send;
    s.received.data = c.receive;
    for (cuda::SketchedBlocks* b : {&s.sent, &s.received}) {
        b->dtype = c.dtype;
        b->length = static_cast<std::uint32_t>(length);
        b->seed = c.call + 1;
    }
    s.sent.count = count;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t block = (c.call + i * (blocks / count)) % blocks;
        const std::uint64_t place = block / in_part * part + block % in_part * length;
        s.sent.place[i] = place;
        s.sent.first[i] = static_cast<std::int64_t>(place);
        const std::uint64_t own = scatters ? static_cast<std::uint64_t>(c.rank) * part : 0;
        if (!c.receive || place < own || place >= own + c.received) continue;
        s.which[s.received.count] = i;
        s.received.place[s.received.count] = place;
        s.received.first[s.received.count++] = static_cast<std::int64_t>(place - own);
    }
    s.head.op = c.op;
    s.head.reduction = c.reduction;
    s.head.dtype = c.dtype;
    s.head.communicator = c.communicator;
    s.head.ranks = static_cast<std::uint64_t>(c.ranks);
    s.head.rank = static_cast<std::uint64_t>(c.rank);
    s.head.call = c.call;
    s.head.elements = c.sent;
    s.head.length = length;
    s.factor = *c.factor;
    return s;
}

void put_records(const Sketching& s, std::vector<trace::SketchRecord>& into) {
    const std::size_t before = into.size();
    for (std::uint32_t i = 0; i < s.sent.count; ++i) {
        trace::SketchRecord& record = into.emplace_back(s.head);
        record.first = s.sent.place[i];
        record.sent = s.factor * s.sent_figures[i].sum;
        record.sent_squares = s.factor * s.factor * s.sent_figures[i].squares;
    }
    for (std::uint32_t i = 0; s.received_figures && i < s.received.count; ++i) {
        trace::SketchRecord& record = into[before + s.which[i]];
        record.has_received = true;
        record.received = s.received_figures[i].sum;
        record.received_squares = s.received_figures[i].squares;
    }
}

}  // namespace mp::raw
