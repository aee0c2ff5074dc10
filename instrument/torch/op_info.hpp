#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "instrument/torch/compat.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::twin {

// How the twin follows an op. Each rule is one function of twin.cpp, rules.cpp or collective_rule.cpp.
enum class Rule : std::uint8_t {
    generic,       // the same op on the shadows
    sampler,       // only draws numbers; the shadow gets the real sample
    random,        // a function of its inputs that also draws; run twice from one generator state
    dropout,       // native_dropout: the real mask on the shadow input
    unscale,       // GradScaler's unscale: real found_inf and inverse scale
    follow_real,   // results are the real run's decisions (loss scale, growth tracker)
    by_index,      // values chosen by indices (topk, sort, max): the real indices choose
    no_shadow,     // a result without a meaningful twin (nonzero, unique): real values
    collective,    // c10d: the same collective on the shadows, first
    not_observed,  // send, recv: counted
    foreign,       // of another library: runs once, and the ops that it is made of are observed
    leak,          // a value leaves as a number: real, and compared
};

struct Argument {
    bool tensor = false;         // Tensor, Tensor?, Tensor[], Tensor?[], Tensor[][]
    bool write = false;          // the op changes it (declared, or a mutator known by name)
    bool overwrite = false;      // of the writes: old values do not matter (copy_, zero_, out=)
    bool out = false;            // an out= argument, which may be resized
    bool keep_real = false;      // found_inf, grad_scale: the real run's decisions
    bool real_mask = false;      // a mask or index that decides the result's shape
    bool dtype = false;          // a ScalarType: low precision becomes fp32
    bool half_to_float = false;  // a fused cast that the twin does not need
    bool generator = false;
};

// Everything about an op that its schema and name decide, found once at registration.
struct OpInfo {
    std::string name;  // "aten::mm"
    std::string base;  // "mm": no namespace, overload or trailing underscore
    Traits traits;
    Rule rule = Rule::generic;
    bool writes = false;
    bool is_view = false;            // every result is declared an alias and nothing is written
    bool moves_bytes = false;        // copies elements without computing on them: cat, copy_, all_gather ...
    bool is_of_one_element = false;  // no sum, product, norm or difference: a cosine, a quotient, a cast
    bool may_hold_integers =
        false;  // makes a range of numbers or casts one tensor: what integers_lost_by() asks about
    bool adds_two = false;      // an addition or a difference of two tensors: what RunningTotals asks about
    bool updates_some = false;  // adds tensors to others in place, or moves them there: StandingUpdates
    std::vector<Argument> arguments;
};

OpInfo describe(const c10::OperatorHandle&);

}  // namespace mp::twin
