"""Starts one case three times (low precision, the same under mp-trace, plain fp32) and judges the results."""
import atexit
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field

import compare
from cases import TORCHRUN

FAKES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fakes")
sys.path.append(FAKES)
import own_group  # noqa: E402

TIMEOUT = 300  # seconds a run; a shadow collective that hangs must not hang the suite
SKIPPED = re.compile(r"^step (\d+) .* skipped$", re.M)
COUNTERS = ("seeds_after_step_0", "external_after_step_0", "failed", "unshadowed", "flips", "leaks", "stale",
            "regrouped", "relaid", "drawn")


@dataclass
class Setting:
    """Where things are."""
    root: str
    mp_trace: str
    torch: str       # "2.11" or "debian"
    python: str
    sharded_gpt: str
    options: list = field(default_factory=list)  # further options of mp-trace
    long: bool = False


@dataclass
class Result:
    case: object
    seed: int
    faults: list = field(default_factory=list)      # why the case is red, whatever it expects
    exact: bool = False
    transparent: bool = False                       # T=P
    losses: compare.Match = field(default_factory=compare.Match)
    matches: dict = field(default_factory=lambda: {k: compare.Match() for k in compare.KINDS})
    counters: dict = field(default_factory=dict)
    skipped: int = 0
    low_loss: float = 0.0   # largest |low - fp32| of a loss, relative
    low_weight: float = 0.0  # the same of a parameter
    torch: str = ""

    def expected(self):
        """Why the twin cannot be the fp32 run with this torch; None: it must be."""
        inexact = self.case.inexact
        return inexact if inexact and (not self.torch or self.torch in inexact.torches) else None

    def wrong(self):
        return self.losses.wrong + [w for m in self.matches.values() for w in m.wrong]


def environment(extra=None):
    """One thread, no bytecode, Open MPI as root: settings that all three runs share."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MP_TRACE", "OMPI_", "TORCHELASTIC", "SLURM_"))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "PYTHONPATH", "LD_PRELOAD"):
        env.pop(name, None)
    env.update({"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TOKENIZERS_PARALLELISM": "false",
                "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"})
    env.update(extra or {})
    return env


def program_of(setting, case, seed, precision, skips):
    """The script or program with its options; files are named relative to a fresh directory."""
    options = [*case.options, "--seed", str(seed), "--steps", str(case.steps), "--save", "result.%r"]
    if skips:
        options += ["--skip-steps", ",".join(map(str, skips))]
    if case.program == "sharded_gpt":
        if precision == "fp32":
            options += ["--precision", "fp32"]
        return [setting.sharded_gpt, "--spawn", str(case.ranks), *options]
    options += ["--precision", precision]
    if case.ranks > 1 and setting.torch == "debian":  # its torchrun does not run on Python 3.11
        options += ["--store", "rendezvous"]
    return [os.path.join(setting.root, "testdata", "programs", "gpt", case.program), *options]


def ranks_of(count, command):
    """The command of a launcher that does not import torch."""
    return ["sh", os.path.join(FAKES, "ranks.sh"), str(count), own_group.free_port(), *command]


def launched(setting, case, program):
    """The command as a user types it."""
    if case.program == "sharded_gpt":
        return program
    if case.ranks == 1:
        return [setting.python, *program]
    if setting.torch == "debian":
        return ["mpirun", "-np", str(case.ranks), setting.python, *program]
    if not setting.long and case.name not in TORCHRUN:
        return ranks_of(case.ranks, [setting.python, *program])
    torchrun = os.path.join(os.path.dirname(setting.python), "torchrun")
    return [torchrun, "--standalone", "--nproc-per-node", str(case.ranks), *program]


def with_output(status, folder):
    contents = []
    for name in ("stdout", "stderr"):
        with open(os.path.join(folder, name), "rb") as f:
            contents.append(f.read())
    return (status, *contents)


def run(command, folder, env):
    """(exit status, stdout, stderr); the whole process group is gone afterwards."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "stdout"), "wb") as out, open(os.path.join(folder, "stderr"), "wb") as err:
        status = own_group.end(own_group.start(command, cwd=folder, env=env, stdout=out, stderr=err), TIMEOUT)
    return with_output(status, folder)


# What the programs of several ranks import beyond torch.
PRELOADED = ("torch.distributed.fsdp", "torch.distributed.optim", "torch.nn.parallel")
SERVERS = threading.local()  # a reference server for each thread of the suite


def end_of_server(process):
    process.stdin.close()
    process.wait()


def run_forked(command, folder, modules=(), ranks=1):
    """The same of `python script ...` without its import of torch and `modules`, see reference_server.py."""
    os.makedirs(folder, exist_ok=True)
    if not hasattr(SERVERS, "process"):
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference_server.py")
        SERVERS.process = subprocess.Popen([command[0], server, *modules], env=environment(), text=True,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        atexit.register(end_of_server, SERVERS.process)
    request = {"argv": command[1:], "cwd": folder, "timeout": TIMEOUT, "ranks": ranks,
               "stdout": os.path.join(folder, "stdout"), "stderr": os.path.join(folder, "stderr")}
    SERVERS.process.stdin.write(json.dumps(request) + "\n")
    SERVERS.process.stdin.flush()
    return with_output(json.loads(SERVERS.process.stdout.readline()), folder)


def run_untraced(setting, case, program, folder):
    """Torch 1.13's gloo sometimes aborts when its process ends, traced or not: a reference is worth a second try."""
    def once():
        if case.program == "sharded_gpt":
            return run(program, folder, environment())
        return run_forked([setting.python, *program], folder, PRELOADED, case.ranks)
    done = once()
    if setting.torch == "debian" and case.ranks > 1 and done[0] in (134, -signal.SIGABRT):
        print(f"once more: {case.name}: the untraced run aborted", flush=True)
        for name in os.listdir(folder):
            if name != "decisions":
                os.remove(os.path.join(folder, name))
        done = once()
    return done


def saved(folder, stem):
    """The files of one run in order of rank: name -> path."""
    return {os.path.basename(p).split(".", 1)[1]: p for p in sorted(glob.glob(os.path.join(folder, stem + ".*")))}


def by_rank(files):
    """Rank -> path; a process without a rank is rank 0."""
    return {int(key) if key.isdigit() else 0: path for key, path in files.items()}


def twin_losses(report, roots):
    """Rank -> the twin's loss of each step of the first optimizer (of each backward() when `roots` is "all")."""
    losses = {}
    for step in report["steps"]:
        for entry in step["ranks"]:
            if entry["optimizer"] != 0 or not entry["losses"]:
                continue
            chosen = {"first": slice(0, 1), "last": slice(-1, None), "all": slice(None)}[roots]
            for loss in entry["losses"][chosen]:
                value = loss.get("twin_loss_hex")
                losses.setdefault(entry["rank"] or 0, []).append(None if value is None else float.fromhex(value))
    return losses


def tail(text):
    lines = [line for line in text.decode(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-400:]


def check_transparent(result, plain_folder, traced_folder, plain, traced):
    """T=P: exit status, stdout and files of the traced run are those of the untraced one."""
    if plain[0] != traced[0]:
        result.faults.append(f"traced run: exit {traced[0]} instead of {plain[0]}: {tail(traced[2])}")
    if plain[1] != traced[1]:
        result.faults.append("traced run: another stdout")
    a, b = saved(plain_folder, "result"), saved(traced_folder, "result")
    if sorted(a) != sorted(b):
        result.faults.append(f"traced run: files {sorted(b)} instead of {sorted(a)}")
    for key in sorted(set(a) & set(b)):
        with open(a[key], "rb") as f, open(b[key], "rb") as g:
            if f.read() != g.read():
                result.faults.append(f"traced run: another result.{key}")
    # The program's own output must not change either, so every line of ours begins with "mp-trace: ".
    ours = [line for line in traced[2].split(b"\n") if b"mp-trace" in line and not line.startswith(b"mp-trace: ")]
    if ours and b"Traceback" not in traced[2]:
        result.faults.append(f"stderr: {ours[0][:120]!r} does not begin with 'mp-trace: '")
    result.transparent = not result.faults


def compare_twin(case, traced_folder, reference_folder, report):
    """(match of losses, match of each kind of tensors) of the twin and a run in fp32."""
    reference, twin = by_rank(saved(reference_folder, "result")), by_rank(saved(traced_folder, "twin"))
    told = twin_losses(report, case.roots)
    match = compare.match_contents if case.program == "sharded_gpt" else compare.match_names
    losses, matches = compare.Match(), {k: compare.Match() for k in compare.KINDS}
    for rank, path in sorted(reference.items()):
        expected = compare.read_safetensors(path)
        found = compare.read_safetensors(twin[rank]) if rank in twin else {}
        parts = [(losses, compare.match_losses(compare.losses_of(expected), told.get(rank, [])))]
        parts += [(matches[kind], m) for kind, m in match(expected, found).items()]
        for total, m in parts:
            m.wrong = [f"rank {rank}: {w}" for w in m.wrong]
            total.add(m)
    return losses, matches


def check_twin(result, case, traced_folder, fp32_folder, report):
    """W=F: losses, parameters, gradients and optimizer state of the twin are those of the fp32 run."""
    result.losses, result.matches = compare_twin(case, traced_folder, fp32_folder, report)
    if any(m.total == 0 for m in (result.losses, result.matches["parameters"])):
        result.faults.append("nothing was compared with the fp32 run")
    result.exact = result.losses.exact() and all(m.exact() for m in result.matches.values())


def check_copies(result, setting, case, seed, skips, folders, report):
    """Where casts group gradients and the twin cannot undo it, it is the fp32 run whose casts copy."""
    program = program_of(setting, case, seed, "fp32-copies", skips)
    done = run_untraced(setting, case, program, folders["copies"])
    if done[0] != 0:
        result.faults.append(f"fp32 run whose casts copy: exit {done[0]}: {tail(done[2])}")
        return
    losses, matches = compare_twin(case, folders["traced"], folders["copies"], report)
    wrong = losses.wrong + [w for m in matches.values() for w in m.wrong]
    if wrong or losses.total == 0:
        result.faults.append(f"nor is the twin the fp32 run whose casts copy: {'; '.join(wrong[:3])}")


def check_discriminates(result, case, plain_folder, fp32_folder):
    """Were the low-precision run the fp32 run, an exact twin would prove nothing."""
    for rank, path in by_rank(saved(plain_folder, "result")).items():
        other = by_rank(saved(fp32_folder, "result")).get(rank)
        if other is None:
            continue
        low, full = compare.read_safetensors(path), compare.read_safetensors(other)
        for name in sorted(set(low) & set(full)):
            if name == "losses":
                for x, y in zip(compare.losses_of(low), compare.losses_of(full)):
                    result.low_loss = max(result.low_loss, abs(x - y) / max(abs(y), 1e-30))
            elif compare.kind_of(name) == "parameters":
                result.low_weight = max(result.low_weight, compare.largest_gap(low[name][2], full[name][2]))
    if case.mixed and not (result.low_loss > 0 and result.low_weight > 0):
        result.faults.append("the low-precision run equals the fp32 run: this case shows nothing")


def run_case(setting, case, seed, work, rule=""):
    """`rule`: a rule of the adapter to switch off in the traced run."""
    result = Result(case, seed, torch=setting.torch)
    folders = {kind: os.path.join(work, f"{case.name}.{seed}", kind) for kind in ("plain", "traced", "fp32", "copies")}
    low = program_of(setting, case, seed, "low", [])
    plain = run_untraced(setting, case, low, folders["plain"])
    if plain[0] != 0:
        result.faults.append(f"untraced run: exit {plain[0]}: {tail(plain[2])}")
        return result
    skips = sorted({int(s) for s in SKIPPED.findall(plain[1].decode())})
    result.skipped = len(skips)
    if case.decisions:
        os.makedirs(folders["fp32"])
        shutil.copy(os.path.join(folders["plain"], "decisions"), folders["fp32"])
    fp32 = run_untraced(setting, case, program_of(setting, case, seed, "fp32", skips), folders["fp32"])
    if fp32[0] != 0:
        result.faults.append(f"fp32 run: exit {fp32[0]}: {tail(fp32[2])}")
        return result
    check_discriminates(result, case, folders["plain"], folders["fp32"])
    # Only the test adapters have rules that can be switched off; they lie beside bin/.
    test_adapters = os.path.join(os.path.dirname(os.path.dirname(setting.mp_trace)), "test-adapters")
    prefix = [setting.mp_trace, "--mode", "trajectory", "-o", "trace", "--save-twin", "twin.%r", *case.trace,
              *(["--adapters", test_adapters] if rule else []), *setting.options, "--"]
    traced = run(prefix + launched(setting, case, low), folders["traced"],
                 environment({"MP_TRACE_TEST_DISABLE_RULE": rule} if rule else None))
    check_transparent(result, folders["plain"], folders["traced"], plain, traced)
    told = subprocess.run([setting.mp_trace, "report", "trace", "--json", "-"], cwd=folders["traced"],
                          capture_output=True, timeout=TIMEOUT, env=environment())
    if told.returncode != 0:
        result.faults.append(f"no report: {tail(told.stderr)}; traced run said: {tail(traced[2])}")
        return result
    report = json.loads(told.stdout)
    result.counters = {name: report["coverage"].get(name, 0) for name in COUNTERS}
    # Values that came from outside of torch had no history; the other seeds lost one.
    result.counters["lost"] = result.counters["seeds_after_step_0"] - result.counters.pop("external_after_step_0")
    check_twin(result, case, folders["traced"], folders["fp32"], report)
    if result.expected() and result.expected().copies:
        check_copies(result, setting, case, seed, skips, folders, report)
    return result


def verdict(result):
    """(red or not, one line why). An unexpected success is as red as a failure: the table must be true."""
    if result.faults:
        return True, "; ".join(result.faults)
    inexact = result.expected()
    if inexact is None:
        if not result.exact:
            return True, f"twin is not the fp32 run: {len(result.wrong())} differences, e.g. " + \
                "; ".join(result.wrong()[:3])
        for counter in ("failed", "lost"):
            if result.counters.get(counter):
                return True, f"{counter} is {result.counters[counter]}"
        return False, "exact"
    if result.exact:
        return True, "exact although it should not be: " + inexact.reason
    if not inexact.counter:
        return False, "no counter can show it: " + inexact.reason
    if not result.counters.get(inexact.counter):
        return True, f"not exact, as expected, but the counter '{inexact.counter}' does not show it"
    return False, f"{inexact.counter} {result.counters[inexact.counter]}: {inexact.reason}"
