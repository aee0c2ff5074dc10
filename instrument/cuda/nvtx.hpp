#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "instrument/cuda/abi.hpp"

// What the core of NVTX and its extensions share. All of these may throw.

namespace mp::raw::nvtx {

// The text of a message; empty: there is none.
std::string text_of(int type, abi::NvtxMessage);
std::uint32_t id_of(const void* domain);

// The names of the domains that were made so far: "NCCL (of a library), training".
std::string domains();

void push(std::uint32_t domain, std::string_view name) noexcept;
void pop(std::uint32_t domain) noexcept;
// Ranges with a start and an end. 0: the range is not a step.
std::uint64_t start(std::string_view name) noexcept;
void end(std::uint64_t id) noexcept;

// A range whose number is beside its name: "Layer" and 3 are "Layer 3". Other numbers are not a part of the name.
std::string with_number(const std::string& name, std::int64_t number);
// The name that payloads of schemas give a range; where they have none, `name`, with their number of a layer or step.
std::string name_of_payloads(const abi::NvtxPayload*, std::size_t count, std::string name);

}  // namespace mp::raw::nvtx
