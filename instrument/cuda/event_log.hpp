#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "instrument/cuda/events.hpp"
#include "instrument/cuda/ranges.hpp"
#include "instrument/cuda/weights.hpp"

namespace mp::raw {

// What the sources hand to the run, one line each, so that it can be handed to another run later (tests). Addresses are
// not in it. Written only if MP_TRACE_EVENTS names a file; the number of the process is added to its name. Fields are
// separated by tabs; a tab, a line feed or a backslash in a text is escaped. Safe from any thread.
class EventLog {
public:
    // Null: no file is asked for.
    static std::unique_ptr<EventLog> open();

    void place(const Place&, PlaceId parent, std::string_view range);
    void begin(std::int64_t step);
    void end();
    void done(bool skipped, double loss_scale);
    void tensor(const NamedTensor&);
    void product(PlaceId, const Product&);
    void collective(const char* event, const Collective&, std::string_view algorithm = {});
    void launch(const char* symbol);
    void rank(int rank, int ranks);
    void flush();

private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    explicit EventLog(std::FILE* file) : file_(file) {}
    void write(const std::string& line);

    std::mutex mutex_;
    std::unique_ptr<std::FILE, Close> file_;
    PlaceId newest_ = 0;
};

}  // namespace mp::raw
