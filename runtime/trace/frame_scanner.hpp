#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <zstd.h>

#include "kernels/base/input_file.hpp"
#include "runtime/trace/frame.hpp"
#include "runtime/trace/reader.hpp"

// The parts of the reader of recordings: a window on the file, the search for intact frames, and unpacking.

namespace mp::trace {

inline constexpr std::size_t kWindow = 1u << 20;
// A file made of frame headers whose frames are wrong would be hashed again and again from each of them.
inline constexpr std::uint64_t kWastedHashing = 8;
inline constexpr std::uint64_t kWastedHashingAtLeast = 1u << 28;
inline constexpr std::size_t kMaxProblems = 1000;

// Sequential access to a file without mapping it. Truncating a mapped file would raise SIGBUS.
class Window {
public:
    Window(int fd, std::uint64_t size) : Window(fd, size, own_) {}
    // `buffer` belongs to the caller, so that the next file can use its memory again.
    Window(int fd, std::uint64_t size, std::string& buffer) : fd_(fd), size_(size), buffer_(buffer) {
        buffer_.clear();
    }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    std::uint64_t size() const { return size_; }

    // Up to `length` bytes at `offset`; fewer only at the end of the file. Valid until the next call.
    std::string_view view(std::uint64_t offset, std::size_t length) {
        if (offset >= size_) return {};
        length = static_cast<std::size_t>(std::min<std::uint64_t>(length, size_ - offset));
        if (offset < start_ || offset + length > start_ + buffer_.size())
            load(offset, std::max(length, kWindow));
        return std::string_view(buffer_).substr(static_cast<std::size_t>(offset - start_), length);
    }

private:
    void load(std::uint64_t offset, std::size_t length) {
        start_ = offset;
        length = static_cast<std::size_t>(std::min<std::uint64_t>(length, size_ - offset));
        if (length > buffer_.capacity() || length < buffer_.capacity() / 4) buffer_ = std::string();
        buffer_.resize(length);
        const std::size_t done = read_at(fd_, offset, buffer_.data(), length);
        buffer_.resize(done);
        if (done < length) size_ = offset + done;
    }

    int fd_;
    std::uint64_t size_;
    std::uint64_t start_ = 0;
    std::string own_;
    std::string& buffer_;
};

// Finds the intact frames of a file, also after damaged parts.
class FrameScanner {
public:
    FrameScanner(Window& window, std::vector<Problem>& problems) : window_(window), out_(problems) {}

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

    // Calls use(offset, header, payload) for every intact frame, in the order of the file. Damage is reported when
    // `report` is true.
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
                        : torn
                            ? "no whole frame to the end of the file: damaged, or cut off while being written"
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
                use(at, *header,
                    window_.view(at, static_cast<std::size_t>(length))
                        .substr(kFrameHeaderSize, header->stored));
            }
            damaged_before_ = false;
            at += length;
        }
        report_ = true;
    }

    void problem(std::uint64_t offset, std::uint64_t lost, std::string why) {
        if (!report_) return;
        if (out_.size() < kMaxProblems) {
            out_.push_back({offset, lost, std::move(why)});
        } else if (out_.size() == kMaxProblems) {
            out_.push_back({offset, lost, "more problems, not listed"});
        } else {
            out_.back().bytes_lost += lost;
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
    std::vector<Problem>& out_;
    std::uint64_t wasted_ = 0;
    bool report_ = true;
    std::uint64_t first_ = kFileHeaderSize;  // where frames may begin
    bool damaged_before_ = false;
};

// Decompresses payloads.
class Unpacker {
public:
    ~Unpacker() { ZSTD_freeDCtx(context_); }
    Unpacker() = default;
    Unpacker(const Unpacker&) = delete;
    Unpacker& operator=(const Unpacker&) = delete;

    // Nothing when the payload does not match the header. Valid until the next call.
    std::optional<std::string_view> unpack(const FrameHeader& header, std::string_view stored) {
        if (header.flags == 0) return stored;
        if (header.flags != kFlagZstd || !context_) return std::nullopt;
        char* const raw = room_for(header.raw);
        const std::size_t size = ZSTD_decompressDCtx(context_, raw, header.raw, stored.data(), stored.size());
        if (ZSTD_isError(size) || size != header.raw) return std::nullopt;
        return std::string_view(raw, size);
    }
    // The same, valid until the next call even when `stored` is not.
    std::optional<std::string_view> unpack_kept(const FrameHeader& header, std::string_view stored) {
        if (header.flags == 0)
            return std::string_view(room_for(stored.size()), stored.copy(raw_.get(), stored.size()));
        return unpack(header, stored);
    }

private:
    // Memory that is not zeroed first, and is kept for the next frame.
    char* room_for(std::size_t size) {
        if (size > size_ || !raw_) {
            raw_.reset();
            raw_ = std::make_unique_for_overwrite<char[]>(size);
            size_ = size;
        }
        return raw_.get();
    }

    ZSTD_DCtx* context_ = ZSTD_createDCtx();
    std::unique_ptr<char[]> raw_;
    std::size_t size_ = 0;
};

}  // namespace mp::trace
