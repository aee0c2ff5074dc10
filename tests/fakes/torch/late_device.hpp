#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>
#include <cuda.h>

#include <cstdint>

// A device of torch for machines without a GPU, "late", on the fake libcuda.so.1: the host cannot read its memory, its
// ops run later than the calls, and freed memory is overwritten. See late.py. Safe from any thread.
namespace mp::late {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// device.cpp: streams, events, memory, random numbers.
c10::Stream current_stream();
c10::Stream stream_of_collectives();
CUstream native(const c10::Stream&);
// Waits for the stream as a program does that reads a value; counted.
void synchronise(const c10::Stream&);
// The same for the fakes' own purposes.
void drain();
c10::Allocator* allocator();
void record_stream(const c10::DataPtr&, const c10::Stream&);
// A generator of the CPU with the numbers of the device's next random op.
at::Generator next_numbers(const std::optional<at::Generator>&);

// An empty tensor of the device.
at::Tensor empty(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType);
// A tensor of the CPU over the same memory, as the device's own work sees it.
at::Tensor seen_by_device(const at::Tensor&);

}  // namespace mp::late
