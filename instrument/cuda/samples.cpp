#include "instrument/cuda/samples.hpp"

#include <algorithm>
#include <utility>

#include "kernels/cpu/walk.hpp"

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
    return s;
}

}  // namespace mp::raw
