#include "runtime/trace/frame.hpp"

#include "runtime/trace/bytes.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#ifdef MP_TRACE_ZSTD
#include <zstd.h>

// libzstd.a refers to these two weakly. Without these definitions our private copy would call the functions of a
// host process that defines them.
extern "C" {
__attribute__((visibility("hidden"))) unsigned long long ZSTD_trace_compress_begin(const void*) { return 0; }
__attribute__((visibility("hidden"))) void ZSTD_trace_compress_end(unsigned long long, const void*) {}
}
#endif

namespace mp::trace {
namespace {

// In bytes. Packing a smaller payload costs more time, for zstd's tables, than writing fewer bytes saves.
[[maybe_unused]] constexpr std::size_t kPackFrom = 1024;

std::uint64_t hash(const char* bytes, std::size_t size) { return XXH3_64bits(bytes, size); }

}  // namespace

std::string file_header() {
    std::string out(kFileHeaderSize, '\0');
    out.replace(0, kFileMagic.size(), kFileMagic);
    store_little(out.data() + 8, kFileVersion);
    store_little(out.data() + 12, static_cast<std::uint32_t>(kFileHeaderSize));
    store_little(out.data() + 24, hash(out.data(), 24));
    return out;
}

HeaderState check_file_header(std::string_view bytes) {
    if (bytes.size() < kFileHeaderSize || !bytes.starts_with(kFileMagic)) return HeaderState::damaged;
    if (load_little<std::uint64_t>(bytes.data() + 24) != hash(bytes.data(), 24)) return HeaderState::damaged;
    const auto version = load_little<std::uint32_t>(bytes.data() + 8);
    return version > kFileVersion ? HeaderState::newer : HeaderState::good;
}

std::optional<FrameHeader> read_frame_header(const char* bytes) {
    if (std::string_view(bytes, kFrameMark.size()) != kFrameMark) return std::nullopt;
    if (load_little<std::uint32_t>(bytes + 20) != static_cast<std::uint32_t>(hash(bytes, 20)))
        return std::nullopt;
    const FrameHeader header{.kind = static_cast<std::uint8_t>(bytes[4]),
                             .flags = static_cast<std::uint8_t>(bytes[5]),
                             .stored = load_little<std::uint32_t>(bytes + 8),
                             .raw = load_little<std::uint32_t>(bytes + 12),
                             .sequence = load_little<std::uint32_t>(bytes + 16)};
    if (header.stored > kMaxPayload || header.raw > kMaxPayload) return std::nullopt;
    return header;
}

bool frame_intact(std::string_view frame) {
    if (frame.size() < kFrameOverhead) return false;
    const std::size_t body = frame.size() - kFrameTrailerSize;
    return load_little<std::uint64_t>(frame.data() + body) == hash(frame.data(), body);
}

Packer::Packer() {
#ifdef MP_TRACE_ZSTD
    context_ = ZSTD_createCCtx();
#endif
}

Packer::~Packer() {
#ifdef MP_TRACE_ZSTD
    ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(context_));
#endif
}

const std::string& Packer::frame(FrameKind kind, std::uint32_t sequence, std::string_view payload) {
    frame_.clear();
    if (payload.size() > kMaxPayload) return frame_;
    std::size_t stored = payload.size();
    std::uint8_t flags = 0;
#ifdef MP_TRACE_ZSTD
    if (context_ && payload.size() >= kPackFrom) {
        frame_.resize(kFrameHeaderSize + ZSTD_compressBound(payload.size()) + kFrameTrailerSize);
        const std::size_t packed =
            ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(context_), frame_.data() + kFrameHeaderSize,
                              frame_.size() - kFrameOverhead, payload.data(), payload.size(), 1);
        if (!ZSTD_isError(packed) && packed < payload.size() - payload.size() / 8) {
            stored = packed;
            flags = kFlagZstd;
        }
    }
#endif
    frame_.resize(kFrameOverhead + stored);
    if (!(flags & kFlagZstd)) payload.copy(frame_.data() + kFrameHeaderSize, stored);
    char* const at = frame_.data();
    kFrameMark.copy(at, kFrameMark.size());
    at[4] = static_cast<char>(kind);
    at[5] = static_cast<char>(flags);
    at[6] = at[7] = 0;
    store_little(at + 8, static_cast<std::uint32_t>(stored));
    store_little(at + 12, static_cast<std::uint32_t>(payload.size()));
    store_little(at + 16, sequence);
    store_little(at + 20, static_cast<std::uint32_t>(hash(at, 20)));
    store_little(at + kFrameHeaderSize + stored, hash(at, kFrameHeaderSize + stored));
    return frame_;
}

}  // namespace mp::trace
