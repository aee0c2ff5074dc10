#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace mp::trace {

// Little-endian bytes and LEB128 numbers, as docs/trace_format.md defines them.

inline std::uint64_t zigzag(std::int64_t v) {
    return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
inline std::int64_t unzigzag(std::uint64_t v) {
    return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

template <typename T>
void store_little(char* at, T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<char>(value >> (8 * i));
}

template <typename T>
T load_little(const char* at) {
    T value = 0;
    if constexpr (std::endian::native == std::endian::little) {
        std::memcpy(&value, at,
                    sizeof value);  // what compilers do not make of the loop where it is vectorised
    } else {
        for (std::size_t i = 0; i < sizeof(T); ++i)
            value = static_cast<T>(
                value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(at[i])) << (8 * i)));
    }
    return value;
}

// Appends to a string that the caller owns.
class ByteWriter {
public:
    explicit ByteWriter(std::string& out) : out_(out) {}

    void u8(std::uint8_t v) { out_ += static_cast<char>(v); }
    void f64(double v) {
        char bytes[8];
        store_little(bytes, std::bit_cast<std::uint64_t>(v));
        out_.append(bytes, sizeof bytes);
    }
    void number(std::uint64_t v) {
        for (; v >= 0x80; v >>= 7) out_ += static_cast<char>(v | 0x80);
        out_ += static_cast<char>(v);
    }
    void signed_number(std::int64_t v) { number(zigzag(v)); }
    void text(std::string_view v) {
        number(v.size());
        out_ += v;
    }

private:
    std::string& out_;
};

// Never reads past its end: missing bytes read as zero, and ok() is then false. So fields that were added to a
// record later have a value in older files.
class ByteReader {
public:
    explicit ByteReader(std::string_view bytes) : left_(bytes) {}

    bool ok() const { return ok_; }
    void refuse() { fail(); }  // a value that no writer of this version makes
    bool at_end() const { return left_.empty(); }
    std::size_t size() const { return left_.size(); }

    std::uint8_t u8() {
        if (left_.empty()) return fail();
        const auto v = static_cast<std::uint8_t>(left_.front());
        left_.remove_prefix(1);
        return v;
    }
    double f64() {
        if (left_.size() < 8) return fail();
        const double v = std::bit_cast<double>(load_little<std::uint64_t>(left_.data()));
        left_.remove_prefix(8);
        return v;
    }
    std::uint64_t number() {
        if (!left_.empty() && static_cast<std::uint8_t>(left_.front()) < 0x80) return u8();
        return long_number();
    }
    std::int64_t signed_number() { return unzigzag(number()); }
    std::string_view bytes(std::uint64_t length) {
        if (length > left_.size()) {
            fail();
            return {};
        }
        const std::string_view v = left_.substr(0, static_cast<std::size_t>(length));
        left_.remove_prefix(v.size());
        return v;
    }
    std::string_view text() { return bytes(number()); }
    // A record with its own length: fields that a newer writer put at its end are skipped.
    ByteReader record() { return ByteReader(text()); }

private:
    std::uint64_t long_number() {
        std::uint64_t v = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (left_.empty()) return fail();
            const auto byte = static_cast<std::uint8_t>(left_.front());
            left_.remove_prefix(1);
            if (shift == 63 && byte > 1) return fail();
            v |= std::uint64_t{byte & 0x7fu} << shift;
            if (!(byte & 0x80)) return v;
        }
        return fail();
    }
    std::uint8_t fail() {
        ok_ = false;
        left_ = {};
        return 0;
    }

    std::string_view left_;
    bool ok_ = true;
};

}  // namespace mp::trace
