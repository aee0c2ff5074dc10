#pragma once

#include <cstdint>
#include <string>

#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/phase.hpp"
#include "runtime/trace/fields.hpp"

// Records that belong to those of records.hpp: sketches, which are sums of the elements of a tensor, each times +1 or
// -1, and times of kernels.

namespace mp::trace {

// A block of the tensor of one reduction, as one rank saw it. `sent` and `received` are the sums of its elements times
// +1 or -1, which all ranks choose alike. The exact sum over the ranks is the sum of what they sent, so the error of a
// reduction needs no communication.
struct SketchRecord {
    std::string op;
    std::string reduction;
    DType dtype = DType::unknown;
    std::uint64_t communicator = 0;  // the same number on all of its ranks
    std::uint64_t ranks = 0;
    std::uint64_t rank = 0;      // in the communicator
    std::uint64_t call = 0;      // of the communicator, from 0
    std::uint64_t elements = 0;  // that are reduced, on all ranks together
    std::uint64_t first = 0;     // of the block
    std::uint64_t length = 0;
    double sent = 0;
    double sent_squares = 0;    // of the elements
    bool has_received = false;  // this rank received the block
    double received = 0;
    double received_squares = 0;
};

template <class V>
constexpr void fields(V&& v, Of<SketchRecord>) {
    using R = SketchRecord;
    v(Field{"op"}.bare(), &R::op);
    v(Field{"reduction"}, &R::reduction);
    v(Field{"dtype"}.bare(), &R::dtype);
    v(Field{"communicator"}, &R::communicator);
    v(Field{"ranks"}, &R::ranks);
    v(Field{"rank"}, &R::rank);
    v(Field{"call"}, &R::call);
    v(Field{"elements"}, &R::elements);
    v(Field{"first"}, &R::first);
    v(Field{"length"}, &R::length);
    v(Field{"sent"}, &R::sent);
    v(Field{"sent_squares"}, &R::sent_squares);
    v(Field{"has_received"}.hidden(), &R::has_received);
    v(Field{"received"}, &R::received);
    v(Field{"received_squares"}, &R::received_squares);
}

// A product of which all elements were sketched: with one vector of +1 and -1, its errors' squares are known in sum,
// for each 32 rows of the result. Their standard deviation is about a quarter of them. Rows whose elements or inputs
// are not finite are omitted.
struct ProductRecord {
    static constexpr std::uint64_t kRows = 32;
    std::string layer;
    std::string op;
    Phase phase = Phase::unknown;
    DType dtype = DType::unknown;  // of the result
    std::uint64_t device = 0;      // as in OpRecord
    std::uint64_t rows = 0;        // of the result
    std::uint64_t sketched_rows = 0;
    double error_squares = 0;
    double squares = 0;           // of the result
    double rounding_squares = 0;  // what the errors' squares are in a sound product
    // The 32 rows that are farthest from that: the first of them, and their own sums.
    std::uint64_t first_row = 0;
    double block_error_squares = 0;
    double block_squares = 0;
    double block_rounding_squares = 0;
};

template <class V>
constexpr void fields(V&& v, Of<ProductRecord>) {
    using R = ProductRecord;
    v(Field{"layer"}.bare(), &R::layer);
    v(Field{"op"}.bare(), &R::op);
    v(Field{"phase"}.bare(), &R::phase);
    v(Field{"dtype"}.bare(), &R::dtype);
    v(Field{"device"}, &R::device);
    v(Field{"rows"}, &R::rows);
    v(Field{"sketched_rows"}, &R::sketched_rows);
    v(Field{"error_squares"}, &R::error_squares);
    v(Field{"squares"}, &R::squares);
    v(Field{"rounding_squares"}, &R::rounding_squares);
    v(Field{"first_row"}, &R::first_row);
    v(Field{"block_error_squares"}, &R::block_error_squares);
    v(Field{"block_squares"}, &R::block_squares);
    v(Field{"block_rounding_squares"}, &R::block_rounding_squares);
}

// What kernels of one layer and phase took on the device in one step.
struct TimeRecord {
    std::string layer;
    Phase phase = Phase::unknown;
    std::uint64_t kernels = 0;
    std::uint64_t device_ns = 0;
};

template <class V>
constexpr void fields(V&& v, Of<TimeRecord>) {
    using R = TimeRecord;
    v(Field{"layer"}.bare(), &R::layer);
    v(Field{"phase"}.bare(), &R::phase);
    v(Field{"kernels", Merge::sum}, &R::kernels);
    v(Field{"device_ns", Merge::sum}, &R::device_ns);
}

}  // namespace mp::trace
