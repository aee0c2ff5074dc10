#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// The outer layer of a recording: a file header, then frames. docs/trace_format.md defines it.

namespace mp::trace {

inline constexpr std::string_view kFileMagic{"\x89MPT\r\n\x1a\n", 8};
inline constexpr std::uint32_t kFileVersion = 3;
inline constexpr std::size_t kFileHeaderSize = 32;

// The first byte occurs in no UTF-8 text, so that names and notes rarely look like a frame.
inline constexpr std::string_view kFrameMark{"\xf5MPF", 4};
inline constexpr std::size_t kFrameHeaderSize = 24;
inline constexpr std::size_t kFrameTrailerSize = 8;
inline constexpr std::size_t kFrameOverhead = kFrameHeaderSize + kFrameTrailerSize;
// Most bytes of a payload, stored or unpacked. A queue of 16 MiB never produces a longer one.
inline constexpr std::uint64_t kMaxPayload = 64u << 20;

enum class FrameKind : std::uint8_t { process = 1, step = 2, note = 3, names = 4, ops = 5 };

inline constexpr std::uint8_t kFlagZstd = 1;

struct FrameHeader {
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::uint32_t stored = 0;    // bytes of payload in the file
    std::uint32_t raw = 0;       // bytes of payload once unpacked
    std::uint32_t sequence = 0;  // 0, 1, 2, ... in one file
};

std::string file_header();

enum class HeaderState { good, newer, damaged };
HeaderState check_file_header(std::string_view bytes);  // the first kFileHeaderSize bytes

// `bytes`: at least kFrameHeaderSize of them. Nothing when they are not the start of a frame.
std::optional<FrameHeader> read_frame_header(const char* bytes);
// Whether header and payload are undamaged; `frame` is a whole frame.
bool frame_intact(std::string_view frame);

// Compresses payloads. Each thread needs its own. Without zstd, or when memory is short, payloads stay unpacked.
class Packer {
public:
    Packer();
    ~Packer();
    Packer(const Packer&) = delete;
    Packer& operator=(const Packer&) = delete;

    // A whole frame, ready to be written; empty when the payload is too long. May throw bad_alloc.
    const std::string& frame(FrameKind, std::uint32_t sequence, std::string_view payload);

private:
    std::string frame_;
    void* context_ = nullptr;
};

}  // namespace mp::trace
