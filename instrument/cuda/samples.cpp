#include "instrument/cuda/samples.hpp"

#include <algorithm>
#include <utility>

#include "kernels/cpu/walk.hpp"
#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/float_format.hpp"

namespace mp::raw {
namespace {

// A matrix of a batch as op(A) has it.
cuda::Strided strided(const Matrix& m, std::int64_t batch, bool transposed = false) {
    cuda::Strided s;
    const auto first = static_cast<std::uint64_t>(batch * m.stride) * cpu::width_of(m.dtype);
    s.data = static_cast<const char*>(m.data) + first;
    s.dtype = m.dtype;
    s.row = m.row_major ? m.leading : 1;
    s.column = m.row_major ? 1 : m.leading;
    if (transposed) std::swap(s.row, s.column);
    return s;
}

struct Every {
    std::int64_t first, step;
    std::uint32_t count;
};

// At most 32 of `all`, at equal distances; other ones for another call.
Every every_few(std::int64_t all, std::uint64_t call) {
    const std::int64_t count = std::min<std::int64_t>(all, cuda::SampledProduct::kMost);
    const std::int64_t step = all / count;
    const std::int64_t spare = all - (count - 1) * step;
    return {static_cast<std::int64_t>(call % static_cast<std::uint64_t>(spare)), step,
            static_cast<std::uint32_t>(count)};
}

double squared(double x) { return x * x; }

// The squares that the errors of some rows have in a sound product: each result is rounded once, in the subnormal range
// to less than a unit; the sum of K terms is rounded K times; and fp32 inputs may be rounded to 16 bits first.
double rounding_of(const cuda::SampledProduct& p, const cuda::RowsError& rows) {
    const FloatFormat* const format = format_of(p.d.dtype);
    if (!format) return 0;
    constexpr double kSum = 0x1p-24, kInput = 0x1p-9;
    const bool wide = p.a.dtype == DType::fp32 || p.b.dtype == DType::fp32;
    const double elements = static_cast<double>(rows.rows) * static_cast<double>(p.all_columns);
    return squared(one_rounding_floor(p.d.dtype)) * rows.squares +
           squared(min_subnormal(*format)) * elements +
           (squared(kSum) * static_cast<double>(p.depth) + (wide ? 2 * squared(kInput) : 0)) * rows.terms;
}

}  // namespace

bool is_measurable(const Matrix& m) { return m.data && m.dtype != DType::unknown && m.elements() > 0; }

cpu::TensorView view_of(const Matrix& m) {
    cpu::TensorView view;
    view.data = m.data;
    view.dtype = m.dtype;
    view.dims = 3;
    view.sizes[0] = m.batches;
    view.strides[0] = m.stride;
    view.sizes[1] = m.row_major ? m.rows : m.columns;
    view.strides[1] = m.leading;
    view.sizes[2] = m.row_major ? m.columns : m.rows;
    view.strides[2] = 1;
    return view;
}

cuda::SampledProduct sample_of(const Product& p, std::uint64_t call) {
    cuda::SampledProduct s;
    const auto batch = static_cast<std::int64_t>(call % static_cast<std::uint64_t>(p.result.batches));
    s.a = strided(p.inputs[0], batch, p.transposed_a);
    s.b = strided(p.inputs[1], batch, p.transposed_b);
    if (p.c >= 0) s.c = strided(p.inputs[p.c], batch);
    if (p.bias >= 0) s.bias = strided(p.inputs[p.bias], 0);
    s.d = strided(p.result, batch);
    s.depth = static_cast<std::int64_t>(p.depth);
    s.alpha = p.alpha;
    s.beta = p.beta;
    const Every rows = every_few(p.result.rows, call), columns = every_few(p.result.columns, call);
    s.first_row = rows.first, s.row_step = rows.step, s.rows = rows.count;
    s.first_column = columns.first, s.column_step = columns.step, s.columns = columns.count;
    s.all_rows = p.result.rows;
    s.all_columns = p.result.columns;
    s.seed = call + 1;
    return s;
}

static_assert(trace::ProductRecord::kRows == cuda::kRowsOfSketch);

std::uint32_t figures_of_sketch(const cuda::SampledProduct& p) {
    return static_cast<std::uint32_t>((p.all_rows + cuda::kRowsOfSketch - 1) / cuda::kRowsOfSketch);
}

trace::ProductRecord record_of(const cuda::SampledProduct& p, const cuda::RowsError* figures) {
    trace::ProductRecord record;
    record.dtype = p.d.dtype;
    record.rows = static_cast<std::uint64_t>(p.all_rows);
    double worst = -1;
    for (std::uint32_t i = 0; i < figures_of_sketch(p); ++i) {
        const cuda::RowsError& rows = figures[i];
        const double rounding = rounding_of(p, rows);
        record.sketched_rows += rows.rows;
        record.error_squares += rows.error_squares;
        record.squares += rows.squares;
        record.rounding_squares += rounding;
        const double off = rounding > 0 ? rows.error_squares / rounding : 0;
        if (rows.rows == 0 || !(off > worst)) continue;
        worst = off;
        record.first_row = static_cast<std::uint64_t>(i) * cuda::kRowsOfSketch;
        record.block_error_squares = rows.error_squares;
        record.block_squares = rows.squares;
        record.block_rounding_squares = rounding;
    }
    return record;
}

}  // namespace mp::raw
