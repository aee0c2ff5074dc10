#include "analyzer/cache/entry.hpp"

#include <cstring>

#include <xxhash.h>
#include <zstd.h>

namespace mp::lint {
namespace {

constexpr std::string_view kMagic = "MPLC";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeader = 16;
constexpr std::uint64_t kLargestText = std::uint64_t{1} << 30;
constexpr int kLevel = 1;  // facts shrink about tenfold; higher levels cost more than they save

class Writer {
public:
    template <typename T>
    void number(T value) {
        char bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof(T));
        out.append(bytes, sizeof(T));
    }
    void text(std::string_view value) {
        number(static_cast<std::uint32_t>(value.size()));
        out.append(value);
    }
    std::string out;
};

// Reads within bounds; after the first short read everything is zero and `ok` is false.
class Reader {
public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    template <typename T>
    T number() {
        T value{};
        if (rest_.size() < sizeof(T)) {
            ok = false;
            return value;
        }
        std::memcpy(&value, rest_.data(), sizeof(T));
        rest_.remove_prefix(sizeof(T));
        return value;
    }
    std::string text() {
        const auto size = number<std::uint32_t>();
        if (size > rest_.size()) ok = false;
        if (!ok) return {};
        std::string value(rest_.substr(0, size));
        rest_.remove_prefix(size);
        return value;
    }
    std::string_view rest() const { return rest_; }
    bool ok = true;

private:
    std::string_view rest_;
};

}  // namespace

std::string write_entry(const CacheEntry& entry) {
    Writer body;
    body.number(static_cast<std::uint32_t>(entry.files.size()));
    for (const CachedFile& f : entry.files) {
        body.text(f.path);
        body.number(f.size);
        body.number(f.mtime_ns);
        body.number(f.hash);
    }
    body.number(static_cast<std::uint32_t>(entry.missing.size()));
    for (const std::string& name : entry.missing) body.text(name);
    body.number(static_cast<std::uint32_t>(entry.directories.size()));
    for (const CachedDirectory& d : entry.directories) {
        body.text(d.path);
        body.number(d.mtime_ns);
        body.number(d.names);
    }
    body.number(entry.raw_size);
    body.out.append(entry.packed);

    Writer file;
    file.out.append(kMagic);
    file.number(kVersion);
    file.number(static_cast<std::uint64_t>(XXH3_64bits(body.out.data(), body.out.size())));
    file.out.append(body.out);
    return std::move(file.out);
}

std::optional<CacheEntry> read_entry(std::string_view bytes) {
    if (bytes.size() < kHeader || !bytes.starts_with(kMagic)) return std::nullopt;
    Reader header(bytes.substr(kMagic.size()));
    const auto version = header.number<std::uint32_t>();
    const auto check = header.number<std::uint64_t>();
    const std::string_view body = header.rest();
    if (version != kVersion || XXH3_64bits(body.data(), body.size()) != check) return std::nullopt;

    Reader in(body);
    CacheEntry entry;
    for (auto n = in.number<std::uint32_t>(); n > 0 && in.ok; --n) {
        CachedFile& f = entry.files.emplace_back();
        f.path = in.text();
        f.size = in.number<std::uint64_t>();
        f.mtime_ns = in.number<std::int64_t>();
        f.hash = in.number<std::uint64_t>();
    }
    for (auto n = in.number<std::uint32_t>(); n > 0 && in.ok; --n) entry.missing.push_back(in.text());
    for (auto n = in.number<std::uint32_t>(); n > 0 && in.ok; --n) {
        CachedDirectory& d = entry.directories.emplace_back();
        d.path = in.text();
        d.mtime_ns = in.number<std::int64_t>();
        d.names = in.number<std::uint64_t>();
    }
    entry.raw_size = in.number<std::uint64_t>();
    if (!in.ok || entry.raw_size > kLargestText) return std::nullopt;
    entry.packed = in.rest();
    return entry;
}

std::string pack_text(std::string_view text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    const std::size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), kLevel);
    out.resize(ZSTD_isError(size) ? 0 : size);
    return out;
}

std::optional<std::string> unpack_text(const CacheEntry& entry) {
    std::string out(entry.raw_size, '\0');
    const std::size_t size =
        ZSTD_decompress(out.data(), out.size(), entry.packed.data(), entry.packed.size());
    if (ZSTD_isError(size) || size != entry.raw_size) return std::nullopt;
    return out;
}

}  // namespace mp::lint
