#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/result.hpp"
#include "kernels/numerics/policy.hpp"

namespace mp::trace {

// One declared precision, in the syntax of --policy and of a program's policy note:
//   fsdp:param=bf16,reduce=fp32,buffer=fp32,output=bf16[@layer]     each key is optional; "none" means no key
//   autocast:cuda=bf16[@layer]      the op list of the run's torch
//   ddp                             parameters are replicated
//   tf32:matmul=off,cudnn=on
//   hmp:bf16=FILE,fp32=FILE         Habana's lists; either may be omitted
//   torch-cpu-2.5, apex-o1, ...     a built-in op list
//   FILE                            the user's own list: a path with '/' or ending in .txt
struct DeclaredPolicy {
    enum class Kind : unsigned char { fsdp, autocast, ddp, tf32, list } kind = Kind::ddp;
    std::string text;   // as given
    std::string layer;  // after '@'; empty: the whole run
    DType param = DType::unknown, reduce = DType::unknown, buffer = DType::unknown, output = DType::unknown;
    std::string device;  // of an autocast policy
    DType low = DType::unknown;
    bool tf32_matmul = false, tf32_cudnn = false;
    std::optional<Policy> list;
    bool declared = false;  // by the user; false: found in the program
};

// `torch_version` ("2.11.0", may be empty) picks the autocast list. The hint of an error lists the allowed values.
Result<DeclaredPolicy> parse_policy(std::string_view text, std::string_view torch_version);

}  // namespace mp::trace
