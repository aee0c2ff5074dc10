#pragma once

// What is known about ops: the traits that policies/ops.txt gives them. The head of that file defines each
// trait in one sentence. Only the overload for Op uses interned strings; the torch adapter, which has none,
// compiles op_traits.cpp alone.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mp {

class Op;

enum class Trait : std::uint8_t {
    keeps,
    promotes,
    sums_integers,
    floats_integers,
    truths,
    indices,
    extremes,
    several,
    second_tensor,
    moves,
    reduces,
    adds_by_index,
    loss,
    finite_test,
    bounded,
    caps,
    needs_fp32,
    fp32_inside,
    sums_in_fp32,
    ill_conditioned,
    elementwise,
    sum_step,
    product,
    norm,
    rounds_twice,
    fused,
    chooses,
    whole_layer,
    no_half,
    no_bf16,
    writes_constants,
    arithmetic,
    domain,
    copies,
    no_element,
    samples,
    overwrites,
    hidden_stats,
    by_index,
    own_integers,
    no_twin,
    leaks,
    half_only,
    in_place,
};
constexpr Trait kLastTrait = Trait::in_place;

class Traits {
public:
    constexpr Traits() = default;

    constexpr bool has(Trait trait) const { return (bits_ & bit(trait)) != 0; }
    constexpr void add(Trait trait) { bits_ |= bit(trait); }
    constexpr void add(Traits others) { bits_ |= others.bits_; }

private:
    static_assert(static_cast<unsigned>(kLastTrait) < 64);
    static constexpr std::uint64_t bit(Trait trait) {
        return std::uint64_t{1} << static_cast<unsigned>(trait);
    }

    std::uint64_t bits_ = 0;
};

std::string_view name_of(Trait);  // as ops.txt spells it
std::optional<Trait> trait_from_name(std::string_view);

// All of these are empty for an op that the table does not name.
Traits traits_of(Op);
// By a name of ATen or of PyTorch's dispatcher without namespace, overload and trailing underscore: "add",
// "constant_pad_nd", "_foreach_add".
Traits traits_of(std::string_view name);
// By a name that torch.distributed or c10d gives to a collective: "all_reduce", "allreduce_coalesced".
Traits traits_of_collective(std::string_view name);
// By the name that a recording has: "aten::_foreach_add_", "aten::native_layer_norm_backward". The traits are
// those of base_name().
Traits traits_of_recorded(std::string_view op);

// Of an op that gives several tensors: whether this one has elements of the first input. All parts of chunk, and the
// values that topk chooses, but not the indices beside them.
bool item_has_elements(Traits, std::size_t item);

// Whether a function of C++ or CUDA asks if a number is infinite or NaN, by its own name: isfinite, __isnanf, __hisinf,
// finitef. Ops of PyTorch have Trait::finite_test.
bool spells_finite_test(std::string_view name);

// The name of an op without what marks its variants: namespace, overload, leading "_" and "native_", "_out", the
// in-place "_", "_backward", "_forward". "addmm" of "aten::addmm", "softmax" of "aten::_softmax", "layer_norm" of
// "aten::native_layer_norm_backward". Empty only for an empty name.
std::string base_name(std::string_view op);

}  // namespace mp
