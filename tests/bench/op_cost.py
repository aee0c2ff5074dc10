"""The CPU microseconds of the smallest op, for tests/bench/trace.py: with --off, under an adapter that is attached
and disarmed. Prints one number."""
import sys
import time

import torch

torch.set_num_threads(1)
if "--off" in sys.argv:
    torch.ops.mptrace.disarm("benchmark of the attached but idle adapter")
x = torch.ones(4)
count, best = 100000, float("inf")
for _ in range(7):
    begin = time.process_time()
    for _ in range(count):
        torch.neg(x)
    best = min(best, time.process_time() - begin)
print(best / count * 1e6)
