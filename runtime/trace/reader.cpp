#include "runtime/trace/reader.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <zstd.h>

#include "runtime/trace/decode.hpp"
#include "runtime/trace/encode.hpp"
#include "runtime/trace/frame.hpp"

namespace mp::trace {
namespace {

constexpr std::size_t kWindow = 1u << 20;
// A file made of frame headers whose frames are wrong would be hashed again and again from each of them.
constexpr std::uint64_t kWastedHashing = 8;
constexpr std::uint64_t kWastedHashingAtLeast = 1u << 28;
// 256 MiB less what the reader itself holds: a window with one frame, and that frame unpacked.
constexpr std::uint64_t kRoom = (256u << 20) - 2 * (kMaxPayload + 2 * kWindow);
constexpr std::size_t kMaxProblems = 1000;
// Of a hostile world size; more ranks than the largest machine has.
constexpr std::int32_t kMaxMissing = 1 << 20;
constexpr std::string_view kSuffix = ".mpt";

// Sequential access to a file without mapping it (a file that is truncated meanwhile would be a SIGBUS).
class Window {
public:
    Window(int fd, std::uint64_t size) : fd_(fd), size_(size) {}

    std::uint64_t size() const { return size_; }

    // Up to `length` bytes at `offset`; fewer only at the end of the file. Valid until the next call.
    std::string_view view(std::uint64_t offset, std::size_t length) {
        if (offset >= size_) return {};
        length = static_cast<std::size_t>(std::min<std::uint64_t>(length, size_ - offset));
        if (offset < start_ || offset + length > start_ + buffer_.size()) load(offset, std::max(length, kWindow));
        return std::string_view(buffer_).substr(static_cast<std::size_t>(offset - start_), length);
    }

private:
    void load(std::uint64_t offset, std::size_t length) {
        start_ = offset;
        length = static_cast<std::size_t>(std::min<std::uint64_t>(length, size_ - offset));
        if (length > buffer_.capacity() || length < buffer_.capacity() / 4) buffer_ = std::string();
        buffer_.resize(length);
        std::size_t done = 0;
        while (done < length) {
            const ssize_t got = ::pread(fd_, buffer_.data() + done, length - done, static_cast<off_t>(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            done += static_cast<std::size_t>(got);
        }
        buffer_.resize(done);
        if (done < length) size_ = offset + done;
    }

    int fd_;
    std::uint64_t size_;
    std::uint64_t start_ = 0;
    std::string buffer_;
};

class File {
public:
    explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ~File() {
        if (fd_ >= 0) ::close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

struct Counts {
    std::uint64_t steps = 0;
    std::uint64_t notes = 0;
    std::uint64_t good = 0;
};

class Scanner {
public:
    Scanner(Window& window, Recording& into) : window_(window), out_(into) {}

    HeaderState header() {
        const std::string_view bytes = window_.view(0, kFileHeaderSize);
        if (bytes.size() < kFileHeaderSize && file_header().starts_with(bytes)) {
            problem(0, bytes.size(), "the file ends within its header");
            return HeaderState::good;
        }
        const HeaderState state = check_file_header(bytes);
        if (state == HeaderState::damaged) {
            first_ = 0;
            problem(0, 0, "the file header is damaged");
        }
        return state;
    }

    // Every intact frame in order of the file: use(offset, header, payload). Damage is reported when
    // `report` says so.
    template <typename Use>
    void scan(bool report, Use use) {
        report_ = report;
        wasted_ = 0;
        std::uint64_t at = first_;
        std::uint64_t expected = 0;
        while (at < window_.size()) {
            const auto header = frame_at(at);
            if (!header) {
                const std::uint64_t next = next_frame(at + 1);
                const bool torn = next >= window_.size();
                problem(at, next - at,
                        exhausted() ? "too much damage to search on"
                        : torn      ? "no whole frame to the end of the file: damaged, or cut off while being written"
                                    : "damaged bytes");
                damaged_before_ = true;
                at = next;
                continue;
            }
            const std::uint64_t length = kFrameOverhead + header->stored;
            if (header->sequence < expected) {
                problem(at, length, "frame " + std::to_string(header->sequence) + " again");
            } else {
                if (header->sequence > expected && !damaged_before_)
                    problem(at, 0, std::to_string(header->sequence - expected) + " frames are missing");
                expected = std::uint64_t{header->sequence} + 1;
                use(at, *header, window_.view(at, static_cast<std::size_t>(length))
                                     .substr(kFrameHeaderSize, header->stored));
            }
            damaged_before_ = false;
            at += length;
        }
        report_ = true;
    }

    void problem(std::uint64_t offset, std::uint64_t lost, std::string why) {
        if (!report_) return;
        if (out_.problems.size() < kMaxProblems) {
            out_.problems.push_back({offset, lost, std::move(why)});
        } else if (out_.problems.size() == kMaxProblems) {
            out_.problems.push_back({offset, lost, "more problems, not listed"});
        } else {
            out_.problems.back().bytes_lost += lost;
        }
    }

private:
    bool exhausted() const {
        return wasted_ > std::max(kWastedHashingAtLeast, kWastedHashing * window_.size());
    }

    std::optional<FrameHeader> frame_at(std::uint64_t at) {
        const std::string_view bytes = window_.view(at, kFrameHeaderSize);
        if (bytes.size() < kFrameHeaderSize) return std::nullopt;
        const auto header = read_frame_header(bytes.data());
        if (!header) return std::nullopt;
        const std::uint64_t length = kFrameOverhead + header->stored;
        if (length > window_.size() - at) return std::nullopt;
        const std::string_view frame = window_.view(at, static_cast<std::size_t>(length));
        if (frame.size() == length && frame_intact(frame)) return header;
        wasted_ += length;
        return std::nullopt;
    }

    // The next place from `at` on where an intact frame begins, or the end of the file.
    std::uint64_t next_frame(std::uint64_t at) {
        while (at + kFrameOverhead <= window_.size() && !exhausted()) {
            const std::string_view bytes = window_.view(at, kWindow);
            const std::size_t found = bytes.find(kFrameMark);
            if (found == std::string_view::npos) {
                // A mark may straddle the end of this view.
                if (bytes.size() < kWindow) break;
                at += bytes.size() - (kFrameMark.size() - 1);
                continue;
            }
            at += found;
            if (frame_at(at)) return at;
            ++at;
        }
        return window_.size();
    }

    Window& window_;
    Recording& out_;
    std::uint64_t wasted_ = 0;
    bool report_ = true;
    std::uint64_t first_ = kFileHeaderSize;  // where frames may begin
    bool damaged_before_ = false;
};

// Payloads as they were before packing.
class Unpacker {
public:
    ~Unpacker() { ZSTD_freeDCtx(context_); }
    Unpacker() = default;
    Unpacker(const Unpacker&) = delete;
    Unpacker& operator=(const Unpacker&) = delete;

    // Nothing: not what the header says. Valid until the next call.
    std::optional<std::string_view> unpack(const FrameHeader& header, std::string_view stored) {
        if (header.flags == 0) return stored;
        if (header.flags != kFlagZstd || !context_) return std::nullopt;
        raw_.resize(header.raw);
        const std::size_t size = ZSTD_decompressDCtx(context_, raw_.data(), raw_.size(), stored.data(), stored.size());
        if (ZSTD_isError(size) || size != header.raw) return std::nullopt;
        return raw_;
    }

private:
    ZSTD_DCtx* context_ = ZSTD_createDCtx();
    std::string raw_;
};

class RecordingReader {
public:
    RecordingReader(int fd, std::uint64_t size, std::uint64_t room, Recording& into)
        : window_(fd, size), scanner_(window_, into), out_(into), room_(4 * size + room) {}

    std::uint64_t room() const { return room_; }

    Status read() {
        const HeaderState state = scanner_.header();
        if (state == HeaderState::newer)
            return Error{out_.path + ": made by a newer mp-trace", "read it with that version"};
        // Names first: those lost in one place are repeated in another.
        Counts counts;
        scanner_.scan(false, [&](std::uint64_t, const FrameHeader& h, std::string_view stored) {
            ++counts.good;
            counts.steps += h.kind == static_cast<std::uint8_t>(FrameKind::step);
            counts.notes += h.kind == static_cast<std::uint8_t>(FrameKind::note);
            if (h.kind != static_cast<std::uint8_t>(FrameKind::names)) return;
            const auto payload = unpacker_.unpack(h, stored);
            if (payload) names_.add(*payload);
        });
        if (state == HeaderState::damaged && counts.good == 0)
            return Error{out_.path + ": not a recording of mp-trace", {}};
        reserve(counts);
        scanner_.scan(true, [this](std::uint64_t at, const FrameHeader& h, std::string_view s) { use(at, h, s); });
        summarise();
        return Done{};
    }

private:
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
                           header.kind <= static_cast<std::uint8_t>(FrameKind::names);
        if (!known) return;  // of a newer writer
        const auto payload = unpacker_.unpack(header, stored);
        if (!payload) {
            scanner_.problem(at, kFrameOverhead + header.stored, "a payload that cannot be unpacked");
            return;
        }
        bool good = true;
        switch (static_cast<FrameKind>(header.kind)) {
            case FrameKind::process: good = process(*payload); break;
            case FrameKind::step: good = step(*payload); break;
            case FrameKind::note: good = note(*payload); break;
            case FrameKind::names: good = names_.add(*payload); break;
        }
        if (!good) scanner_.problem(at, kFrameOverhead + header.stored, "a malformed record");
    }

    bool process(std::string_view payload) {
        ProcessRecord record;
        if (!decode(payload, record)) return false;
        if (out_.has_process) return true;  // the first one counts
        out_.process = std::move(record);
        out_.has_process = true;
        return true;
    }

    bool step(std::string_view payload) {
        if (out_.steps.size() == out_.steps.capacity()) {
            ++skipped_;
            return true;
        }
        StepDecoding how{.names = names_, .room = static_cast<std::size_t>(room_)};
        StepRecord record;
        if (!decode(payload, how, record)) return false;
        room_ = how.room;
        names_lost_ += how.names_lost;
        shortened_ += how.left_out;
        out_.steps.push_back(std::move(record));
        return true;
    }

    bool note(std::string_view payload) {
        NoteRecord record;
        if (!decode(payload, record)) return false;
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
        count(shortened_, " steps are read without all their lists: too large to hold");
        count(skipped_, " records are not read: too many to hold");
    }

    Window window_;
    Scanner scanner_;
    Recording& out_;
    Unpacker unpacker_;
    NameList names_;
    std::uint64_t room_;
    std::uint64_t names_lost_ = 0;
    std::uint64_t shortened_ = 0;
    std::uint64_t skipped_ = 0;
};

bool precedes(const Recording& a, const Recording& b) {
    const ProcessRecord &p = a.process, &q = b.process;
    // Without a rank last: it belongs to nobody.
    return std::make_tuple(!p.rank.known(), p.rank.value, p.restart, std::string_view(p.host), p.pid,
                           std::string_view(a.path)) <
           std::make_tuple(!q.rank.known(), q.rank.value, q.restart, std::string_view(q.host), q.pid,
                           std::string_view(b.path));
}

void list_missing(Run& run) {
    std::int32_t world = 0;
    std::set<std::int32_t> seen;
    for (const Recording& r : run.recordings) {
        world = std::max(world, r.process.world_size);
        if (r.process.rank.known()) seen.insert(r.process.rank.value);
    }
    world = std::min(world, kMaxMissing);
    for (std::int32_t rank = 0; rank < world; ++rank) {
        if (!seen.contains(rank)) run.missing.push_back(Rank{rank});
    }
}

// `room`: memory beyond four times the file; what was used of it is subtracted.
Result<Recording> read_within(const std::string& path, std::uint64_t& room) {
    const File file(path);
    if (file.get() < 0) return Error{path + ": " + std::strerror(errno), {}};
    struct ::stat info {};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return Error{path + ": not a regular file", {}};
    Recording recording;
    recording.path = path;
    recording.bytes = static_cast<std::uint64_t>(info.st_size);
    try {
        RecordingReader reader(file.get(), recording.bytes, room, recording);
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
    return read_within(path, room);
}

Result<Run> read_run(const std::string& directory) {
    DIR* const open = ::opendir(directory.c_str());
    if (!open) return Error{directory + ": " + std::strerror(errno), {}};
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(open)) {
        if (std::string_view(entry->d_name).ends_with(kSuffix)) names.emplace_back(entry->d_name);
    }
    ::closedir(open);
    std::sort(names.begin(), names.end());
    Run run;
    run.directory = directory;
    std::uint64_t room = kRoom;  // one for all: a thousand small bombs are no larger than one
    for (const std::string& name : names) {
        auto recording = read_within(directory + "/" + name, room);
        if (recording) {
            run.recordings.push_back(*std::move(recording));
        } else {
            run.unreadable.push_back(recording.error());
        }
    }
    std::sort(run.recordings.begin(), run.recordings.end(), precedes);
    list_missing(run);
    return run;
}

}  // namespace mp::trace
