"""Adam's second moments are saved in fp16. https://github.com/ultralytics/ultralytics/pull/24085"""
import copy

import torch
from torch import nn
from torch.nn import functional as F

from training import Training

SAVED = 200


def saved(state, fixed):
    """The state of an optimizer as a checkpoint has it: tensors in fp16."""
    state = copy.deepcopy(state)
    for values in state["state"].values():
        for name, value in values.items():
            if name != "step" and not (fixed and name == "exp_avg_sq"):
                values[name] = value.half()
    return state


run = Training(steps=SAVED + 12)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(run.steps):
    if step == SAVED:
        state = saved(optimizer.state_dict(), run.fixed)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        optimizer.load_state_dict(state)
    x = run.normal(64, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
    run.update(0.01 * F.mse_loss(y.float(), x.roll(1, 1)), optimizer)
print(f"the loss grew {run.losses[SAVED + 1] / run.losses[SAVED - 1]:.3g} times")
run.end(run.losses[SAVED + 1] > 3 * run.losses[SAVED - 1], model.parameters())
