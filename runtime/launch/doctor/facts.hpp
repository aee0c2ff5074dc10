#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/trace/identity.hpp"
#include "runtime/trace/records.hpp"

// Results of the probes, as plain values: filled by probe.hpp, judged by sections.hpp. No decisions are
// made here.
namespace mp::launch::doctor {

// A library opened by dlopen. Versions are in the library's own encoding; 0: unknown.
struct LibraryFacts {
    bool found = false;
    std::string path{};  // the name or path that was opened
    std::string why{};   // the loader's error otherwise
    int version = 0;
    int status = 0;  // for libcuda: result of cuInit, 0: success, -1: there is no cuInit
};

struct GpuFacts {
    std::string name{};
    int major = 0;  // compute capability
    int minor = 0;
};

struct CudaFacts {
    std::string fault{};     // the probe itself failed, so the fields below are unknown
    LibraryFacts driver{};   // libcuda: 13000 is 13.0; status is that of cuInit
    LibraryFacts runtime{};  // libcudart
    LibraryFacts nccl{};     // libnccl: 21003 is 2.10.3, 2804 is 2.8.4
    std::vector<GpuFacts> gpus{};
};

// Output of `EXE -I -c "import torch; ..."`, or of `EXE -c` when the user's own paths lead to another
// torch.
struct TorchFacts {
    std::string python{};      // as requested
    std::string fault{};       // the reason when the child failed
    std::string fault_text{};  // the end of its stderr
    bool found = false;
    bool isolated =
        true;  // false: the program's torch is found only with PYTHONPATH and the user's site-packages
    std::string executable{};
    std::string python_version{};
    std::string version{};
    std::string file{};        // torch/__init__.py
    std::string libtorch{};    // the libtorch_cpu.so that is mapped
    std::string cuda_built{};  // torch.version.cuda; empty: built without CUDA
    std::string hip_built{};   // torch.version.hip
    std::string cudnn{};
    std::optional<bool> cxx11_abi{};
    std::optional<bool> cuda_available{};
    std::optional<bool> bf16_supported{};         // torch.cuda.is_bf16_supported(), which includes
                                                  // emulation
    std::optional<bool> bf16_supported_native{};  // ... (including_emulation=False), if it exists
    std::vector<int> nccl_version{};              // torch.cuda.nccl.version(), {2, 10, 3}
    std::optional<bool> distributed{}, nccl{}, gloo{}, mpi{}, ucc{};
    std::string autocast_cpu{}, autocast_cuda{};  // default dtypes
    std::string cpu_capability{};                 // "AVX512"
    std::optional<bool> mkldnn_bf16{}, mkldnn_fp16{};
    std::map<std::string, std::string> switches{};  // "cuda.matmul.allow_tf32" -> "False"
    std::vector<std::string> library_dirs{};        // directories in which pip installed CUDA's libraries
    std::string cupti{};                            // the bytes of a CuptiProbe made after `import torch`
};

// The adapter for this torch, or the tools that could build one.
struct AdapterFacts {
    std::string id{};  // of libtorch_cpu.so; empty: `why`
    std::string why{};
    std::string path{};     // empty: none in `searched`
    bool outdated = false;  // built from other sources than the current ones
    std::vector<std::string> searched{};
    std::string sources{};                     // directory of its sources; empty: not installed
    std::string cmake{}, compiler{}, ninja{};  // paths; empty: not on PATH
};

// Whether our preload and our Python shim reach this interpreter.
struct ReachFacts {
    std::string preload{}, shim{};  // their expected paths
    bool preload_there = false, shim_there = false;
    bool asked = false;  // false: one of the two files is missing
    std::string fault{};
    bool preload_mapped = false;
    bool shim_ran = false;
    std::string sitecustomize{};  // the user's own; it stays the only module of this name
};

struct EnvironmentFacts {
    std::map<std::string, std::string> variables{};  // the variables that a section reports
};

struct LauncherFacts {
    trace::Identity identity{};
    std::vector<std::string> matched{};  // "RANK=3": variables that were used
};

// The result of libmptrace_cupti_probe.so, in a process without torch and in one with torch.
struct CuptiAnswer {
    bool asked = false;  // false: `why`
    std::string why{};
    int state = 0;  // MpCuptiState
    int code = 0;   // CUptiResult
    std::uint32_t version = 0;
    std::string library{}, call{}, holder{}, message{};
};

struct CuptiFacts {
    std::string probe{};  // path of the library; empty: not built
    CuptiAnswer plain{}, with_torch{};
};

struct CpuFacts {
    std::string architecture{};  // "x86_64", "aarch64"
    std::string vendor{}, brand{};
    bool avx2 = false, fma = false, f16c = false;
    bool avx512 = false;  // F, BW, DQ and VL, and the system saves their registers
    bool avx512_bf16 = false, avx512_fp16 = false;
    bool amx_bf16 = false, amx_fp16 = false;
    bool avx_ne_convert = false;  // bf16 and fp16 loads of processors without AVX-512
    bool arm_bf16 = false, arm_fp16 = false;
    int processors = 0;  // available to this process
    std::uint64_t memory_bytes = 0, available_bytes = 0;
    std::uint64_t limit_bytes = 0;  // of the control group; 0: none
};

// The CUDA libraries that a program uses, as its file shows. Nothing is run.
struct ProgramFacts {
    std::string path{};
    std::string fault{};  // not an ELF file, or one that cannot be read
    bool is_static = false;
    bool torch = false, nvtx = false, nvtx2 = false;
    bool shared_runtime = false, opens_driver = false;
    bool cublas = false, cublas_lt = false, static_cublas = false;
    bool nccl = false, static_nccl = false;
    std::string nccl_version{};  // of the NCCL in it, else of the one that it would load; empty: unknown
    std::map<std::string, std::string> places{};  // of libraries of tools (kCudaPlaces), and what has them
};

struct SourceFinding {
    std::string rule{}, name{};  // "MP412", "collective-count-in-bytes"
    std::string place{};         // "llmc/zero.cuh:483:19"
    std::string message{}, fix{};
};

// What mp-lint found in the sources of a program.
struct SourceFacts {
    std::string lint{};  // its path; empty: it is not installed beside mp-trace
    std::vector<std::string>
        files{};        // what it was given: files, or the folder that the user named; empty: none found
    bool named = true;  // false: the program has no names of its units, because it was stripped
    std::vector<std::string> ambiguous{};  // names of units that several files have; none of them was read
    std::vector<std::string> missing{};    // names of units that no file has
    std::string database{};                // the compile database whose flags were used; empty: none
    std::vector<std::string> flags{};      // given by the user, instead of a database
    std::string command{};                 // mp-lint with all of its rules, for a shell
    std::string fault{};                   // why mp-lint gave no answer
    std::vector<SourceFinding> findings{};
    std::vector<std::string> incomplete{};  // units that it could not read wholly, and why
};

// What was observed, according to a run directory.
struct RecordingFacts {
    std::string path{};
    std::string fault{};
    std::vector<trace::ProcessRecord> processes{};
    std::vector<std::string> missing{};  // notes about what was not observed, once each
};

struct Facts {
    LauncherFacts launcher{};
    EnvironmentFacts environment{};
    ReachFacts reach{};
    TorchFacts torch{};
    AdapterFacts adapter{};
    CudaFacts cuda{};
    CuptiFacts cupti{};
    CpuFacts cpu{};
};

}  // namespace mp::launch::doctor
