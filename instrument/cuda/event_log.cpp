#include "instrument/cuda/event_log.hpp"

#include <unistd.h>

#include <cstdlib>
#include <type_traits>

namespace mp::raw {
namespace {

// A line of fields.
class Line {
public:
    explicit Line(std::string_view event) : text_(event) {}

    Line& add(std::string_view text) {
        text_ += '\t';
        for (const char c : text) {
            if (c == '\t' || c == '\n' || c == '\\') text_ += '\\';
            text_ += c == '\t' ? 't' : c == '\n' ? 'n' : c;
        }
        return *this;
    }
    Line& add(double value) {
        char digits[40];
        std::snprintf(digits, sizeof digits, "%a", value);
        return add(std::string_view(digits));
    }
    template <class Number>
        requires std::is_integral_v<Number>
    Line& add(Number value) {
        return add(std::string_view(std::to_string(value)));
    }
    Line& add(DType dtype) { return add(static_cast<int>(dtype)); }
    Line& add(const Matrix& m) {
        return add(m.dtype).add(m.rows).add(m.columns).add(m.leading).add(m.batches).add(m.stride).add(
            int{m.row_major});
    }
    std::string text() const { return text_ + '\n'; }

private:
    std::string text_;
};

}  // namespace

std::unique_ptr<EventLog> EventLog::open() {
    const char* const path = ::secure_getenv("MP_TRACE_EVENTS");
    if (!path || !*path) return nullptr;
    std::FILE* const file = std::fopen((std::string(path) + "." + std::to_string(::getpid())).c_str(), "we");
    return file ? std::unique_ptr<EventLog>(new EventLog(file)) : nullptr;
}

void EventLog::write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    std::fputs(line.c_str(), file_.get());
}

void EventLog::place(const Place& place, PlaceId parent, std::string_view range) {
    {
        const std::lock_guard lock(mutex_);
        if (place.id <= newest_) return;
        newest_ = place.id;
    }
    write(Line("place").add(place.id).add(parent).add(range).text());
}

void EventLog::begin(std::int64_t step) { write(Line("begin").add(step).text()); }
void EventLog::end() { write(Line("end").text()); }
void EventLog::done(bool skipped, double loss_scale) {
    write(Line("done").add(int{skipped}).add(loss_scale).text());
}
void EventLog::tensor(const NamedTensor& t) {
    write(Line("tensor").add(t.dtype).add(t.elements).add(t.role).add(t.name).text());
}

void EventLog::product(PlaceId place, const Product& p) {
    Line line("product");
    line.add(place).add(p.op).add(p.depth).add(int{p.half_sums}).add(int{p.split_sums}).add(int{p.tf32});
    line.add(p.result).add(p.count);
    for (int i = 0; i < p.count; ++i) line.add(p.inputs[i]);
    line.add(p.compute).add(p.parts).add(p.epilogue).add(p.scheme).add(int{p.has_scales});
    write(line.text());
}

void EventLog::collective(const char* event, const Collective& c, std::string_view algorithm) {
    write(Line(event)
              .add(c.op)
              .add(c.reduction)
              .add(c.dtype)
              .add(c.sent)
              .add(c.received)
              .add(c.width)
              .add(c.ranks)
              .add(c.rank)
              .add(c.call)
              .add(algorithm)
              .text());
}

void EventLog::launch(const char* symbol) { write(Line("launch").add(symbol).text()); }
void EventLog::rank(int rank, int ranks) { write(Line("rank").add(rank).add(ranks).text()); }

void EventLog::flush() {
    const std::lock_guard lock(mutex_);
    std::fflush(file_.get());
}

}  // namespace mp::raw
