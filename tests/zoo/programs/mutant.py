"""A program of the zoo in which one op's precision is lowered: mutant.py KIND LAYER good|bad PROGRAM NAME ...

KIND says what is lowered in LAYER; `good` runs the same code in fp32. `mutant.py '' '' list PROGRAM NAME` prints each
kind with the layers that it fits. LAYER * is all of these layers.
"""
import os
import runpy
import sys

import torch

import recipe
from lowered import KINDS, MORE, STRONGER

ALL = KINDS | STRONGER | MORE


def main():
    kind, layer, form = sys.argv[1:4]
    del sys.argv[1:4]
    train = recipe.train

    def mutated(run, model, loss_of, make=lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)):
        if form == "list":
            for each, (_, _, fits) in ALL.items():
                print(each, *(name for name, m in model.named_modules() if name and fits(m)))
            return
        change, low, fits = ALL[kind]
        layers = [name for name, m in model.named_modules() if name and fits(m)] if layer == "*" else [layer]
        after_steps = [change(model, each, low if form == "bad" and run.low else torch.float32) for each in layers]

        def with_hook(parameters):
            optimizer = make(parameters)
            for after_step in filter(None, after_steps):
                optimizer.register_step_post_hook(after_step)
            return optimizer

        train(run, model, loss_of, with_hook)

    recipe.train = mutated
    program = sys.argv[1]
    del sys.argv[0]
    runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), program), run_name="__main__")


main()
