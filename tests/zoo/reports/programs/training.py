"""What the programs of this folder share: options, random data, an update, and the lines that they print.

The last line says "shows: yes" if the fault of the report is there by the program's own measure, else "shows: no".
"""
import argparse
import hashlib
import math

import torch


class Training:
    def __init__(self, steps=12):
        parser = argparse.ArgumentParser()
        parser.add_argument("--fixed", action="store_true", help="with the fix of the report")
        parser.add_argument("--steps", type=int, default=steps)
        parser.add_argument("--seed", type=int, default=1)
        options = parser.parse_args()
        self.fixed, self.steps, self.losses = options.fixed, options.steps, []
        torch.set_num_threads(1)
        torch.manual_seed(options.seed)
        self.generator = torch.Generator().manual_seed(1000 + options.seed)

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def integers(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)

    def update(self, loss, optimizer, scaler=None):
        """One backward and one step, with a loss scale if there is one."""
        optimizer.zero_grad()
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        self.note(loss)

    def note(self, loss):
        self.losses.append(loss.item())
        print(f"step {len(self.losses) - 1} loss {self.losses[-1]:.6g} {self.losses[-1].hex()}", flush=True)

    def lost(self):
        return not all(map(math.isfinite, self.losses))

    def end(self, shows, tensors):
        digest = hashlib.sha256()
        for tensor in tensors:
            digest.update(tensor.detach().float().contiguous().numpy().tobytes())
        print("bytes:", digest.hexdigest())
        print("shows:", "yes" if shows else "no", flush=True)
