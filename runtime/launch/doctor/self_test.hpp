#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launch/doctor/report.hpp"
#include "runtime/trace/reader.hpp"

namespace mp::launch::doctor {

// Sums over all steps and processes that `local` mode recorded for one operation.
struct OpSums {
    std::uint64_t elements = 0;
    std::uint64_t nonfinite = 0;
    double error_squares = 0;
    double twin_squares = 0;
};

struct SelfTestFacts {
    std::string fault{};  // no recording was made; the other fields are empty
    std::string hint{};
    bool same_results = false;               // digests of the traced and the untraced run
    std::map<std::string, double> floors{};  // "matmul" -> relative L2 error of rounding its values once
    std::map<std::string, double>
        kernels{};  // that of torch's own results, where they are rounded more than once
    std::map<std::string, OpSums> ops{};  // "aten::mm"
};

// The error that the operations of a recording in `local` mode introduced (LOC), overloads added up.
std::map<std::string, OpSums> local_ops(const trace::Run&);

// The lines "floor NAME VALUE", "kernel NAME VALUE" and "digest TEXT" of self_test.py.
std::map<std::string, double> errors_of(std::string_view out, std::string_view word);
std::string digest_of(std::string_view out);

// bf16 operations must show the error of one rounding of their own values, which is 1.60e-3 to 1.70e-3, or what torch's
// kernel costs on this CPU: both within 1 %. fp32 layer_norm must be exact.
Section self_test_section(const SelfTestFacts&);

// Runs self_test.py untraced and under `tool run --mode local`, in a temporary directory.
SelfTestFacts probe_self_test(const std::string& tool, const std::string& python,
                              const std::vector<std::string>& adapters = {});

}  // namespace mp::launch::doctor
