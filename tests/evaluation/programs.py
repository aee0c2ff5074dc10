"""The programs of testdata/programs/numerics, what is known about their bugs, and how to start them."""
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "fakes"))
import own_group  # noqa: E402

FOLDER = os.path.join(ROOT, "testdata", "programs", "numerics")
SEEDED = ("overflow", "stagnate", "accum")  # the three bugs that the other tools are given too
TIMEOUT = 240  # seconds a run


@dataclass
class Case:
    """One program; a control has no bug and no truth."""
    name: str
    program: str
    why: str = ""
    control: str = ""
    options: list = field(default_factory=list)
    ranks: int = 1
    case: int = 0          # in the list of known defects; 0: of our own
    layer: list = field(default_factory=list)
    op: list = field(default_factory=list)
    phase: list = field(default_factory=list)
    step: list = field(default_factory=list)
    rules: list = field(default_factory=list)
    gate: int = 1          # its exit status; 0: the bug is a warning


def load():
    with open(os.path.join(FOLDER, "truth.toml"), "rb") as f:
        table = tomllib.load(f)
    cases = []
    for name, entry in table.items():
        if entry["program"] == "cases.py":
            entry["options"] = ["--case", name]
        cases.append(Case(name=name, **entry))
    return cases


def environment():
    """No launcher around us, one thread a process, no bytecode."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("MP_TRACE", "OMPI_", "PMI", "TORCHELASTIC", "SLURM_"))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "PYTHONPATH", "LD_PRELOAD"):
        env.pop(name, None)
    return {**env, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def command(case, python, *more):
    words = [os.path.join(FOLDER, case.program), *case.options, *more]
    if case.ranks == 1:
        return [python, *words]
    torchrun = os.path.join(os.path.dirname(python), "torchrun")
    return [torchrun, "--standalone", "--nproc-per-node", str(case.ranks), *words]


def run(words, folder, timeout=TIMEOUT):
    """(exit status, output with errors); the process group is gone afterwards."""
    with open(os.path.join(folder, "output"), "wb+") as out:
        process = own_group.start(words, cwd=folder, env=environment(), stdout=out, stderr=subprocess.STDOUT)
        status = own_group.end(process, timeout)
        out.seek(0)
        return status, out.read().decode(errors="replace")
