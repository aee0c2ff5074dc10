#include "analyzer/analyses/numbers.hpp"

#include <charconv>

#include "kernels/numerics/convert.hpp"
#include "kernels/numerics/float_format.hpp"

namespace mp::lint {
namespace {

const FloatFormat& format(DType d) {
    const FloatFormat* known = format_of(d);
    return known ? *known : *format_of(DType::fp32);
}

// `lowp` in questions of range, and in questions of bits.
DType narrowest_range(DType d) { return d == DType::lowp ? DType::fp16 : d; }
DType fewest_bits(DType d) { return d == DType::lowp ? DType::bf16 : d; }

}  // namespace

int significant_bits(DType d) { return format(fewest_bits(d)).significant_bits(); }
double largest_value(DType d) { return max_finite(format(narrowest_range(d))); }
double overflows_from(DType d) { return overflow_threshold(format(narrowest_range(d))); }
double smallest_normal(DType d) { return min_normal(format(narrowest_range(d))); }
double vanishes_below(DType d) { return underflow_threshold(format(narrowest_range(d))); }

std::uint64_t first_inexact_integer(DType d) { return mp::first_inexact_integer(format(fewest_bits(d))); }

double rounded(DType d, double value) { return round_to(narrowest_range(d), value).value_or(value); }

std::string stalls_at(DType d) {
    const auto last_exact = [](DType known) { return std::to_string(first_inexact_integer(known) - 1); };
    if (d == DType::lowp)
        return last_exact(DType::bf16) + " (bf16) or " + last_exact(DType::fp16) + " (fp16)";
    return last_exact(d);
}

std::string and_overflows(DType d, std::string_view what) {
    if (d == DType::bf16) return {};
    return ", and from " + shown(overflows_from(d)) + " on " + std::string(what) + " overflows";
}

std::string shown(double value, int digits) {
    char text[40];
    const auto [end, fault] =
        std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits);
    return fault == std::errc{} ? std::string(text, end) : std::string("?");
}

}  // namespace mp::lint
