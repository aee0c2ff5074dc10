"""Two threads on the device "late". One launches an op whose twin copies, and the queue is full: that copy waits until
the other thread has launched an op in place. Prints whether a copy has waited.

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
OPS = {"seed": lambda: torch.bernoulli(x), "lanes": lambda: x.view(torch.uint8).clone().view(torch.bfloat16) + 1}


def other():
    until = time.monotonic() + 5
    while not late.copy_waits():
        if time.monotonic() > until:
            return
        time.sleep(0.001)
    y.mul_(2)


thread = threading.Thread(target=other)
thread.start()
late.next_copy_waits()
OPS[sys.argv[1]]()
thread.join()
print("waited", late.copy_waited())
