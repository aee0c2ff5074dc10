"""Scores one run of mp-trace against the known bug of the program."""
import fnmatch
import math
from dataclasses import dataclass, field

PARTS = ("rule", "layer", "op", "phase", "step")


@dataclass
class Outcome:
    """One run under mp-trace."""
    case: object
    fixed: bool
    seed: int
    findings: list = field(default_factory=list)  # of the report, notes left out
    gate: int = -1                                # its exit status
    ops: int = 0                                  # leaf ops that the run executed, over all steps and ranks
    fault: str = ""                               # the reason when there is no verdict

    @property
    def buggy(self):
        return not self.fixed and not self.case.control


def globs(text, patterns):
    return any(fnmatch.fnmatchcase(text, p) for p in patterns)


def compare(case, finding):
    """Which parts of a finding are as they should be."""
    return {"rule": finding.get("rule") in case.rules,
            "layer": globs(finding.get("layer") or "", case.layer),
            "op": globs(finding.get("op") or "", case.op),
            "phase": finding.get("phase") in case.phase,
            "step": finding.get("step") in case.step}


def right(outcome):
    """Whether the first finding is at the bug and the gate agrees; without a bug, whether the program is silent."""
    if outcome.fault:
        return False
    if not outcome.buggy:
        return not outcome.findings and outcome.gate == 0
    return bool(outcome.findings) and outcome.gate == outcome.case.gate and \
        all(compare(outcome.case, outcome.findings[0]).values())


def place_of(outcome):
    """The position of the first right finding in the list, from 1; 0: there is none."""
    for place, finding in enumerate(outcome.findings, 1):
        if all(compare(outcome.case, finding).values()):
            return place
    return 0


def wilson(events, trials, z=1.96):
    """The 95 % interval of a rate (Wilson, J. Am. Stat. Assoc. 22, 1927)."""
    if trials == 0:
        return 0.0, 1.0
    rate = events / trials
    middle = rate + z * z / (2 * trials)
    spread = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
