#pragma once

// Where the headers are that mp-lint brings along, clang's own, and the machine's CUDA toolkit.

#include <string>
#include <vector>

namespace mp::lint {

struct HeaderPlaces {
    std::string resource;  // clang's builtin headers (stddef.h, the CUDA wrappers); empty: not found
    std::string ours;      // holds shims/, cuda/, torch/, other/; empty: not found
};

// Ours: beside the installed program (../share/mp-lint/headers), else in the source tree it was built
// from. Decided once.
const HeaderPlaces& header_places();

// What to install when clang's headers are missing.
std::string resource_hint();

struct CudaToolkit {
    std::string path;     // holds include/cuda_runtime.h; empty: none
    std::string version;  // "13.0", empty when it cannot be read
};

// The first of the candidates that is a toolkit; empty strings are skipped.
CudaToolkit find_toolkit(const std::vector<std::string>& candidates);

// Is this include directory a CUDA toolkit's, PyTorch's?
bool has_cuda_headers(const std::string& dir);
bool has_torch_headers(const std::string& dir);

// XXH3 over names and contents of every header of ours, in a fixed order.
std::string our_headers_hash();

}  // namespace mp::lint
