#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mp {

// The element types of numerics rules. `lowp` is fp16 or bf16, but it is not known which. `unknown` is
// counted and shown like any other value; it is never replaced by a guess.
enum class DType : std::uint8_t {
    unknown,
    fp64,
    fp32,
    tf32,  // a compute format: stored as fp32, multiplied with 10 mantissa bits
    fp16,
    bf16,
    e4m3,
    e5m2,
    lowp,
    int64,
    int32,
    int16,
    int8,
    uint64,
    uint32,
    uint16,
    uint8,
    boolean,
};

inline constexpr DType kLastDType = DType::boolean;

// "fp16", "int32", ...: the names in facts, reports and options.
std::string_view name_of(DType);
// The inverse of name_of; also accepts the spellings of PyTorch (float16, half, bfloat16, long ...).
std::optional<DType> dtype_from_name(std::string_view);

constexpr bool is_float(DType d) { return d >= DType::fp64 && d <= DType::lowp; }
constexpr bool is_integer(DType d) { return d >= DType::int64 && d <= DType::uint8; }
constexpr bool is_fp8(DType d) { return d == DType::e4m3 || d == DType::e5m2; }
// A 16-bit float: fp16, bf16, or lowp.
constexpr bool is_half(DType d) { return d == DType::fp16 || d == DType::bf16 || d == DType::lowp; }
// What is known of a value that has one dtype on one path and the other one on another path: of fp16 and bf16
// it is lowp.
constexpr DType common_dtype(DType a, DType b) {
    if (a == b) return a;
    return is_half(a) && is_half(b) ? DType::lowp : DType::unknown;
}
// Anything with fewer mantissa bits or less range than fp32 in storage.
constexpr bool is_low_precision(DType d) { return is_half(d) || is_fp8(d); }

}  // namespace mp
