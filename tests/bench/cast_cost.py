"""Microseconds that a cast of 65,536 fp32 values to bf16 takes in step 0: [of other values, of integers].

mp-trace counts the integers that a cast loses, and stops at the first value that is none
(instrument/torch/integers.hpp).
"""
import json
import time

import torch

torch.set_num_threads(1)


def cost(values, casts=100):
    begun = time.process_time()
    for _ in range(casts):
        values.to(torch.bfloat16)
    return (time.process_time() - begun) / casts * 1e6


whole = torch.arange(1 << 16).float() % 200
others = whole + 0.5
cost(others), cost(whole)
rounds = [(cost(others), cost(whole)) for _ in range(9)]
print(json.dumps([min(column) for column in zip(*rounds)]))
