"""The driver's handles of streams, asked of the real libc10_cuda.so of a torch, without a GPU.

    native_stream_test.py TORCH        its folder, such as .venv/lib/python3.11/site-packages/torch

A runtime of CUDA with nothing in it gives each stream a number; native_stream.hpp must tell these numbers. Exit
status: 0 yes, 1 no, 77 where this torch has no CUDA.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
GIVEN = """
int cudaGetDeviceCount(int* count) { return *count = 1, 0; }
int cudaGetDevice(int* device) { return *device = 0; }
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -1, 0; }
static long made = 1000;
int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) { return *stream = (void*)++made, 0; }
"""
PROGRAM = """
#include <c10/core/Device.h>
#include <cstdio>
#include <set>
#include "kernels/torch/native_stream.hpp"
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*)(c10::DeviceIndex));  // libtorch_cuda.so does it
}
int main() {
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    const auto& guard = *c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
    const c10::Device device(c10::DeviceType::CUDA, 0);
    std::set<mp::cuda::Stream> seen;
    for (int i = 0; i < 8; ++i) {
        const c10::Stream stream = guard.getStreamFromGlobalPool(device, i % 2);
        const mp::cuda::Stream handle = mp::native_stream_of_c10_cuda(guard, stream);
        if (handle != mp::native_stream(guard, stream)) return std::puts("two handles"), 1;
        const auto number = reinterpret_cast<long>(handle);
        if (number <= 1000 || number > 1100 || !seen.insert(handle).second) return std::printf("%ld\\n", number), 1;
    }
    const bool legacy = mp::native_stream_of_c10_cuda(guard, guard.getDefaultStream(device)) == nullptr;
    return legacy ? 0 : (std::puts("the default stream has a handle"), 1);
}
"""


def runtime(library, folder):
    """A libcudart.so with what `library` asks for."""
    wanted = re.findall(r" U (\w+)@(libcudart\.so\.\d+)",
                        subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout)
    name = wanted[0][1]
    given = re.findall(r"^int (\w+)\(", GIVEN, re.M)
    rest = "".join(f"int {function}() {{ return 0; }}\n" for function, _ in wanted if function not in given)
    write(folder, "runtime.c", GIVEN + rest)
    write(folder, "runtime.map", name + " { global: *; };\n")
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-Wl,-soname," + name, "-Wl,--version-script=runtime.map",
                    "runtime.c", "-o", name], cwd=folder, check=True)
    return name


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as f:
        f.write(text)


def main(torch):
    torch = os.path.abspath(torch)
    library = os.path.join(torch, "lib/libc10_cuda.so")
    if not os.path.exists(library):
        print("skipped: no", library)
        return 77
    config = os.path.join(torch, "share/cmake/Torch/TorchConfig.cmake")
    old_strings = os.path.exists(config) and "_GLIBCXX_USE_CXX11_ABI=0" in open(config).read()
    with tempfile.TemporaryDirectory() as folder:
        name = runtime(library, folder)
        write(folder, "program.cpp", PROGRAM)
        subprocess.run(["g++", "-std=c++20", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(not old_strings)}", "-I" + ROOT,
                        "-isystem", torch + "/include", "program.cpp", "-Wl,--no-as-needed", library,
                        torch + "/lib/libc10.so", name, "-Wl,--allow-shlib-undefined", "-o", "program"],
                       cwd=folder, check=True)
        return subprocess.run([os.path.join(folder, "program")],
                              env={**os.environ, "LD_LIBRARY_PATH": f"{folder}:{torch}/lib"}).returncode


sys.exit(main(sys.argv[1]))
