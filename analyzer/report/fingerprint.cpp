#include "analyzer/report/fingerprint.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <unordered_map>

#include <xxhash.h>

#include "analyzer/report/display.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kWindow = 100;
constexpr std::uint64_t kBase = 37;
constexpr std::uint16_t kEndOfFile = 65535;

constexpr std::uint64_t power(std::uint64_t base, std::size_t exponent) {
    std::uint64_t out = 1;
    for (; exponent > 0; --exponent) out *= base;
    return out;
}

std::string hexadecimal(std::uint64_t value) {
    char out[20];
    std::snprintf(out, sizeof out, "%llx", static_cast<unsigned long long>(value));
    return out;
}

// A ring buffer of the last 100 units. The hash of a line is complete when its first unit is about to be
// overwritten.
class LineHasher {
public:
    void take(std::uint16_t unit) {
        if (unit == ' ' || unit == '\t' || (after_return_ && unit == '\n')) {
            after_return_ = false;
            return;
        }
        after_return_ = unit == '\r';
        if (unit == '\r') unit = '\n';
        if (starts_[at_]) emit();
        if (line_start_) {
            starts_[at_] = true;
            line_start_ = false;
        }
        if (unit == '\n') line_start_ = true;
        shift(unit);
    }

    std::vector<std::string> finish() {
        take(kEndOfFile);
        for (std::size_t i = 0; i < kWindow; ++i) {
            if (starts_[at_]) emit();
            shift(0);
        }
        return std::move(hashes_);
    }

private:
    void emit() {
        hashes_.push_back(hexadecimal(hash_) + ":" + std::to_string(++seen_[hash_]));
        starts_[at_] = false;
    }

    void shift(std::uint16_t unit) {
        static constexpr std::uint64_t kLeaving = power(kBase, kWindow);
        hash_ = hash_ * kBase + unit - kLeaving * window_[at_];
        window_[at_] = unit;
        at_ = (at_ + 1) % kWindow;
    }

    std::array<std::uint16_t, kWindow> window_{};
    std::array<bool, kWindow> starts_{};
    std::size_t at_ = 0;
    std::uint64_t hash_ = 0;
    bool line_start_ = true;
    bool after_return_ = false;
    std::unordered_map<std::uint64_t, unsigned> seen_;
    std::vector<std::string> hashes_;
};

// The finding's line without blanks.
std::string code_of(const Report& report, const Finding& f) {
    std::string out;
    for (const char c : report.sources.line(f.span.file.str(), f.span.line)) {
        if (c != ' ' && c != '\t') out += c;
    }
    return out;
}

std::string what_of(const Report& report, const Finding& f) {
    return std::string(f.rule) + '\n' + relative_path(f.span.file.str(), report.project_root) + '\n' +
           std::string(f.function.str()) + '\n' + code_of(report, f);
}

}  // namespace

std::string hashed(std::string_view text) {
    const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
    char out[40];
    std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return out;
}

std::vector<std::string> line_hashes(std::string_view text) {
    LineHasher hasher;
    while (!text.empty()) {
        const CodePoint c = decode_utf8(text);
        if (!c.valid) {
            hasher.take(0xFFFD);
        } else if (c.value > 0xFFFF) {
            hasher.take(static_cast<std::uint16_t>(0xD800 + ((c.value - 0x10000) >> 10)));
            hasher.take(static_cast<std::uint16_t>(0xDC00 + ((c.value - 0x10000) & 0x3FF)));
        } else {
            hasher.take(static_cast<std::uint16_t>(c.value));
        }
        text.remove_prefix(c.length);
    }
    return hasher.finish();
}

std::string fingerprint_of(const Report& report, const Finding& f) {
    return hashed(what_of(report, f) + "\n0");
}

std::string code_hash(const Report& report, const Finding& f) {
    std::string_view name = f.function.str();
    name = name.substr(0, name.find('<'));
    const std::size_t scope = name.find_last_of(".:");
    if (scope != std::string_view::npos) name.remove_prefix(scope + 1);
    return hashed(std::string(f.rule) + '\n' + std::string(name) + '\n' + code_of(report, f));
}

std::string Fingerprints::next(const Finding& f) {
    std::string what = what_of(report_, f);
    what += '\n' + std::to_string(seen_[what]++);
    return hashed(what);
}

}  // namespace mp::lint
