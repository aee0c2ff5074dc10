#pragma once

#include "cuda.hpp"
#include "options.hpp"

namespace zero1 {

// A communicator of all ranks. Rank 0 writes NCCL's id to options.id_file; the others wait for the file.
ncclComm_t meet(const Options&);

// Starts options.spawn ranks as processes and waits for them. Returns the first status that is not 0.
int spawn(const Options&, char** argv);

}  // namespace zero1
