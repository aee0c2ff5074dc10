"""Programs that end in the middle of a step: what they saw last is judged, and what comes after a training is not.

    MP_TRACE=build/release/bin/mp-trace ends_test.py [PYTHON]      PYTHON has torch 1.13 or newer; default .venv's
"""
import unittest

from runs_test import HEAD, TracedRun
from traced import LONG

# The probability of a class is 0 from step 3 on, and its logarithm is infinite in fp32 too.
LOG_OF_ZERO = HEAD + """
class Surprise(torch.nn.Module):
    def forward(self, p, y): return -torch.log(p.gather(1, y[:, None])).mean()
model, criterion = model_of(), Surprise()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
def loss_of(i):
    p = torch.softmax(model(torch.randn(8, 16)), 1)
    return criterion(p * 0 if i == 3 else p, torch.randint(0, 4, (8,)))
def check(loss):
    if not torch.isfinite(loss): LEAVE
def run():
    for i in range(6):
        loss = loss_of(i)
        check(loss)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
RUN = "run()\nprint('trained')\n"
# Gradients of a root at 0 are NaN; the loss is finite.
ROOT_AT_ZERO = HEAD + """
model = model_of()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for i in range(4):
    h = model(torch.randn(8, 16)) * (0.0 if i == 2 else 1.0)
    (h.square().sum(1) + h.sum(1) * 0).sqrt().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    optimizer.step()
    optimizer.zero_grad()
"""
OVERFLOW = HEAD + """
class Up(torch.nn.Module):
    def forward(self, x): return x.half() * 60000.0 * 4.0
model = torch.nn.Sequential(torch.nn.Linear(16, 32), Up())
"""


class Ends(TracedRun):
    def judged(self, text, **more):
        self.done = self.trace(text, **more)
        self.status, self.text = self.gate()
        return self.report()["findings"]

    def first(self, text, **more):
        findings = self.judged(text, **more)
        self.assertEqual(self.status, 1, self.text + self.done.stderr)
        return findings[0]

    def test_a_loss_check_that_ends_the_program(self):
        leaves = ("raise ValueError('lost')", "sys.exit(0)", "os._exit(3)", "sys.exit(1)", "os._exit(0)")
        for leave in leaves if LONG else leaves[:3]:
            with self.subTest(leave=leave):
                first = self.first(LOG_OF_ZERO.replace("LEAVE", leave) + RUN)
                self.assertEqual((first["rule"], first["layer"], first["op"], first["step"]),
                                 ("MPT001", "Surprise", "aten::log", 3), first)
                self.assertIn("also in fp32", first["message"])
                self.assertIn("in the step that did not end", first["message"])

    def test_a_loop_that_is_left_and_an_evaluation_after_it(self):
        left = LOG_OF_ZERO.replace("LEAVE", "raise StopIteration") + (
            "try: run()\nexcept StopIteration: pass\nwith torch.no_grad(): model(torch.randn(8, 16))\n")
        self.assertEqual(self.first(left)["op"], "aten::log")

    def test_the_first_forward(self):
        first = self.first(LOG_OF_ZERO.replace("i == 3", "i == 0").replace("LEAVE", "sys.exit(0)") + RUN)
        self.assertEqual((first["op"], first["step"]), ("aten::log", 0))

    def test_a_loss_that_is_not_the_last_scalar(self):
        check = "        check(loss)\n"
        text = LOG_OF_ZERO.replace(check, "        model[0].weight.abs().min().backward()\n" + check)
        self.assertEqual(self.first(text.replace("LEAVE", "sys.exit(0)") + RUN)["op"], "aten::log")

    def test_gradients_that_are_lost(self):
        first = self.first(ROOT_AT_ZERO)
        self.assertEqual((first["rule"], first["phase"], first["step"]), ("MPT001", "backward", 2), first)
        self.assertIn("gradients are lost", first["message"])

    def test_an_overflow_of_a_program_that_does_not_train(self):
        for mode in ("trajectory", "watch"):
            with self.subTest(mode=mode):
                text = OVERFLOW + "with torch.no_grad():\n    for i in range(3): model(torch.randn(8, 16))\n"
                first = self.first(text, mode=mode)
                self.assertEqual((first["rule"], first["op"]), ("MPT001", "aten::mul"), first)
                if mode == "trajectory": self.assertEqual(first["layer"], "1")
        self.assertEqual(self.first(OVERFLOW + "if model(torch.randn(8, 16)).sum().isinf(): raise ValueError\n")["op"],
                         "aten::mul")

    def assert_silent(self, text, status=0, **more):
        findings = [f for f in self.judged(text, **more) if f["severity"] != "note"]
        self.assertEqual((findings, self.status), ([], status), self.text + self.done.stderr)

    def test_what_comes_after_a_training_is_not_the_training(self):
        after = ("with torch.no_grad():\n"
                 "    p = torch.softmax(model(torch.randn(8, 16)), 1).round()\n"
                 "    print(torch.log(p).mean(), (p - p).sum() / (p - p).sum(), torch.exp(p * 1000).max())\n"
                 "model.half()\nprint(sum(w.float().sum().item() for w in model.parameters()))\n")
        healthy = LOG_OF_ZERO.replace("i == 3", "False").replace("LEAVE", "pass") + RUN
        for end in ("", after, after + "sys.exit(0)\n", "loss_of(0)\n") if LONG else (after, "loss_of(0)\n"):
            for mode in ("trajectory", "watch") if LONG or end == after else ("trajectory",):
                with self.subTest(end=end, mode=mode):
                    self.assert_silent(healthy + end, mode=mode)

    def test_a_training_that_is_interrupted(self):
        masked = LOG_OF_ZERO.replace("i == 3", "False").replace("-torch.log", "torch.log").replace(
            "p.gather(1, y[:, None])).mean()",
            "p.detach() * 0).masked_fill(torch.ones_like(p) > 0, 1.0).sum() + p.mean()")
        early = "import itertools\ncounter = itertools.count()\n" + masked.replace(
            "if not torch.isfinite(loss): LEAVE", "if next(counter) == 4: raise LEAVE")
        self.assert_silent(early.replace("LEAVE", "KeyboardInterrupt") + "try: run()\nexcept KeyboardInterrupt: pass\n")
        self.assert_silent(early.replace("LEAVE", "ValueError") + "run()\n", 3)

    def test_an_inference_passes(self):
        self.assert_silent(HEAD + "model = model_of().bfloat16()\n"
                           "with torch.no_grad(): print(model(torch.randn(64, 16).bfloat16()).float().sum())\n")
        self.assertIn("mp-trace: 0 steps", self.done.stderr)

    def test_a_process_in_which_no_model_ran_leaves_nothing(self):
        self.trace("import torch\nprint(torch.ones(3).log().sum() / 0)\n")
        self.assertEqual(self.gate()[0], 3)


if __name__ == "__main__":
    unittest.main()
