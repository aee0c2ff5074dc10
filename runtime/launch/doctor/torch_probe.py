# Run by `mp-trace doctor` as `EXE [-I] -c <this> [libmptrace_cupti_probe.so]`. Works with every Python 3
# and every torch: attributes that a torch does not have are left out. Prints one line of JSON, then one
# about CUPTI if asked.
import json
import sys
import warnings

warnings.filterwarnings("ignore")
sys.path[:] = [entry for entry in sys.path if entry]  # never import from the working directory

SWITCHES = {
    "cuda.matmul.allow_tf32": "torch.backends.cuda.matmul.allow_tf32",
    "cudnn.allow_tf32": "torch.backends.cudnn.allow_tf32",
    "float32_matmul_precision": "torch.get_float32_matmul_precision()",
    "fp32_precision": "torch.backends.fp32_precision",
    "cuda.matmul.fp32_precision": "torch.backends.cuda.matmul.fp32_precision",
    "cudnn.fp32_precision": "torch.backends.cudnn.fp32_precision",
    "cudnn.conv.fp32_precision": "torch.backends.cudnn.conv.fp32_precision",
    "cudnn.rnn.fp32_precision": "torch.backends.cudnn.rnn.fp32_precision",
    "mkldnn.matmul.fp32_precision": "torch.backends.mkldnn.matmul.fp32_precision",
    "mkldnn.conv.fp32_precision": "torch.backends.mkldnn.conv.fp32_precision",
    "cuda.matmul.allow_bf16_reduced_precision_reduction":
        "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cuda.matmul.allow_fp16_reduced_precision_reduction":
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_fp16_accumulation": "torch.backends.cuda.matmul.allow_fp16_accumulation",
}
QUESTIONS = {
    "version": "str(torch.__version__)",
    "file": "str(torch.__file__)",
    "cuda_built": "torch.version.cuda",
    "hip_built": "torch.version.hip",
    "cudnn": "torch.backends.cudnn.version()",
    "cxx11_abi": "bool(torch._C._GLIBCXX_USE_CXX11_ABI)",
    "cuda_available": "torch.cuda.is_available()",
    "bf16_supported": "torch.cuda.is_bf16_supported()",
    "bf16_supported_native": "torch.cuda.is_bf16_supported(including_emulation=False)",
    "nccl_version": "torch.cuda.nccl.version()",
    "distributed": "torch.distributed.is_available()",
    "nccl": "torch.distributed.is_nccl_available()",
    "gloo": "torch.distributed.is_gloo_available()",
    "mpi": "torch.distributed.is_mpi_available()",
    "ucc": "torch.distributed.is_ucc_available()",
    "autocast_cpu": "torch.get_autocast_dtype('cpu') if hasattr(torch, 'get_autocast_dtype')"
                    " else torch.get_autocast_cpu_dtype()",
    "autocast_cuda": "torch.get_autocast_dtype('cuda') if hasattr(torch, 'get_autocast_dtype')"
                     " else torch.get_autocast_gpu_dtype()",
    "cpu_capability": "torch.backends.cpu.get_cpu_capability()",
    "mkldnn_bf16": "torch.ops.mkldnn._is_mkldnn_bf16_supported()",
    "mkldnn_fp16": "torch.ops.mkldnn._is_mkldnn_fp16_supported()",
}


def say(kind, value):
    sys.stdout.write("\nmp-trace-doctor:" + kind + " " + value + "\n")
    sys.stdout.flush()


def plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, tuple):
        return [int(v) for v in value]
    return str(value)


def ask(torch, question):
    """The answer, or None when this torch does not have the attribute or raises."""
    try:
        return plain(eval(question, {"torch": torch}))
    except BaseException:  # a torch without CUDA asserts; others may raise anything
        return None


def mapped(beginning):
    """The path of the mapped file with this name, possibly with a version suffix."""
    try:
        with open("/proc/self/maps", errors="replace") as maps:
            for line in maps:
                path = line.rstrip("\n").split(None, 5)[5:]
                if path and path[0].rpartition("/")[2].startswith(beginning):
                    return path[0]
    except OSError:
        pass
    return ""


def library_dirs(torch):
    """The directories in which pip installs CUDA's libraries: torch/lib and nvidia/*/lib."""
    import glob
    import os
    root = os.path.dirname(os.path.abspath(torch.__file__))
    return [os.path.join(root, "lib")] + sorted(glob.glob(os.path.join(os.path.dirname(root), "nvidia", "*", "lib")))


def main():
    facts = {"found": False, "executable": sys.executable, "python_version": sys.version.split()[0]}
    try:
        import importlib.util
        facts["found"] = importlib.util.find_spec("torch") is not None
        if facts["found"]:
            import torch
            for name, question in QUESTIONS.items():
                facts[name] = ask(torch, question)
            facts["libtorch"] = mapped("libtorch_cpu.so")
            facts["switches"] = {name: str(answer) for name, answer in
                                 ((name, ask(torch, question)) for name, question in SWITCHES.items())
                                 if answer is not None}
            facts["library_dirs"] = library_dirs(torch)
    except BaseException as error:
        facts["fault"] = type(error).__name__ + ": " + str(error)[:500]
    say("facts", json.dumps(facts))
    if facts["found"] and "fault" not in facts and len(sys.argv) > 1:
        import ctypes
        import struct
        probe = ctypes.CDLL(sys.argv[1]).mptrace_cupti_probe
        size = int(sys.argv[2])
        answer = ctypes.create_string_buffer(size)
        struct.pack_into("=I", answer, 0, size)
        if probe(answer, None) == 0:
            say("cupti", answer.raw.hex())


main()
