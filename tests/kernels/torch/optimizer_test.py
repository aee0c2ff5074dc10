"""mp_optim beside torch.optim.

    MP_OPTIM=build/X/lib/mp-trace/optim PYTHON optimizer_test.py
"""
import copy
import math
import os
import sys
import unittest

try:
    import torch
except ImportError:
    print("no torch")
    sys.exit(77)

sys.path.insert(0, os.environ["MP_OPTIM"])
import mp_optim  # noqa: E402

torch.set_num_threads(1)
HAS_FUSED_ON_CPU = hasattr(torch, "_fused_sgd_")
SHAPES = [(64, 48), (16,), (3, 16)]  # multiples of a vector: torch computes the rest of a tensor in double


def parameters(dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in SHAPES]


def give_gradients(params, step, dtype=None):
    generator = torch.Generator().manual_seed(100 + step)
    for p in params:
        p.grad = (torch.randn(p.shape, generator=generator) * 1e-2).to(dtype or p.dtype)


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b))


class BitsOfTorch(unittest.TestCase):
    def compare(self, ours, theirs):
        for name, value in {"ours": ours, "theirs": theirs}.items():
            params = parameters()
            optimizer = value(params)
            for step in range(4):
                give_gradients(params, step)
                optimizer.step()
            if name == "ours":
                mine = params
        self.assertTrue(same(mine, params))

    @unittest.skipUnless(HAS_FUSED_ON_CPU, "this torch has no fused optimizers on the CPU")
    def test_adamw(self):
        for options in ({}, {"weight_decay": 0.1, "betas": (0.8, 0.95)}, {"betas": (0.4, 0.9)}, {"maximize": True}):
            with self.subTest(**options):
                self.compare(lambda p: mp_optim.AdamW(p, lr=1e-2, **options),
                             lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True, **options))

    @unittest.skipUnless(HAS_FUSED_ON_CPU, "this torch has no fused optimizers on the CPU")
    def test_adam(self):
        self.compare(lambda p: mp_optim.AdamW(p, weight_decay=0.1, decoupled=False),
                     lambda p: torch.optim.Adam(p, weight_decay=0.1, fused=True))

    @unittest.skipUnless(HAS_FUSED_ON_CPU, "this torch has no fused optimizers on the CPU")
    def test_sgd(self):
        for options in ({}, {"weight_decay": 0.1}, {"momentum": 0.9, "dampening": 0.3},
                        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}, {"maximize": True}):
            with self.subTest(**options):
                self.compare(lambda p: mp_optim.SGD(p, lr=1e-2, **options),
                             lambda p: torch.optim.SGD(p, lr=1e-2, fused=True, **options))

    def test_close_to_the_loop_of_torch(self):
        params, reference = parameters(), parameters()
        ours, theirs = mp_optim.AdamW(params, lr=1e-2), torch.optim.AdamW(reference, lr=1e-2)
        for step in range(4):
            give_gradients(params, step)
            give_gradients(reference, step)
            ours.step()
            theirs.step()
        for p, q in zip(params, reference):
            torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-7)


class Masters(unittest.TestCase):
    def test_a_copy_is_its_master_rounded_and_the_master_is_the_fp32_run(self):
        for dtype in (torch.bfloat16, torch.float16):
            for cls in (mp_optim.AdamW, mp_optim.SGD):
                with self.subTest(dtype=dtype, cls=cls):
                    params = parameters(dtype)
                    fp32 = [torch.nn.Parameter(p.detach().float()) for p in params]
                    ours, reference = cls(params, lr=1e-4), cls(fp32, lr=1e-4)
                    for step in range(4):
                        give_gradients(params, step)
                        for p, q in zip(params, fp32):
                            q.grad = p.grad.float()
                        ours.step()
                        reference.step()
                    self.assertTrue(same([ours.state[p]["master"] for p in params], fp32))
                    self.assertTrue(same(params, [q.to(dtype) for q in fp32]))

    def test_gradients_may_have_another_dtype(self):
        params = parameters(torch.bfloat16)
        with self.assertRaisesRegex(RuntimeError, "dtype|type"):  # torch's own rule for .grad
            give_gradients(params, 0, torch.float32)
        masters, copies = [torch.randn(32)], [torch.zeros(32, dtype=torch.bfloat16)]
        state = [torch.zeros(32)]
        torch.ops.mp.sgd_(masters, copies, [torch.ones(32, dtype=torch.float16)], state, lr=0.5, momentum=0.9,
                          dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False, is_first_step=True,
                          stochastic=False, seed=0)
        self.assertTrue(torch.equal(copies[0], masters[0].to(torch.bfloat16)))

    def test_without_a_master_small_updates_stagnate_unless_rounded_stochastically(self):
        moved = {}
        for master, rounding in ((True, "nearest"), (False, "nearest"), (False, "stochastic")):
            p = torch.nn.Parameter(torch.ones(4096, dtype=torch.bfloat16))
            optimizer = mp_optim.SGD([p], lr=1e-4, master=master, rounding=rounding)
            for _ in range(100):
                p.grad = torch.ones_like(p)
                optimizer.step()
            moved[master, rounding] = (1 - p.float().mean().item(), optimizer.counts)
        self.assertAlmostEqual(moved[True, "nearest"][0], 0.01, delta=0.004)  # half a step of the format
        self.assertEqual(moved[True, "nearest"][1], (4096, 4096, 0))
        self.assertEqual(moved[False, "nearest"], (0.0, (4096, 4096, 4096)))
        self.assertAlmostEqual(moved[False, "stochastic"][0], 0.01, delta=0.0004)
        self.assertLess(moved[False, "stochastic"][1].stagnated, 4096)

    def test_stochastic_rounding_follows_the_seed_and_not_the_threads(self):
        results = []
        for seed, threads in ((1, 1), (1, 2), (2, 1)):
            torch.set_num_threads(threads)
            torch.manual_seed(seed)
            p = torch.nn.Parameter(torch.ones(300_000, dtype=torch.bfloat16))
            optimizer = mp_optim.AdamW([p], lr=1e-3, master=False, rounding="stochastic")
            p.grad = torch.ones_like(p)
            optimizer.step()
            results.append(p.detach().clone())
        torch.set_num_threads(1)
        self.assertTrue(torch.equal(results[0], results[1]))
        self.assertFalse(torch.equal(results[0], results[2]))

    def test_state_is_loaded_as_it_was_saved(self):
        params = parameters(torch.bfloat16)
        first = mp_optim.AdamW(params, lr=1e-4)
        give_gradients(params, 0)
        first.step()
        copies = [torch.nn.Parameter(p.detach().clone()) for p in params]
        second = mp_optim.AdamW(copies, lr=1e-4)
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        for p, q in zip(params, copies):
            for name in ("master", "exp_avg", "exp_avg_sq"):
                self.assertEqual(second.state[q][name].dtype, torch.float32)
                self.assertTrue(torch.equal(first.state[p][name], second.state[q][name]), name)
        for optimizer, own in ((first, params), (second, copies)):
            give_gradients(own, 1)
            optimizer.step()
        self.assertTrue(same(params, copies))


class LossScale(unittest.TestCase):
    @unittest.skipIf(torch.__version__.startswith("1."), "needs GradScaler on the CPU")
    def test_grad_scaler_unscales_and_skips(self):
        params, reference = parameters(), parameters()
        ours, theirs = mp_optim.AdamW(params), mp_optim.AdamW(reference)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for step in range(3):
            give_gradients(params, step)
            give_gradients(reference, step)
            for p in params:
                p.grad *= scaler.get_scale()
            scaler.scale(torch.zeros(()))
            if step == 1:
                params[0].grad[0, 0] = math.inf
            else:
                theirs.step()
            before = [p.detach().clone() for p in params]
            scaler.step(ours)
            scaler.update()
            self.assertEqual(same(before, params), step == 1)
            if step == 1:
                self.assertEqual(ours.counts, (0, 0, 0))
        self.assertEqual(scaler.get_scale(), 512.0)
        self.assertTrue(same(params, reference))


class Errors(unittest.TestCase):
    def test_say_what_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "stochastic"):
            mp_optim.AdamW(parameters(), rounding="up")
        with self.assertRaisesRegex(ValueError, "nesterov"):
            mp_optim.SGD(parameters(), nesterov=True)
        for wrong, said in ((torch.zeros(4, dtype=torch.float64), "not Double"), (torch.zeros(8)[::2], "without gaps"),
                            (torch.zeros(5), "sizes and strides")):
            p = torch.nn.Parameter(wrong.clone() if wrong.dtype == torch.float64 else torch.zeros(4))
            with self.assertRaisesRegex(RuntimeError, said):
                torch.ops.mp.sgd_([p.detach().float()], [], [wrong], [], lr=1.0, momentum=0.0, dampening=0.0,
                                  weight_decay=0.0, nesterov=False, maximize=False, is_first_step=True,
                                  stochastic=False, seed=0)

    def test_a_write_is_seen_by_autograd(self):
        p = torch.nn.Parameter(torch.ones(16))
        loss = (p * p).sum()
        optimizer = mp_optim.SGD([p])
        p.grad = torch.ones_like(p)
        optimizer.step()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()


class StateIn8Bits(unittest.TestCase):
    def test_the_tables_are_those_of_the_libraries(self):
        # Counts, ends and two values of bitsandbytes' and torchao's create_dynamic_map().
        for signed, smallest in ((True, 5.5e-7), (False, 3.25e-7)):
            table = mp_optim.table_8bit(signed)
            self.assertEqual(table.numel(), 256)
            self.assertEqual(int((table == 0).sum()), 1)
            self.assertTrue(bool((table[1:] > table[:-1]).all()))
            self.assertEqual(table[-1], 1)
            self.assertAlmostEqual(float(table[table > 0][0]) / smallest, 1, places=6)
            self.assertAlmostEqual(float(table[0]), -0.9929687 if signed else 0, places=6)

    def test_codes_are_the_nearest(self):
        torch.manual_seed(0)
        for signed in (True, False):
            values = torch.randn(70, 300) * torch.randn(70, 300).exp()
            values = values if signed else values.square()
            codes, scales = mp_optim.quantize_8bit(values, signed)
            self.assertEqual(codes.shape, values.shape)
            table = mp_optim.table_8bit(signed)
            padded = torch.nn.functional.pad(values.flatten(), (0, -values.numel() % 256)).view(-1, 256)
            self.assertTrue(torch.equal(scales, padded.abs().amax(1)))
            shares = (padded / scales[:, None]).flatten()[:values.numel()]
            nearest = torch.bucketize(shares, (table[1:] + table[:-1]) * 0.5, right=True)
            self.assertTrue(torch.equal(codes.flatten().long(), nearest))
            kept = mp_optim.dequantize_8bit(codes, scales, signed).flatten()
            self.assertTrue(torch.equal(kept, table[nearest] * scales.repeat_interleave(256)[:values.numel()]))

    def test_the_libraries_give_the_same(self):
        try:
            import bitsandbytes.functional as bnb
            from torchao.optim import quant_utils as ao
        except ImportError as missing:
            self.skipTest(str(missing))
        normal = torch.randn(1 << 22, generator=torch.Generator().manual_seed(0))
        for signed, values, from_ao, from_bnb in ((True, normal, 4, 0.002), (False, normal.square(), 4, 0.04)):
            table = mp_optim.table_8bit(signed)
            self.assertTrue(torch.equal(table, bnb.create_dynamic_map(signed)))
            self.assertTrue(torch.equal(table, torch.tensor(ao.create_dynamic_map(signed))))
            codes, scales = mp_optim.quantize_8bit(values, signed)
            shares, their_scales = ao.scale_tensor(values, 256)
            self.assertTrue(torch.equal(scales, their_scales))
            self.assertLessEqual(int((ao.quantize_8bit_with_qmap(shares, table) != codes).sum()), from_ao)
            theirs, state = bnb.quantize_blockwise(values, code=table, blocksize=256)
            self.assertTrue(torch.equal(scales, state.absmax))
            self.assertLess(float((theirs != codes).float().mean()), from_bnb)

    def test_threads_make_no_difference(self):
        values = torch.randn(300001)
        want = mp_optim.quantize_8bit(values, True)
        torch.set_num_threads(2)
        try:
            self.assertTrue(same(mp_optim.quantize_8bit(values, True), want))
        finally:
            torch.set_num_threads(1)

    def test_error(self):
        values = torch.full((512,), 1e-9)
        values[0] = 1.0   # the small values of its block are lost
        values[256:] = 1.0
        error = mp_optim.quantization_error(values, signed=False)
        self.assertEqual(error[:3], (512, 512, 255))
        self.assertGreater(error.sqnr, 150)
        self.assertEqual(mp_optim.quantization_error(torch.zeros(256), True), (256, 0, 0, math.inf))
        values[3] = math.nan
        self.assertTrue(math.isnan(mp_optim.quantization_error(values, signed=False).sqnr))

    def test_error_of_an_optimizer(self):
        params = [torch.nn.Parameter(torch.randn(64, 128)), torch.nn.Parameter(torch.randn(16))]
        optimizer = torch.optim.AdamW(params)
        for p in params:
            p.grad = torch.randn(p.shape) * torch.randn(p.shape).mul(4).exp()
        optimizer.step()
        errors = mp_optim.state_error(optimizer)
        self.assertEqual(list(errors), [(0, 0, "exp_avg"), (0, 0, "exp_avg_sq")])
        self.assertGreater(errors[0, 0, "exp_avg_sq"].lost, errors[0, 0, "exp_avg"].lost)

    def test_refuses_what_it_cannot_read(self):
        with self.assertRaisesRegex(RuntimeError, "must be float32"):
            mp_optim.quantize_8bit(torch.ones(4, dtype=torch.bfloat16), True)
        with self.assertRaisesRegex(RuntimeError, "one for 256 codes"):
            mp_optim.dequantize_8bit(torch.zeros(300, dtype=torch.uint8), torch.ones(1), True)
        with self.assertRaisesRegex(RuntimeError, "finite and ascending"):
            torch.ops.mp.quantize_blockwise(torch.ones(4), torch.zeros(256).add_(torch.arange(255, -1, -1)))


if __name__ == "__main__":
    unittest.main()
