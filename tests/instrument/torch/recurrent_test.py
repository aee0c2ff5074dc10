"""The twin of cuDNN's recurrent layers, whose dropout draws from a tensor that each forward moves on, undeclared.

    MP_TRACE=build/release/bin/mp-trace recurrent_test.py PYTHON      PYTHON has torch 2.5 or later

Those kernels run on CUDA alone. The program below gives the CPU its own, with a reserve of bytes whose size depends on
the dtype, as cuDNN's.
"""
import json
import os
import subprocess
import tempfile
import unittest
from unittest import mock

from traced import LONG, PYTHON, TRACE

TEST_ADAPTERS = os.path.join(os.path.dirname(os.path.dirname(TRACE)), "test-adapters")

PROGRAM = r"""
import sys, torch
low, dropout = sys.argv[1] == "low", float(sys.argv[2])
torch.set_num_threads(1)

def mask_of(x, state):
    if state is None:
        return torch.ones(x.shape[0], 8)
    generator = torch.Generator().manual_seed(int(state[0]))
    return torch.rand(x.shape[0], 8, generator=generator).ge(0.5).float()

def forward(input, weight, weight_stride0, weight_buf, hx, cx, mode, hidden_size, proj_size, num_layers, batch_first,
            dropout, train, bidirectional, batch_sizes, dropout_state):
    mask = mask_of(input, dropout_state)
    if dropout_state is not None:
        dropout_state += 1  # the schema does not say so
    out = ((input.float() @ weight[0].float().t()).tanh() * mask).to(input.dtype)
    reserve = mask.to(torch.uint8).flatten().repeat(input.element_size())
    return out, hx.clone(), hx.clone(), reserve, hx.new_empty(0)

def backward(input, weight, weight_stride0, weight_buf, hx, cx, output, grad_output, grad_hy, grad_cy, mode,
             hidden_size, proj_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes,
             dropout_state, reserve, output_mask):
    assert reserve.numel() == input.shape[0] * 8 * input.element_size(), "the reserve of another dtype"
    mask = reserve[:input.shape[0] * 8].view(-1, 8).float()
    before = grad_output.float() * mask * (1 - (input.float() @ weight[0].float().t()).tanh() ** 2)
    return ((before @ weight[0].float()).to(input.dtype), torch.zeros_like(hx), torch.zeros_like(hx),
            [(before.t() @ input.float()).to(input.dtype)])

library = torch.library.Library("aten", "IMPL")
library.impl("_cudnn_rnn", forward, "CPU")
library.impl("_cudnn_rnn_backward", backward, "CPU")
torch.manual_seed(0)
state = torch.tensor([3], dtype=torch.uint8)
weight = torch.nn.Parameter(torch.randn(8, 8))
optimizer = torch.optim.SGD([weight], 0.5)
x = torch.randint(-8, 8, (6, 8)) / 4.0  # exact in bf16
for step in range(4):
    optimizer.zero_grad()
    of = (lambda t: t.bfloat16()) if low else (lambda t: t)
    hidden = of(torch.zeros(1, 6, 8))
    out = torch.ops.aten._cudnn_rnn(of(x), [of(weight)], 1, None, hidden, hidden, 2, 8, 0, 1, False, dropout, True,
                                    False, [], state if dropout else None)[0]
    loss = (out.float() - 0.3).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
print("state", int(state[0]))
"""


class DropoutState(unittest.TestCase):
    alone = {}  # what untraced runs print

    def run_in(self, folder, *command):
        with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        done = subprocess.run([*command], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def untraced(self, precision, dropout):
        if (precision, dropout) not in self.alone:
            with tempfile.TemporaryDirectory() as folder:
                self.alone[precision, dropout] = self.run_in(folder, PYTHON, "program.py", precision, dropout)
        return self.alone[precision, dropout]

    def losses_in_fp32(self, dropout="0.5"):
        return [float(x) for x in self.untraced("fp32", dropout).split()[:4]]

    def traced(self, mode, precision="low", dropout="0.5", options=()):
        """(the losses of the twin, the report): the output is the untraced one."""
        words = ["program.py", precision, dropout]
        with tempfile.TemporaryDirectory() as folder:
            traced = self.run_in(folder, TRACE, "-q", "--mode", mode, *options, "-o", "run", "--", PYTHON, *words)
            self.assertEqual(traced, self.untraced(precision, dropout))
            report = json.loads(self.run_in(folder, TRACE, "report", "run", "--json", "-"))
        self.assertEqual(len(report["steps"]), 4)
        losses = [entry["losses"][-1].get("twin_loss") for step in report["steps"] for entry in step["ranks"]]
        return losses, report

    def test_in_fp32_the_twin_draws_what_the_run_draws(self):
        twin, report = self.traced("trajectory", "fp32")
        self.assertEqual(twin, self.losses_in_fp32())
        self.assertEqual(report["coverage"]["failed"], 0)

    def test_without_its_rule_the_twin_moves_the_state_of_the_run(self):
        with mock.patch.dict(os.environ, {"MP_TRACE_TEST_DISABLE_RULE": "dropout_state"}):
            with self.assertRaisesRegex(AssertionError, "state 11"):
                self.traced("trajectory", "fp32", options=("--adapters", TEST_ADAPTERS))

    def test_without_dropout_the_twin_of_16_bits_is_the_fp32_run(self):
        twin, report = self.traced("trajectory", dropout="0")
        self.assertEqual(twin, self.losses_in_fp32("0"))
        self.assertEqual(report["coverage"]["flips"], 0)

    def test_in_16_bits_with_dropout_the_layer_has_no_twin(self):
        """cuDNN draws other numbers in fp32. The backward would read the reserve of 16 bits as one of fp32."""
        _, report = self.traced("trajectory")
        texts = " ".join(note["text"] for note in report["notes"])
        self.assertIn("aten::_cudnn_rnn: the twin's op failed: with dropout, the kernel of fp32 draws other", texts)
        self.assertIn("aten::_cudnn_rnn_backward: an integer argument has another size in fp32", texts)
        self.assertNotIn("the reserve of another dtype", texts)

    def test_the_program_draws_what_it_would_draw_alone(self):
        for mode in ("watch", "local", "step"):
            for precision in ("low", "fp32") if LONG or mode == "local" else ("low",):
                with self.subTest(mode=mode, precision=precision):
                    _, report = self.traced(mode, precision)
                    self.assertNotIn("the reserve of another dtype", json.dumps(report["notes"]))


if __name__ == "__main__":
    unittest.main()
