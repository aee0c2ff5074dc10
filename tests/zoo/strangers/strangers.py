"""Runs the scripts of strangers/list.txt untraced, in fp32, and under mp-trace in two modes; JSON lines in a file.

    strangers.py --mp-trace BIN --checkouts DIR --results FILE [--list second|third|fourth|fifth|sixth|seventh|gpu]
                 [--only PATTERN] [--modes trajectory]

DIR has a checkout of each repository at its commit. Nothing of them is kept here. Their data sets are replaced by
random ones of the same form (data.py, data_fifth.py ...), written into the checkouts. Their libraries:
requirements.txt beside this file.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
import sets  # noqa: E402
import compare  # noqa: E402
import data  # noqa: E402
import data_fifth  # noqa: E402
import data_gpu  # noqa: E402
import data_seventh  # noqa: E402
import data_sixth  # noqa: E402
import score  # noqa: E402

LISTS = {"list": data.first, "second": data.second, "third": data.third, "fourth": data.fourth,
         "fifth": data_fifth.fifth, "sixth": data_sixth.sixth,
         "seventh": data_seventh.seventh, "gpu": data_gpu.gpu}


def programs(listed):
    for name, repository, commit, folder, regime, words, command in sets.rows(os.path.join(HERE, listed + ".txt")):
        yield {"key": f"{name}/{regime}", "repository": repository, "commit": commit, "folder": folder,
               "regime": regime, "words": words.split(), "command": command.split()}


def command(options, program, precision, out, more=()):
    reference = "fp16-reference" if program["regime"] == "fp16" else "fp32"
    regime = program["regime"] if precision == "low" else reference
    words = [w for w in [dict(zip(("low", "fp32"), program["words"])).get(precision, "-")] if w != "-"]
    script = [x for word in program["command"] for x in (words if word == "PRECISION" else [word])]
    launcher = []
    if script[0].startswith("RANKS="):
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", script.pop(0)[len("RANKS="):]]
    return [options.python, *launcher, os.path.join(HERE, "stranger.py"), "--most", options.most, *more, regime, out,
            *script]


def result_of(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def run(options, program, name, precision, prefix=(), more=()):
    """(exit status, last line of stderr, what stranger.py tells); in the checkout's folder."""
    checkout = sets.checkout(options, program)
    folder = os.path.join(checkout, program["folder"])
    out = os.path.join(options.work, name + ".json")
    if os.path.exists(out):
        os.remove(out)
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled",
           "MPLBACKEND": "Agg", "PYTHONHASHSEED": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
           **({"NVIDIA_TF32_OVERRIDE": "0"} if precision == "fp32" else {}),
           "PYTHONPATH": os.pathsep.join(filter(None, (checkout, folder, os.environ.get("PYTHONPATH"))))}
    done = subprocess.run([*prefix, *command(options, program, precision, out, more)],
                          cwd=folder, env=env, capture_output=True, text=True,
                          timeout=900)
    with open(os.path.join(options.work, name + ".log"), "w", encoding="utf-8") as f:
        f.write(done.stdout + "\n---- stderr\n" + done.stderr)
    return done.returncode, (done.stderr.strip().splitlines() or [""])[-1][-150:], result_of(out)


def twin_of(path):
    tensors = compare.read_safetensors(path) if os.path.exists(path) else {}
    return sorted(hashlib.sha256(values).hexdigest() for name, (_, _, values) in tensors.items()
                  if not name.startswith(("grad/", "state/", "losses")))


def judged(options, trace):
    """(report, exit status of the gate) of a traced run; the report is None if there is none. TRACE.txt has both."""
    told = subprocess.run([options.mp_trace, "report", trace, "--json", "-"], capture_output=True)
    shown = subprocess.run([options.mp_trace, "report", trace], capture_output=True, text=True)
    gate = subprocess.run([options.mp_trace, "gate", trace], capture_output=True, text=True)
    with open(trace + ".txt", "w", encoding="utf-8") as f:
        f.write(shown.stdout + shown.stderr + "\n---- gate\n" + gate.stdout + gate.stderr)
    return json.loads(told.stdout) if told.returncode == 0 else None, gate.returncode


def measure(options, program):
    options.work = os.path.join(options.checkouts, "runs", program["key"].replace("/", "-"))
    shutil.rmtree(options.work, ignore_errors=True)
    os.makedirs(options.work)
    line = {**program, "ran": False}
    plain = run(options, program, "plain", "low")
    if plain[0] != 0 or plain[2] is None:
        return line | {"why": f"{plain[0]}: {plain[1]}"}
    fp32 = run(options, program, "fp32", "fp32")
    line |= {"ran": True, "backwards": len(plain[2]["losses"]), "optimizer_steps": plain[2]["steps"], "modes": {}}
    for mode in options.modes.split(","):
        trace, twin = os.path.join(options.work, mode), os.path.join(options.work, "twin")
        save = ["--save-twin", twin] if mode == "trajectory" else []
        done = run(options, program, "traced-" + mode, "low",
                   [options.mp_trace, "--mode", mode, "-o", trace, "--no-build", *save, "--"])
        report, gate = judged(options, trace)
        entry = {"transparent": (done[0], done[2]) == (plain[0], plain[2]), "gate": gate}
        if report:
            entry |= score.of_report(report, {"ran": [], "all": []})
            entry["steps"] = len(report["steps"])
        if mode == "trajectory" and fp32[2]:
            hashes = twin_of(twin)
            entry["twin"] = [sum(h in hashes for h in fp32[2]["hashes"]), len(fp32[2]["hashes"])]
        line["modes"][mode] = entry
    return line


def in_short(line):
    return " ".join(
        f"[{mode}: same {e['transparent']} steps {e.get('steps')} of {line['backwards']}/{line['optimizer_steps']} "
        f"twin {e.get('twin')} gate {e['gate']} {e.get('verdict')} "
        + "; ".join(f"{x['severity']} {x['rule']} {x.get('layer')} {x.get('op')}" for x in e.get("findings", [])) + "]"
        for mode, e in line["modes"].items())


def main():
    parser = sets.parser(__doc__)
    parser.add_argument("--list", choices=LISTS, default="list")
    parser.add_argument("--most", default="60", help="backwards after which a script ends")
    parser.add_argument("--modes", default="trajectory,local")
    options = parser.parse_args()
    options.mp_trace, options.checkouts = os.path.abspath(options.mp_trace), os.path.abspath(options.checkouts)
    LISTS[options.list](options.checkouts, options.python)
    sets.record(options, programs(options.list), lambda program: measure(options, program), in_short)
    return 0


if __name__ == "__main__":
    sys.exit(main())
