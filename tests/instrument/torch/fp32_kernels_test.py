"""The twin of attention kernels that only exist in 16 bits.

    MP_TRACE=build/release/bin/mp-trace fp32_kernels_test.py PYTHON      PYTHON has torch 2.5 or later

Those kernels run on CUDA alone. The program below gives the CPU its own, which refuse what CUDA's refuse and have
results of the same shapes. It trains with one of them in bf16, and with the memory-efficient one in fp32.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "truth"))
import runs  # noqa: E402

TRACE = os.path.abspath(os.environ["MP_TRACE"])
PYTHON = os.path.abspath(sys.argv.pop(1))

PROGRAM = r"""
import sys, torch
kind, low, heads, columns, masked, dropout = sys.argv[1:7]
low, heads, columns, masked = low == "low", int(heads), int(columns), masked == "mask"
aten = torch.ops.aten
torch.set_num_threads(1)

def weights(q, k, bias, causal, scale):
    s = q.float() @ k.float().transpose(-1, -2) * (scale or q.size(-1) ** -0.5)
    if bias is not None and bias.numel():
        s = s + bias.float()
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return s

def forward(q, k, v, bias, causal, scale):
    n = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
    s = weights(q, k, bias, causal, scale)
    return (s.softmax(-1) @ v.float()).to(q.dtype), s.logsumexp(-1)

def backward(g, q, k, v, out, sums, bias, causal, scale):
    n = q.size(1) // k.size(1)
    k_all, v_all = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
    p = (weights(q, k_all, bias, causal, scale) - sums.unsqueeze(-1)).exp()
    g = g.float()
    d = p * (g @ v_all.float().transpose(-1, -2) - (g * out.float()).sum(-1, keepdim=True))
    d = d * (scale or q.size(-1) ** -0.5)
    together = lambda t: t.unflatten(1, (k.size(1), n)).sum(2).to(q.dtype)
    return (d @ k_all.float()).to(q.dtype), together(d.transpose(-1, -2) @ q.float()), together(p.transpose(-1, -2) @ g)

def half(*tensors):
    assert all(t.dtype in (torch.bfloat16, torch.float16) for t in tensors), "garbage"

none = torch.empty(0, dtype=torch.long)
def flash(q, k, v, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    half(q, k, v)
    out, sums = forward(q, k, v, None, is_causal, scale)
    return out, sums, none, none, q.size(2), k.size(2), none.clone(), none.clone(), q.new_empty(0)
def flash_backward(g, q, k, v, out, sums, cq, ck, mq, mk, dropout_p, is_causal, seed, offset, *, scale=None):
    half(g, q, k, v, out)
    return backward(g, q, k, v, out, sums, None, is_causal, scale)
def cudnn(q, k, v, bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    half(q, k, v)
    out, sums = forward(q, k, v, bias, is_causal, scale)
    return out, sums.unsqueeze(-1), none, none, q.size(2), k.size(2), none.clone(), none.clone(), q.new_empty(0)
def cudnn_backward(g, q, k, v, out, sums, seed, offset, bias, cq, ck, mq, mk, dropout_p, is_causal, *, scale=None):
    half(g, q, k, v, out)
    return backward(g, q, k, v, out, sums.squeeze(-1), bias, is_causal, scale)
def told(bias, q, k):
    if bias is not None and bias.numel():
        assert bias.shape == (*q.shape[:3], k.size(2)) and bias.stride(-2) % 8 == 0, (bias.shape, bias.stride())
def efficient(q, k, v, bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *, scale=None):
    assert q.size(1) == k.size(1) and dropout_p == 0
    told(bias, q, k)
    out, sums = forward(q, k, v, bias, is_causal, scale)
    more = -q.size(2) % 32
    return out, torch.nn.functional.pad(sums, (0, more), value=float("inf")), none, none.clone()
def efficient_backward(g, q, k, v, bias, out, sums, seed, offset, dropout_p, mask, is_causal=False, *, scale=None):
    told(bias, q, k)
    assert sums.size(2) % 32 == 0 and not sums[:, :, q.size(2):].isfinite().any()
    return *backward(g, q, k, v, out, sums[:, :, :q.size(2)], bias, is_causal, scale), None

library = torch.library.Library("aten", "IMPL")
for name, kernel in (("flash_attention", flash), ("cudnn_attention", cudnn), ("efficient_attention", efficient),
                     ("flash_attention_backward", flash_backward), ("cudnn_attention_backward", cudnn_backward),
                     ("efficient_attention_backward", efficient_backward)):
    library.impl("_scaled_dot_product_" + name, kernel, "CPU")

def attention(q, k, v, bias):
    if not low:
        n = q.size(1) // k.size(1)
        more = -columns % 8
        if bias is not None:
            bias = torch.nn.functional.pad(bias, (0, more))[..., :columns].expand(2, 4, 20, columns)
        k, v = (t.repeat_interleave(n, 1) for t in (k, v))
        return aten._scaled_dot_product_efficient_attention(q, k, v, bias, True, 0.0, not masked)[0]
    q, k, v = (t.bfloat16() for t in (q, k, v))
    if kind == "flash":
        return aten._scaled_dot_product_flash_attention(q, k, v, float(dropout), not masked)[0].float()
    bias = bias if bias is None else bias.bfloat16()
    return aten._scaled_dot_product_cudnn_attention(q, k, v, bias, True, float(dropout), not masked)[0].float()

torch.manual_seed(0)
leaves = [torch.randn(2, h, rows, 16, requires_grad=True) for h, rows in ((4, 20), (heads, columns), (heads, columns))]
bias = torch.randint(-8, 8, (1, 1, 20, columns)) / 4.0 if masked else None  # exact in bf16
optimizer = torch.optim.SGD(leaves, 0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = attention(*leaves, bias).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def has_half_attention():
    probe = subprocess.run([PYTHON, "-c", "import torch; torch.ops.aten._scaled_dot_product_cudnn_attention"],
                           capture_output=True, check=False)
    return probe.returncode == 0


@unittest.skipUnless(has_half_attention(), "this torch has no attention of cuDNN")
class HalfAttention(unittest.TestCase):
    def run_both(self, kind, heads, columns, mask, dropout="0"):
        """The losses of the traced run's twin and of the fp32 run, and the coverage."""
        top = tempfile.mkdtemp(prefix="mp-kernels-")
        self.addCleanup(shutil.rmtree, top, ignore_errors=True)
        with open(os.path.join(top, "train.py"), "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        words = [str(heads), str(columns), mask, dropout]
        env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")} | {"XDG_CACHE_HOME": top}

        def run(command):
            done = subprocess.run(command, cwd=top, env=env, capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        def untraced(command):  # in a fork of a Python that has imported torch
            status, out, err = runs.run_forked(command, top)
            self.assertEqual(status, 0, err)
            return out.decode()

        low, fp32 = ([PYTHON, "train.py", kind, precision, *words] for precision in ("low", "fp32"))
        plain, expected = untraced(low), untraced(fp32)
        self.assertEqual(run([TRACE, "--mode", "trajectory", "--no-build", "-o", "trace", "--", *low]), plain)
        report = json.loads(run([TRACE, "report", "trace", "--json", "-"]))
        twin = [rank["twin_loss"] for step in report["steps"] for rank in step["ranks"]]
        return twin, [float(line) for line in expected.split()], report["coverage"]

    def test_the_twin_is_the_fp32_run(self):
        for kind, heads, columns, mask in (("cudnn", 4, 20, "none"), ("cudnn", 2, 20, "none"), ("cudnn", 4, 13, "mask"),
                                           ("flash", 4, 20, "none"), ("flash", 1, 20, "none")):
            with self.subTest(kind=kind, heads=heads, columns=columns, mask=mask):
                twin, fp32, coverage = self.run_both(kind, heads, columns, mask)
                self.assertEqual(twin, fp32)
                self.assertEqual((coverage["failed"], coverage["seeds_after_step_0"]), (0, 0))

    def test_what_it_cannot_follow_is_counted(self):
        _, _, coverage = self.run_both("cudnn", 4, 20, "none", "0.1")
        self.assertGreater(coverage["failed"], 0)


if __name__ == "__main__":
    unittest.main()
