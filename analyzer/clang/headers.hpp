#pragma once

// The directories of our own headers, of clang's headers, and of the machine's CUDA toolkit.

#include <string>
#include <vector>

namespace mp::lint {

struct HeaderPlaces {
    std::string resource;  // clang's builtin headers (stddef.h, the CUDA wrappers); empty: not found
    std::string ours;      // contains shims/, cuda/, torch/, other/; empty: not found
};

// Our headers are beside the installed program (../share/mp-lint/headers), else in the source tree of the
// build. Computed once.
const HeaderPlaces& header_places();

// A hint that names the package to install when clang's headers are missing.
std::string resource_hint();

struct CudaToolkit {
    std::string path;     // contains include/cuda_runtime.h; empty: none
    std::string version;  // "13.0", empty when it cannot be read
};

// The first of the candidates that is a toolkit; empty strings are skipped.
CudaToolkit find_toolkit(const std::vector<std::string>& candidates);

// Whether this include directory belongs to a CUDA toolkit, or to PyTorch.
bool has_cuda_headers(const std::string& dir);
bool has_torch_headers(const std::string& dir);

// XXH3 over names and contents of all our headers, in a fixed order.
std::string our_headers_hash();

}  // namespace mp::lint
