# Run by `mp-trace doctor --self-test`, traced and untraced: four operations with a known rounding error,
# one per optimizer step. Prints a digest of every result, because tracing must not change a bit. With the
# argument "floors" it also prints the error of one rounding, and that of torch's kernel if it rounds more often.
# That needs ops of its own, which would mix with the four in a recording.
import hashlib
import sys

import torch

torch.manual_seed(20)
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=1.0)
digest = hashlib.sha256()


def bf16(*shape, scale=1.0):
    return torch.empty(*shape).normal_(0.0, scale).to(torch.bfloat16)


def floor(name, exact, result):
    """The error of one rounding to bf16 for these values: a correct recording shows this error, or that of the result.
    Kernels of a CPU without bf16 may round more than once."""
    if sys.argv[1:] != ["floors"]:
        return
    exact = exact()
    once, real = (float((x.to(torch.float64) - exact).norm() / exact.norm())
                  for x in (exact.to(torch.float32).to(torch.bfloat16), result))
    print("floor", name, once)
    if real > 1.01 * once:
        print("kernel", name, real)


def step(*results):
    """Ends a step. Its own backward and update have one fp32 element and round nothing."""
    for result in results:
        digest.update(result.detach().to(torch.float32).numpy().tobytes())
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()


step()  # recording begins with the first backward
a, b = bf16(256, 256), bf16(256, 256)
product = torch.mm(a, b)
floor("matmul", lambda: a.double() @ b.double(), product)
step(product)
# GELU passes large values unchanged and halves small ones, so the error of one rounding depends on the
# width of its input: 1.81e-3 at 0.5, 1.73e-3 at 1, 1.60e-3 at 1.4, 0.58e-3 at 4. At 1.2 it is that of a
# product.
x = bf16(256, 256, scale=1.2)
activated = torch.nn.functional.gelu(x)
floor("gelu", lambda: torch.nn.functional.gelu(x.double()), activated)
step(activated)
kept = torch.nn.functional.dropout(x, p=0.1, training=True)
floor("dropout", lambda: x.double() * torch.tensor(1 / 0.9).to(torch.bfloat16).double() * (kept != 0), kept)
step(kept)
step(torch.nn.functional.layer_norm(torch.randn(256, 256), (256,)))
print("digest", digest.hexdigest())
