"""Two threads on the device "late". One launches an op whose twin copies, or that is measured, and the queue is full:
the copy or the measuring kernel waits until the other thread has launched an op in place. Prints whether one waited.
"step": the kernel measures a gradient before the optimizer's step, and the other thread adds to a gradient.

    full_queue.py OP        an op of OPS
"""
import faulthandler
import sys
import threading
import time

import torch  # finds the device by itself
import late

faulthandler.dump_traceback_later(30, exit=True)
x = torch.full((8, 16), 0.5, device="late", dtype=torch.bfloat16)
y = x + x
OPS = {"seed": (late.next_copy_waits, lambda: torch.bernoulli(x)),
       "lanes": (late.next_copy_waits, lambda: x.view(torch.uint8).clone().view(torch.bfloat16) + 1),
       "measure": (late.next_kernel_waits, lambda: x + x),
       "step": (late.next_kernel_waits, lambda: optimizer.step())}
leaves = [torch.nn.Parameter(torch.ones(8, device="late")) for _ in range(2)]
for leaf in leaves:
    leaf.backward(torch.ones_like(leaf))
other_gradient = torch.ones(8, device="late")
optimizer = torch.optim.SGD(leaves[:1], lr=0.1)


def other():
    until = time.monotonic() + 5
    while not late.waits():
        if time.monotonic() > until:
            return
        time.sleep(0.001)
    if sys.argv[1] == "step":
        leaves[1].backward(other_gradient)
    else:
        y.mul_(2)


thread = threading.Thread(target=other)
thread.start()
full, op = OPS[sys.argv[1]]
full()
op()
thread.join()
print("waited", late.waited())
