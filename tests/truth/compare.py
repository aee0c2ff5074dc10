"""The comparisons of the truth suite: safetensors files and losses, bit for bit, the sign of zero counted apart."""
import array
import json
import math
import re
import struct
from dataclasses import dataclass, field

# A program spells the wrappers around its model (DDP, FSDP1, checkpointing) in its names; we do not.
_WRAPPERS = re.compile(r"(^|/|\.)(?:(?:module|_fsdp_wrapped_module|_fpw_module|_checkpoint_wrapped_module"
                       r"|_orig_mod)\.)+")


def read_safetensors(path):
    """Name -> (dtype, shape, bytes)."""
    with open(path, "rb") as f:
        blob = f.read()
    size, = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = blob[8 + size + begin:8 + size + end]
        tensors[_WRAPPERS.sub(r"\1", name)] = (entry["dtype"], tuple(entry["shape"]), data)
    return tensors


def losses_of(tensors):
    dtype, _, data = tensors["losses"]
    return list(struct.unpack(f"<{len(data) // 8}d" if dtype == "F64" else f"<{len(data) // 4}f", data))


def kind_of(name):
    """Which column of the table an entry belongs to."""
    for prefix, kind in (("grad/", "gradients"), ("optim/", "optimizer"), ("master.", "optimizer")):
        if name.startswith(prefix):
            return kind
    return "parameters"


def differing_elements(a, b):
    """(elements that differ, elements that differ in the sign of a zero only) of two F32 blobs of one length."""
    if a == b:
        return 0, 0
    differ = zeros = 0
    for x, y in zip(array.array("I", a), array.array("I", b)):
        if x != y:
            if (x | y) & 0x7fffffff:
                differ += 1
            else:
                zeros += 1
    return differ, zeros


def largest_gap(a, b):
    """Largest |a - b| relative to the largest |b|, over two F32 blobs; inf where one is not finite."""
    x, y = array.array("f", a), array.array("f", b)
    gap = max((abs(p - q) for p, q in zip(x, y)), default=0.0)
    scale = max((abs(q) for q in y), default=0.0)
    if not math.isfinite(gap):
        return math.inf
    return gap / scale if scale else (math.inf if gap else 0.0)


@dataclass
class Match:
    """One kind of tensors of the twin against the fp32 run's."""
    equal: int = 0
    total: int = 0
    zero_signs: int = 0
    wrong: list = field(default_factory=list)  # "NAME: why"

    def exact(self):
        return self.equal == self.total

    def add(self, other):
        self.equal += other.equal
        self.total += other.total
        self.zero_signs += other.zero_signs
        self.wrong += other.wrong

    def __str__(self):
        return f"{self.equal}/{self.total}"


KINDS = ("parameters", "gradients", "optimizer")


def match_one(match, name, reference, found):
    match.total += 1
    if found is None:
        match.wrong.append(f"{name}: not in the twin's file")
        return
    if reference[:2] != found[:2]:
        match.wrong.append(f"{name}: {found[0]}{list(found[1])} in the twin, not {reference[0]}{list(reference[1])}")
        return
    differ, zeros = differing_elements(reference[2], found[2])
    match.zero_signs += zeros
    if differ:
        gap = largest_gap(found[2], reference[2])
        match.wrong.append(f"{name}: {differ} of {len(reference[2]) // 4} elements, by {gap:.1e}")
    else:
        match.equal += 1


def match_names(reference, twin):
    """Every tensor of the fp32 run must be in the twin's file, under its name, bit for bit."""
    matches = {kind: Match() for kind in KINDS}
    for name, tensor in sorted(reference.items()):
        if name != "losses":
            match_one(matches[kind_of(name)], name, tensor, twin.get(name))
    return matches


def zero_signs_only(a, b):
    return a[:2] == b[:2] and len(a[2]) == len(b[2]) and differing_elements(a[2], b[2])[0] == 0


def match_contents(reference, twin):
    """The same for a program whose tensors have no names: each must be found once, by shape and content."""
    matches = {kind: Match() for kind in KINDS}
    left = {name: t for name, t in twin.items() if name != "losses"}
    for name, tensor in sorted(reference.items()):
        if name == "losses" or kind_of(name) == "optimizer" or name == "master":
            continue  # plain tensors of the program, whose meaning is unknown
        kind = kind_of(name)
        candidates = [n for n, t in left.items() if kind_of(n) == kind and t[:2] == tensor[:2]]
        same = [n for n in candidates if left[n][2] == tensor[2]] or \
               [n for n in candidates if zero_signs_only(left[n], tensor)]
        match_one(matches[kind], name, tensor, left.pop(same[0]) if same else None)
    return matches


def match_losses(reference, twin):
    match = Match(total=len(reference))
    for step, value in enumerate(reference):
        got = twin[step] if step < len(twin) else None
        if got is not None and struct.pack("<d", got) == struct.pack("<d", value):
            match.equal += 1
        else:
            match.wrong.append(f"loss of step {step}: twin {got!r}, fp32 {value!r}")
    if len(twin) > len(reference):
        match.wrong.append(f"{len(twin)} twin losses for {len(reference)} steps")
        match.total = len(twin)
    return match
