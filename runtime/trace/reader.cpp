#include "runtime/trace/reader.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "kernels/base/input_file.hpp"
#include "runtime/trace/decode.hpp"
#include "runtime/trace/encode.hpp"
#include "runtime/trace/frame_scanner.hpp"

namespace mp::trace {

struct VisitBuffers::Parts {
    std::string window;
    Unpacker unpacker, ops_unpacker;
    NameList names;
    OpColumns columns;
    StepRows rows;
};

VisitBuffers::VisitBuffers() : parts_(std::make_unique<Parts>()) {}
VisitBuffers::~VisitBuffers() = default;

namespace {

// In bytes: 256 MiB less the memory of the reader itself, which is a window with one frame and that frame unpacked.
constexpr std::uint64_t kRoom = (256u << 20) - 2 * (kMaxPayload + 2 * kWindow);
// Limits the list for a malicious world size. The largest machines have fewer ranks.
constexpr std::int32_t kMaxMissing = 1 << 20;
// Most bytes of one step that is read only for a visitor: several times the contents of a queue of 16 MiB.
constexpr std::uint64_t kStepRoom = 64u << 20;
constexpr std::string_view kSuffix = ".mpt";

struct Counts {
    std::uint64_t steps = 0;
    std::uint64_t notes = 0;
};

// Reads the records of one file and passes them to a visitor, or stores them in a Recording within its room.
class RecordingReader {
public:
    RecordingReader(int fd, std::uint64_t size, std::uint64_t room, Recording& into, RecordVisitor* visitor,
                    VisitBuffers::Parts& parts)
        : fd_(fd),
          window_(fd, size, parts.window),
          scanner_(window_, into.problems),
          out_(into),
          visitor_(visitor),
          unpacker_(parts.unpacker),
          ops_unpacker_(parts.ops_unpacker),
          names_(parts.names),
          columns_(parts.columns),
          rows_(parts.rows),
          room_(4 * size + room) {
        names_.clear();
        columns_.head.clear();
    }

    std::uint64_t room() const { return room_; }

    Status read() {
        const HeaderState state = scanner_.header();
        if (state == HeaderState::newer)
            return Error{out_.path + ": made by a newer mp-trace", "read it with that version"};
        if (!visitor_) reserve(take_names());
        std::uint64_t good = 0;
        scanner_.scan(true, [&](std::uint64_t at, const FrameHeader& h, std::string_view s) {
            ++good;
            // Names precede their use. In a damaged file, names lost in one place can be repeated in another.
            if (visitor_ && !out_.problems.empty() && !std::exchange(names_taken_, true)) take_names();
            use(at, h, s);
        });
        if (state == HeaderState::damaged && good == 0)
            return Error{out_.path + ": not a recording of mp-trace", {}};
        summarise();
        return Done{};
    }

private:
    // Reads the names of the whole file in a separate pass.
    Counts take_names() {
        Window window(fd_, window_.size());
        std::vector<Problem> unused;
        FrameScanner scanner(window, unused);
        Unpacker unpacker;
        Counts counts;
        (void)scanner.header();
        scanner.scan(false, [&](std::uint64_t, const FrameHeader& h, std::string_view stored) {
            counts.steps += h.kind == static_cast<std::uint8_t>(FrameKind::step);
            counts.notes += h.kind == static_cast<std::uint8_t>(FrameKind::note);
            if (h.kind != static_cast<std::uint8_t>(FrameKind::names)) return;
            const auto payload = unpacker.unpack(h, stored);
            if (payload) names_.add(*payload);
        });
        return counts;
    }

    void take(std::size_t bytes) { room_ -= std::min<std::uint64_t>(bytes, room_); }

    void reserve(const Counts& counts) {
        take(2 * names_.bytes());
        const auto steps = std::min<std::uint64_t>(counts.steps, room_ / 2 / sizeof(StepRecord));
        out_.steps.reserve(static_cast<std::size_t>(steps));
        take(static_cast<std::size_t>(steps) * sizeof(StepRecord));
        const auto notes = std::min<std::uint64_t>(counts.notes, room_ / 4 / sizeof(NoteRecord));
        out_.notes.reserve(static_cast<std::size_t>(notes));
        take(static_cast<std::size_t>(notes) * sizeof(NoteRecord));
    }

    void use(std::uint64_t at, const FrameHeader& header, std::string_view stored) {
        const bool known = header.kind >= static_cast<std::uint8_t>(FrameKind::process) &&
                           header.kind <= static_cast<std::uint8_t>(FrameKind::ops);
        if (!known) return;  // from a newer writer
        // Columns are not copied. They stay in the unpacked frame until their step is read.
        const bool stays = visitor_ && header.kind == static_cast<std::uint8_t>(FrameKind::ops);
        if (stays) drop_ops();
        const auto payload =
            stays ? ops_unpacker_.unpack_kept(header, stored) : unpacker_.unpack(header, stored);
        if (!payload) {
            scanner_.problem(at, kFrameOverhead + header.stored, "a payload that cannot be unpacked");
            return;
        }
        bool good = true;
        switch (static_cast<FrameKind>(header.kind)) {
            case FrameKind::process:
                good = process(*payload);
                break;
            case FrameKind::step:
                good = step(*payload);
                break;
            case FrameKind::note:
                good = note(*payload);
                break;
            case FrameKind::names:
                good = names_.add(*payload);
                break;
            case FrameKind::ops:
                good = ops(*payload);
                break;
        }
        if (!good) scanner_.problem(at, kFrameOverhead + header.stored, "a malformed record");
    }

    bool process(std::string_view payload) {
        ProcessRecord record;
        if (!decode(payload, record)) return false;
        if (out_.has_process) return true;  // only the first one is used
        out_.process = std::move(record);
        out_.has_process = true;
        if (visitor_) visitor_->process(out_.process);
        return true;
    }

    StepDecoding decoding() const {
        return {.names = names_, .room = static_cast<std::size_t>(visitor_ ? kStepRoom : room_)};
    }
    void account(const StepDecoding& how) {
        if (!visitor_) room_ = how.room;
        names_lost_ += how.names_lost;
        shortened_ += how.left_out;
    }
    bool full() const { return !visitor_ && out_.steps.size() == out_.steps.capacity(); }

    void drop_ops() {
        ops_lost_ += ops_waiting_;
        ops_waiting_ = false;
    }

    // Stores the ops until their step is read.
    bool ops(std::string_view payload) {
        drop_ops();
        if (full()) return true;
        StepDecoding how = decoding();
        if (!(visitor_ ? decode(payload, how, columns_) : decode(payload, how, ops_))) return false;
        account(how);
        ops_waiting_ = true;
        return true;
    }

    // Whether the stored ops belong to this step. If so, they are no longer marked as waiting.
    bool take_ops(Step step, std::int32_t optimizer, Step of, std::int32_t of_optimizer) {
        const bool own = ops_waiting_ && of == step && of_optimizer == optimizer;
        ops_lost_ += ops_waiting_ && !own;
        ops_waiting_ = false;
        return own;
    }

    bool visit_step(std::string_view payload) {
        StepDecoding how = decoding();
        if (!decode(payload, how, rows_)) return false;
        account(how);
        const StepRecord& s = rows_.record;
        const bool own = take_ops(s.step, s.optimizer, columns_.step, columns_.optimizer);
        visitor_->step(rows_, own ? &columns_ : nullptr, names_);
        return true;
    }

    bool step(std::string_view payload) {
        if (visitor_) return visit_step(payload);
        if (full()) {
            ++skipped_;
            return true;
        }
        StepDecoding how = decoding();
        StepRecord record;
        if (!decode(payload, how, record)) return false;
        account(how);
        if (take_ops(record.step, record.optimizer, ops_.step, ops_.optimizer)) record.ops.swap(ops_.ops);
        out_.steps.push_back(std::move(record));
        return true;
    }

    bool note(std::string_view payload) {
        NoteRecord record;
        if (!decode(payload, record)) return false;
        if (visitor_) {
            visitor_->note(record);
            return true;
        }
        if (out_.notes.size() == out_.notes.capacity() || memory_of(record) > room_) {
            ++skipped_;
            return true;
        }
        take(memory_of(record) - sizeof record);
        out_.notes.push_back(std::move(record));
        return true;
    }

    void summarise() {
        const std::uint64_t end = window_.size();
        auto count = [&](std::uint64_t n, const char* what) {
            if (n) scanner_.problem(end, 0, std::to_string(n) + what);
        };
        count(names_lost_, " references to names that were lost with a damaged frame");
        count(ops_lost_, " lists of ops whose step is lost");
        count(shortened_, " steps are read without all their lists: too large to hold");
        count(skipped_, " records are not read: too many to hold");
    }

    int fd_;
    Window window_;
    FrameScanner scanner_;
    Recording& out_;
    RecordVisitor* visitor_;
    Unpacker& unpacker_;
    Unpacker& ops_unpacker_;
    NameList& names_;
    StepOps ops_;         // for a recording that is kept
    OpColumns& columns_;  // for a recording that is visited
    StepRows& rows_;
    bool ops_waiting_ = false;
    bool names_taken_ = false;
    std::uint64_t room_;
    std::uint64_t names_lost_ = 0;
    std::uint64_t ops_lost_ = 0;
    std::uint64_t shortened_ = 0;
    std::uint64_t skipped_ = 0;
};

// `room`: memory beyond four times the file; the reader subtracts what it uses.
Result<Recording> read_within(const std::string& path, std::uint64_t& room, VisitBuffers& buffers,
                              RecordVisitor* visitor = nullptr) {
    const InputFile file(path);
    if (!file.is_open()) return Error{path + ": " + std::strerror(errno), {}};
    struct ::stat info{};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
        return Error{path + ": not a regular file", {}};
    Recording recording;
    recording.path = path;
    recording.bytes = static_cast<std::uint64_t>(info.st_size);
    try {
        RecordingReader reader(file.get(), recording.bytes, room, recording, visitor, buffers.parts());
        const Status status = reader.read();
        if (!status) return status.error();
        room = std::min(room, reader.room());
    } catch (const std::bad_alloc&) {
        return Error{path + ": not enough memory to read it", {}};
    }
    return recording;
}

}  // namespace

Result<Recording> read_recording(const std::string& path) {
    std::uint64_t room = kRoom;
    VisitBuffers buffers;
    return read_within(path, room, buffers);
}

Result<Recording> visit_recording(const std::string& path, RecordVisitor& visitor, VisitBuffers& buffers) {
    std::uint64_t room = kRoom;
    return read_within(path, room, buffers, &visitor);
}

Result<std::vector<std::string>> recordings_in(const std::string& directory) {
    DIR* const open = ::opendir(directory.c_str());
    if (!open) return Error{directory + ": " + std::strerror(errno), {}};
    std::vector<std::string> paths;
    while (const dirent* entry = ::readdir(open)) {
        if (std::string_view(entry->d_name).ends_with(kSuffix))
            paths.push_back(directory + "/" + entry->d_name);
    }
    ::closedir(open);
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::vector<std::string> jobs_in(const std::string& directory) {
    std::vector<std::string> jobs{directory};
    for (int number = 2;; ++number) {
        std::string job = directory + (directory.ends_with('/') ? "" : "/") + "job." + std::to_string(number);
        struct stat info{};
        if (::stat(job.c_str(), &info) != 0) return jobs;
        jobs.push_back(std::move(job));
    }
}

bool precedes(const ProcessRecord& p, std::string_view path, const ProcessRecord& q, std::string_view other) {
    // Recordings without a rank come last.
    return std::make_tuple(!p.rank.known(), p.rank.value, p.restart, std::string_view(p.host), p.pid, path) <
           std::make_tuple(!q.rank.known(), q.rank.value, q.restart, std::string_view(q.host), q.pid, other);
}

std::vector<Rank> missing_ranks(std::int32_t world_size, const std::set<std::int32_t>& seen) {
    std::vector<Rank> missing;
    const std::int32_t world = std::min(world_size, kMaxMissing);
    for (std::int32_t rank = 0; rank < world; ++rank) {
        if (!seen.contains(rank)) missing.push_back(Rank{rank});
    }
    return missing;
}

Result<Run> read_run(const std::string& directory) {
    const auto paths = recordings_in(directory);
    if (!paths) return paths.error();
    Run run;
    run.directory = directory;
    VisitBuffers buffers;
    std::uint64_t room =
        kRoom;  // shared by all files, so that many malicious files take no more memory than one
    for (const std::string& path : *paths) {
        auto recording = read_within(path, room, buffers);
        if (recording) {
            run.recordings.push_back(*std::move(recording));
        } else {
            run.unreadable.push_back(recording.error());
        }
    }
    std::sort(run.recordings.begin(), run.recordings.end(), [](const Recording& a, const Recording& b) {
        return precedes(a.process, a.path, b.process, b.path);
    });
    std::int32_t world = 0;
    std::set<std::int32_t> seen;
    for (const Recording& r : run.recordings) {
        world = std::max(world, r.process.world_size);
        if (r.process.rank.known()) seen.insert(r.process.rank.value);
    }
    run.missing = missing_ranks(world, seen);
    return run;
}

}  // namespace mp::trace
