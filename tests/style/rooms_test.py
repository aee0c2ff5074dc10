"""The fences between rooms: who may include whom, and which outside headers stay in which room.

The rooms and their arrows are the block `rooms` of docs/ARCHITECTURE.md: one line a room, from the bottom up,
with the rooms it includes from. A room may only name rooms above its line, so there is no circle. An include
without an arrow is a fault, and so is an arrow without an include: the picture is the include graph.

Run with the repository root as argument. First proves on planted faults that it can fail.
"""
import os
import re
import sys

SOURCES = (".hpp", ".cpp", ".cuh", ".cu", ".h", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
PICTURE = re.compile(r"^```rooms\n(.*?)^```", re.M | re.S)

# Outside header -> the only places that may include it.
FENCED = [
    (re.compile(r"^(clang|llvm)/"), ("analyzer/clang",)),
    (re.compile(r"^tree_sitter/"), ("analyzer/python",)),
    (re.compile(r"^(torch|ATen|c10)/"), ("instrument/torch", "kernels/torch")),
    (re.compile(r"^cupti"), ("instrument/cupti",)),
    (re.compile(r"^nvtx"), ("instrument/preload/mptrace.h",)),
    (re.compile(r"^(nccl|cublas)"), ()),  # instrument/cuda/abi.hpp declares what we use of them
    (re.compile(r"^(cuda|device_launch)"), ("kernels/cuda",)),
    (re.compile(r"^boost/program_options"), ("kernels/base/cli",)),
    (re.compile(r"^utf8proc"), ("kernels/base/text.cpp",)),
    (re.compile(r"^yaml\.h$"), ("analyzer/python/yaml_reader.cpp",)),
]

# Files of a large room, from the bottom up: a file includes only from rows above its own. Names without ending, but a
# source that stands higher than its header has a place of its own.
LAYERS = {
    "analyzer/driver": """
        front_ends given_options judge named_devices output pinned_version policy_command pool python_scan
        discover
        merge options python_reach real_front_ends
        plan
        units
        gather
        result_cache
        lint
    """,
    "instrument/cuda": """
        abi kernel_pointers memory_names per_process range_names real
        communicators dtypes events nvtx ranges
        activity product_text samples sketches
        meter step_tally
        open_steps skips weights
        event_log
        run
        process run_figures
        activity.cpp annotations hooks nccl_profiler nvtx.cpp nvtx_extensions
        blas blas_lt launches nccl_hooks
        nccl_communicators nccl_operators process.cpp
        nccl
    """,
    "instrument/torch": """
        collective_records compat control current_step device node_pointer pool site test_hooks
        op_info recording safetensors tensors thread_state
        call cast_graph counters cuda_device late_cpu layers masters notes running_totals standing_updates
        tensor_figures work
        call_path coverage_counters devices faults integers python_frame rounded_by_hand
        shadow_map
        fp32_kernels shadow_arguments sources
        ledger
        late
        blanks collectives losses parameters
        kept_casts parameters_masters shortage
        parts
        gradient_sums measure memory_notes saved_state step_tensors
        sample step_clock
        inferred_clock twin rules collective_rule
        adapter
        nodes shim_ops twin_allocator
        op_site
        interceptor
        attach
    """,
}

TREES = ("kernels", "analyzer", "runtime", "instrument")
DATA = ("analyzer/stubs",)  # headers we ship, not code we build
STD_ONLY = ("kernels/numerics",)
TOP = {"CMakeLists.txt", "analyzer", "instrument", "runtime", "kernels", "testdata", "tests", "README.md",
       "LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "script", "cmake", "CMakePresets.json"}


def rooms_of(picture):
    """Room -> rooms it includes from, and what is wrong with the picture itself."""
    rooms, faults = {}, []
    for line in picture.splitlines():
        room, *below = line.split()
        faults += [f"docs/ARCHITECTURE.md: {room} includes {b}, which has no line above it" for b in below
                   if b not in rooms]
        rooms[room] = set(below)
    return rooms, faults


def room_of(rooms, path):
    hits = [room for room in rooms if path.startswith(room + "/")]
    return max(hits, key=len) if hits else None


def row_of(room, path):
    file = os.path.basename(path)
    rows = [row.split() for row in LAYERS[room].strip().splitlines()]
    places = [i for name in (file, os.path.splitext(file)[0]) for i, row in enumerate(rows) if name in row]
    return next(iter(places), None)


def layer_faults(path, text):
    """Includes of a file from its own row or from rows below it."""
    room = os.path.dirname(path)
    if room not in LAYERS:
        return []
    own = row_of(room, path)
    if own is None:
        return [f"{path}: has no row in LAYERS"]
    unit = os.path.splitext(path)[0] + ".hpp"
    # twin.hpp declares what rules.cpp and collective_rule.cpp define.
    allowed = {unit, f"{room}/twin.hpp"} if own == row_of(room, f"{room}/twin.hpp") else {unit}
    return [f"{path}: may not include {h}, which is not below it" for h in INCLUDE.findall(text)
            if os.path.dirname(h) == room and h not in allowed and (row_of(room, h) is None or row_of(room, h) >= own)]


def faults_of(rooms, path, text, used=None):
    """Every broken fence of one file, as messages. Adds the arrows that it goes along to `used`."""
    faults = layer_faults(path, text)
    room = room_of(rooms, path)
    if room is None and path.count("/") > 1:
        faults.append(f"{path}: its room has no line in docs/ARCHITECTURE.md")
    for header in INCLUDE.findall(text):
        for pattern, homes in FENCED:
            if pattern.match(header) and not any(path == h or path.startswith(h + "/") for h in homes):
                faults.append(f"{path}: {header} may only be included in {', '.join(homes) or 'no room'}")
        if header.split("/")[0] not in TREES:
            if room in STD_ONLY and "/" in header:
                faults.append(f"{path}: {room} is std only, not {header}")
            continue
        target = room_of(rooms, header)
        # A main.cpp and its verbs stand above every room of their tree.
        if room is None and (header.split("/")[0] == path.split("/")[0] or header.startswith("kernels/base/")):
            continue
        if target == room:
            continue
        if room is None or target not in rooms[room]:
            faults.append(f"{path}: {room or 'a main file'} may not include {header}")
        elif used is not None:
            used.add((room, target))
    return faults


def sources(root):
    for tree in TREES:
        for folder, _, files in os.walk(os.path.join(root, tree)):
            relative = os.path.relpath(folder, root)
            if any(relative.startswith(d) for d in DATA):
                continue
            for name in files:
                if name.endswith(SOURCES):
                    yield os.path.join(relative, name)


def tree_faults(root, rooms):
    faults, seen, used = [], 0, set()
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            faults += faults_of(rooms, path, f.read(), used)
        seen += 1
    for room, below in rooms.items():
        faults += [f"docs/ARCHITECTURE.md: nothing in {room} includes from {b}" for b in sorted(below)
                   if (room, b) not in used]
    for name in os.listdir(root):
        if not name.startswith(".") and name not in TOP | {"build", "shared"}:
            faults.append(f"{name}: not a room of this house")
    assert seen > 20, "no sources found: is the argument the repository root?"
    return faults


def self_check(rooms):
    assert rooms_of("kernels/a kernels/b\nkernels/b\n")[1], "an arrow that points up was not seen"
    must_fail = [
        ("analyzer/rules/a.cpp", '#include "clang/AST/Decl.h"'),
        ("analyzer/rules/a.cpp", '#include "analyzer/clang/types.hpp"'),
        ("analyzer/analyses/a.cpp", '#include "analyzer/rules/rule.hpp"'),
        ("analyzer/driver/a.cpp", '#include "analyzer/adopt/adopt.hpp"'),
        ("analyzer/unknown/a.cpp", '#include "analyzer/facts/model.hpp"'),
        ("kernels/numerics/a.hpp", '#include "analyzer/facts/model.hpp"'),
        ("kernels/numerics/a.hpp", "#include <nlohmann/json.hpp>"),
        ("runtime/trace/a.cpp", '#include "instrument/torch/x.hpp"'),
        ("runtime/trace/a.cpp", '#include "analyzer/facts/model.hpp"'),
        ("runtime/judge/a.cpp", '#include "runtime/report/sections.hpp"'),
        ("runtime/main.cpp", '#include "analyzer/facts/model.hpp"'),
        ("instrument/torch/twin.cpp", '#include "runtime/report/x.hpp"'),
        ("instrument/torch/unknown.cpp", ""),
        ("analyzer/driver/gather.hpp", '#include "analyzer/driver/lint.hpp"'),
        ("analyzer/driver/unknown.cpp", ""),
        ("instrument/cuda/a.cpp", "#include <nccl.h>"),
        ("instrument/cuda/meter.cpp", '#include "instrument/cuda/run.hpp"'),
        ("instrument/cuda/nvtx.hpp", '#include "instrument/cuda/process.hpp"'),
        ("instrument/cuda/unknown.cpp", ""),
        ("instrument/torch/parameters.cpp", '#include "instrument/torch/measure.hpp"'),
        ("analyzer/main.cpp", "#include <boost/program_options.hpp>"),
        ("runtime/trace/a.cpp", "#include <utf8proc.h>"),
        ("runtime/launch/a.cpp", "#include <cupti.h>"),
    ]
    for path, text in must_fail:
        assert faults_of(rooms, path, text), f"a planted fault was not seen: {path}: {text}"
    for path, text in [("analyzer/clang/a.cpp", '#include "clang/AST/Decl.h"'),
                       ("analyzer/driver/real_front_ends.cpp", '#include "analyzer/clang/extract.hpp"'),
                       ("instrument/cuda/nvtx.cpp", '#include "instrument/cuda/process.hpp"'),
                       ("kernels/base/cli/a.cpp", "#include <boost/program_options.hpp>"),
                       ("kernels/base/text.cpp", "#include <utf8proc.h>"),
                       ("instrument/torch/twin.cpp", '#include <torch/torch.h>\n#include "instrument/torch/sample.hpp"')]:
        assert not faults_of(rooms, path, text), f"a clean include was refused: {path}: {text}"


def main(root):
    with open(os.path.join(root, "docs", "ARCHITECTURE.md"), encoding="utf-8") as f:
        rooms, faults = rooms_of(PICTURE.search(f.read()).group(1))
    self_check(rooms)
    faults += tree_faults(root, rooms)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
