"""Runs the scripts of strangers/list.txt untraced, in fp32, and under mp-trace in two modes; JSON lines in a file.

    strangers.py --mp-trace BIN --checkouts DIR --results FILE [--only PATTERN]

DIR has a checkout of each repository at its commit. Nothing of them is kept here. Their data sets are replaced by
random ones of the same form (`prepare`), written into the checkouts.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path += [os.path.join(ROOT, "tests", "truth"), os.path.dirname(HERE)]
import compare  # noqa: E402
import runs  # noqa: E402
import score  # noqa: E402


def programs():
    with open(os.path.join(HERE, "list.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, repository, commit, folder, regime, words, command = line.rstrip("\n").split("\t")
                yield {"key": f"{name}/{regime}", "repository": repository, "commit": commit, "folder": folder,
                       "regime": regime, "words": words.split(), "command": command.split()}


def pictures(folder, kind):
    """MNIST's files: blurred bars whose place is the label."""
    draw = random.Random(5)
    os.makedirs(os.path.join(folder, kind, "raw"), exist_ok=True)
    for part, count in (("train", 640), ("t10k", 64)):
        labels = bytes(draw.randrange(10) for _ in range(count))
        pixels = b"".join(bytes(min(255, draw.randrange(60) + (190 if 2 * label < x < 2 * label + 8 else 0))
                                for _ in range(28) for x in range(28)) for label in labels)
        for name, head, body in ((f"{part}-images-idx3-ubyte", struct.pack(">IIII", 2051, count, 28, 28), pixels),
                                 (f"{part}-labels-idx1-ubyte", struct.pack(">II", 2049, count), labels)):
            with open(os.path.join(folder, kind, "raw", name), "wb") as f:
                f.write(head + body)


def prepare(checkouts):
    at = lambda *parts: os.path.join(checkouts, *parts)  # noqa: E731
    import numpy
    import torch
    from PIL import Image
    pictures(at("examples", "data"), "MNIST")
    pictures(at("examples", "mnist_forward_forward", "data"), "MNIST")
    pictures(os.path.expanduser("~/data/fashion_mnist"), "FashionMNIST")
    os.makedirs(at("examples", "vae", "results"), exist_ok=True)
    texts = at("examples", "word_language_model", "data", "wikitext-2")
    with open(os.path.join(texts, "README"), encoding="utf-8") as f:
        words = f.read().split()
    draw = random.Random(5)
    for part, lines in (("train", 250), ("valid", 40), ("test", 40)):
        with open(os.path.join(texts, part + ".txt"), "w", encoding="utf-8") as f:
            for _ in range(lines):
                f.write(" ".join(draw.choice(words) for _ in range(12)) + "\n")
    wave = numpy.sin((numpy.arange(40)[None, :] + numpy.arange(10)[:, None] * 7) / 20.0)
    torch.save(wave, at("examples", "time_sequence_prediction", "traindata.pt"))
    os.makedirs(at("nanoGPT", "data", "tiny"), exist_ok=True)
    for part in ("train", "val"):
        tokens = numpy.array([(i * i + i // 3) % 23 for i in range(4000)], numpy.uint16)
        tokens.tofile(at("nanoGPT", "data", "tiny", part + ".bin"))
    with open(at("nanoGPT", "data", "tiny", "meta.pkl"), "wb") as f:
        pickle.dump({"vocab_size": 23}, f)
    for part in ("imgs", "masks"):
        os.makedirs(at("Pytorch-UNet", "data", part), exist_ok=True)
    for i in range(10):
        mask = numpy.zeros((128, 128), numpy.uint8)
        mask[10 * i % 60:10 * i % 60 + 40, 20:80] = 1
        noise = numpy.random.RandomState(i).randint(0, 90, (128, 128, 3)) + mask[:, :, None] * 120
        Image.fromarray(mask).save(at("Pytorch-UNet", "data", "masks", f"{i}_mask.gif"))
        Image.fromarray(noise.astype(numpy.uint8)).save(at("Pytorch-UNet", "data", "imgs", f"{i}.jpg"))


def command(options, program, precision, out):
    reference = "fp16-reference" if program["regime"] == "fp16" else "fp32"
    regime = program["regime"] if precision == "low" else reference
    words = [w for w in [dict(zip(("low", "fp32"), program["words"])).get(precision, "-")] if w != "-"]
    script = [x for word in program["command"] for x in (words if word == "PRECISION" else [word])]
    return [options.python, os.path.join(HERE, "stranger.py"), regime, out, *script]


def result_of(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def run(options, program, name, precision, prefix=()):
    """(exit status, last line of stderr, what stranger.py tells); in a copy of the checkout's folder."""
    checkout = os.path.join(options.checkouts, program["repository"].split("/")[1])
    out = os.path.join(options.work, name + ".json")
    if os.path.exists(out):
        os.remove(out)
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled",
           "MPLBACKEND": "Agg", "PYTHONPATH": checkout}
    done = subprocess.run([*prefix, *command(options, program, precision, out)],
                          cwd=os.path.join(checkout, program["folder"]), env=env, capture_output=True, text=True,
                          timeout=900)
    with open(os.path.join(options.work, name + ".log"), "w", encoding="utf-8") as f:
        f.write(done.stdout + "\n---- stderr\n" + done.stderr)
    return done.returncode, (done.stderr.strip().splitlines() or [""])[-1][-150:], result_of(out)


def twin_of(path):
    tensors = compare.read_safetensors(path) if os.path.exists(path) else {}
    return sorted(hashlib.sha256(values).hexdigest() for name, (_, _, values) in tensors.items()
                  if not name.startswith(("grad/", "state/", "losses")))


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
    for mode in ("trajectory", "local"):
        trace, twin = os.path.join(options.work, mode), os.path.join(options.work, "twin")
        save = ["--save-twin", twin] if mode == "trajectory" else []
        done = run(options, program, "traced-" + mode, "low",
                   [options.mp_trace, "--mode", mode, "-o", trace, "--no-build", *save, "--"])
        told = subprocess.run([options.mp_trace, "report", trace, "--json", "-"], capture_output=True)
        shown = subprocess.run([options.mp_trace, "report", trace], capture_output=True, text=True)
        gate = subprocess.run([options.mp_trace, "gate", trace], capture_output=True, text=True)
        with open(trace + ".txt", "w", encoding="utf-8") as f:
            f.write(shown.stdout + shown.stderr + "\n---- gate\n" + gate.stdout + gate.stderr)
        entry = {"transparent": (done[0], done[2]) == (plain[0], plain[2]), "gate": gate.returncode}
        if told.returncode == 0:
            report = json.loads(told.stdout)
            entry |= score.of_report(report, {"ran": [], "all": []})
            entry["steps"] = len(report["steps"])
        if mode == "trajectory" and fp32[2]:
            hashes = twin_of(twin)
            entry["twin"] = [sum(h in hashes for h in fp32[2]["hashes"]), len(fp32[2]["hashes"])]
        line["modes"][mode] = entry
    return line


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", default="")
    parser.add_argument("--python", default=os.path.join(ROOT, "build", "zoo-venv", "bin", "python"))
    parser.add_argument("--checkouts", default="")
    parser.add_argument("--results", required=True)
    parser.add_argument("--only", default="*")
    return parser.parse_args()


def main():
    options = parse()
    options.mp_trace, options.checkouts = os.path.abspath(options.mp_trace), os.path.abspath(options.checkouts)
    prepare(options.checkouts)
    done = set()
    if os.path.exists(options.results):
        with open(options.results, encoding="utf-8") as f:
            done = {json.loads(line)["key"] for line in f}
    for program in programs():
        if program["key"] in done or not fnmatch.fnmatchcase(program["key"], options.only):
            continue
        line = measure(options, program)
        with open(options.results, "a", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")
        print(line["key"], line.get("why") or " ".join(
            f"[{mode}: same {e['transparent']} steps {e.get('steps')} of {line['backwards']}/"
            f"{line['optimizer_steps']} twin {e.get('twin')} gate {e['gate']} {e.get('verdict')} "
            + "; ".join(f"{x['severity']} {x['rule']} {x.get('layer')} {x.get('op')}" for x in e.get("findings", [])) + "]"
            for mode, e in line["modes"].items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
