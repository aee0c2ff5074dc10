"""Small trainings, each with one precision bug that real projects had, and its fix.

    python cases.py --case micro-steps            # the bug
    python cases.py --case micro-steps --fixed    # the usual fix
    python cases.py --list

truth.toml says for each where the bug is. The last line is the value that the bug damages.
"""
import argparse
import contextlib
import math

import torch
from torch import nn
from torch.nn import functional as F

import ranks

HALF, BF16 = torch.float16, torch.bfloat16


class Run:
    def __init__(self, options):
        self.steps, self.seed = options.steps, options.seed
        self.buggy = not options.fixed
        self.low = options.precision == "low"
        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        self.generator = torch.Generator().manual_seed(1000 + self.seed)

    def bug_type(self, low):
        """The 16-bit type where the bug is, fp32 in the fixed program."""
        return low if self.low and self.buggy else torch.float32

    def autocast(self, dtype=BF16):
        return torch.autocast("cpu", dtype=dtype) if self.low else contextlib.nullcontext()

    def master_weights(self, dtype):
        """Autocast around fp32 parameters; off in the buggy program, whose parameters are 16 bits wide."""
        return self.autocast(dtype) if not self.buggy else contextlib.nullcontext()

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def integers(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)

    def report(self, step, loss):
        print(f"step {step} loss {loss.item():.6g}", flush=True)


def value(name, number):
    print(f"{name} {float(number):.6g}")


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)


class FeedForward(nn.Module):
    """The layer of T5 whose `wo` leaves fp16; keeping it in fp32 is what later versions do."""

    def __init__(self, width, wide_wo):
        super().__init__()
        self.norm, self.wide_wo = RMSNorm(width), wide_wo
        self.wi, self.wo = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        hidden = F.relu(self.wi(self.norm(x)))
        if not self.wide_wo:
            return x + self.wo(hidden)
        with torch.autocast("cpu", enabled=False):
            return x + self.wo(hidden.float())


class Encoder(nn.Module):
    def __init__(self, run, width=32):
        super().__init__()
        self.embedding = nn.Embedding(64, width)
        self.layers = nn.ModuleList(FeedForward(width, not run.buggy) for _ in range(3))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, 4)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


def t5_ff(run):
    """One neuron of a feed-forward layer answers to a rare token only, and strongly; the token comes at step 4."""
    model = Encoder(run)
    with torch.no_grad():
        model.embedding.weight[:, 0] = 0
        model.embedding.weight[0] = 5 * F.one_hot(torch.tensor(0), 32)
        model.layers[0].wo.weight[0] = 0
        model.layers[1].wi.weight[7] = 100 * F.one_hot(torch.tensor(0), 32)
        model.layers[1].wo.weight[:, 7] = 250
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, enabled=run.low)
    for step in range(run.steps):
        tokens = 1 + run.integers(63, 8, 16)
        labels = tokens[:, 0] % 4
        if step >= 4:
            tokens[:, 5] = 0
        with run.autocast(HALF):
            logits = model(tokens)
        loss = F.cross_entropy(logits.float(), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        run.report(step, loss)


class Attention(nn.Module):
    """Multi-head attention over left-padded rows; `fill` is added where a key is padding."""

    def __init__(self, run, width=32, heads=2, fill=-1e9, wide_scores=False):
        super().__init__()
        self.heads, self.fill, self.wide_scores = heads, fill, wide_scores
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide_mask = not run.buggy or not run.low
        self.gain = 1.0

    def forward(self, x, valid):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        size, time = q.shape[-1], x.shape[1]
        q = q * self.gain
        if self.wide_scores:
            with torch.autocast("cpu", enabled=False):
                scores = (q.float() / math.sqrt(size)) @ k.float().transpose(-2, -1)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(size)
        future = torch.ones(time, time).triu(1).bool()
        scores = scores.masked_fill(future, -math.inf)
        keep = valid[:, None, None, :].to(torch.float32 if self.wide_mask else scores.dtype)
        scores = scores + (1.0 - keep) * self.fill
        weights = scores.softmax(-1)
        return self.out((weights.to(v.dtype) @ v).transpose(1, 2).flatten(2))


class Reader(nn.Module):
    def __init__(self, run, **options):
        super().__init__()
        self.embedding = nn.Embedding(64, 32)
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(2))
        self.attentions = nn.ModuleList(Attention(run, **options) for _ in range(2))
        self.head = nn.Linear(32, 4)

    def forward(self, tokens, valid):
        x = self.embedding(tokens)
        for norm, attention in zip(self.norms, self.attentions):
            x = x + attention(norm(x), valid)
        return self.head(x[:, -1])


def read(run, model, prepare):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(run.steps):
        tokens, valid = run.integers(64, 8, 16), torch.ones(8, 16)
        prepare(step, valid)
        with run.autocast(HALF):
            logits = model(tokens, valid)
        loss = F.cross_entropy(logits.float(), tokens[:, -1] % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)


def mask_fill(run):
    """-1e9 is -inf in fp16: from step 3 on there are rows whose keys are all padding."""
    def prepare(step, valid):
        if step >= 3:
            valid[:2, :5] = 0
    read(run, Reader(run), prepare)


def qk_overflow(run):
    """Products of queries and keys leave fp16 before they are divided by sqrt(size)."""
    model = Reader(run, wide_scores=not run.buggy)
    with torch.no_grad():
        model.attentions[1].qkv.weight.mul_(15)

    def prepare(step, valid):
        model.attentions[1].gain = 4.0 ** step if step < 3 else 150.0
    read(run, model, prepare)


class Bag(nn.Module):
    """The mean of a few tokens' embeddings through a small perceptron."""

    def __init__(self, vocabulary=256, width=16, scale=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.hidden, self.head = nn.Linear(width, width), nn.Linear(width, 4)
        nn.init.normal_(self.embedding.weight, std=scale)

    def forward(self, tokens):
        return self.head(torch.tanh(self.hidden(self.embedding(tokens).mean(1))))


def adam_eps(run):
    """Adam's eps of 1e-8 is 0 in fp16, and embeddings that no token asked for have no gradient: 0/0."""
    model = Bag().to(run.bug_type(HALF))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=run.low and not run.buggy)
    for step in range(run.steps):
        tokens = run.integers(64, 16, 4)
        with run.master_weights(HALF):
            logits = model(tokens)
        loss = F.cross_entropy(logits.float(), tokens[:, 0] % 4)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        run.report(step, loss)


def weight_decay(run):
    """Decay by 1e-4 a step is less than half an ulp of bf16: embeddings without a gradient never shrink."""
    model = Bag().to(run.bug_type(BF16))
    start = model.embedding.weight.detach()[32:].float().norm()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=2e-4)
    for step in range(run.steps):
        tokens = run.integers(32, 64, 4)
        with run.master_weights(BF16):
            logits = model(tokens)
        loss = F.cross_entropy(logits.float(), tokens[:, 0] % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    value("decay", 1 - model.embedding.weight.detach()[32:].float().norm() / start)


class MeanTeacher(nn.Module):
    """The student learns labels and to agree with a running mean of itself."""

    def __init__(self, dtype):
        super().__init__()
        self.student, self.teacher = self.network(), self.network().to(dtype).requires_grad_(False)
        self.teacher.load_state_dict(self.student.state_dict())

    @staticmethod
    def network():
        return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))

    @torch.no_grad()
    def update_teacher(self, decay=0.999):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
            slow.mul_(decay).add_(fast, alpha=1 - decay)

    def forward(self, x):
        return self.student(x), self.teacher(x.to(self.teacher[0].weight.dtype))


def ema(run):
    """A mean over a thousand steps moves by less than half an ulp of bf16 in each."""
    model = MeanTeacher(run.bug_type(BF16))
    start = [p.detach().float().clone() for p in model.teacher.parameters()]
    optimizer = torch.optim.SGD(model.student.parameters(), lr=0.5)
    for step in range(run.steps):
        x = run.normal(32, 16)
        with run.autocast():
            student, teacher = model(x)
        labels = x[:, :4].argmax(1)
        loss = F.cross_entropy(student.float(), labels) + F.mse_loss(student.float(), teacher.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.update_teacher()
        run.report(step, loss)
    moved = [(p.detach().float() - s).norm() for p, s in zip(model.teacher.parameters(), start)]
    value("moved", torch.stack(moved).norm())


class Rotary(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, size, 2) / size))

    def forward(self, time):
        positions = torch.arange(time, dtype=self.frequencies.dtype)
        return torch.outer(positions, self.frequencies)


class RotaryAttention(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.rotary, self.qk, self.v = Rotary(width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def rotate(self, x, angles):
        even, odd = x[..., 0::2], x[..., 1::2]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        return torch.cat((even * cos - odd * sin, even * sin + odd * cos), -1)

    def forward(self, x):
        angles = self.rotary(x.shape[1])
        q, k = (self.rotate(t, angles) for t in self.qk(x).chunk(2, -1))
        return F.softmax(q @ k.transpose(-2, -1) / 4, -1).to(x.dtype) @ self.v(x)


class Copier(nn.Module):
    """Finds the token at a fixed distance, for which neighbours must be told apart."""

    def __init__(self):
        super().__init__()
        self.embedding, self.attention, self.head = nn.Embedding(8, 16), RotaryAttention(), nn.Linear(16, 8)

    def forward(self, tokens):
        return self.head(self.attention(self.embedding(tokens)))


def rope(run):
    """Positions above 256 are rounded to even ones, above 512 to multiples of four."""
    model = Copier()
    model.attention.rotary.to(run.bug_type(BF16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(run.steps):
        tokens = run.integers(8, 1, 640)
        with run.autocast():
            logits = model(tokens)
        loss = F.cross_entropy(logits[:, 1:].float().flatten(0, 1), tokens[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    value("positions", torch.unique(model.attention.rotary(640)[:, 0]).numel())


class MeanPool(nn.Module):
    """The mean over time, summed as a stream would be."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        total = torch.zeros(x.shape[0], x.shape[2], dtype=self.dtype)
        for column in x.unbind(1):
            total = total + column.to(self.dtype)
        return total / x.shape[1]


class Pooled(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.encode, self.pool, self.head = nn.Linear(4, 32), MeanPool(run.bug_type(BF16)), nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.pool(torch.sigmoid(self.encode(x))))


def running_sum(run):
    """A running sum in bf16 takes nothing up once it is 256 times its addends."""
    model = Pooled(run)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(run.steps):
        x = run.normal(8, 700, 4)
        with run.autocast():
            y = model(x)
        loss = F.mse_loss(y.float(), x.mean((1, 2)).unsqueeze(1) + 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    value("pooled", model.pool(torch.ones(1, 700, 1, dtype=model.pool.dtype)))


def embedding_gradient(run):
    """One token is nearly all of the text: its gradient is a sum of thousands of addends in bf16."""
    model = Bag(vocabulary=16).to(run.bug_type(BF16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(run.steps):
        tokens = run.integers(16, 4, 1024) * (run.integers(16, 4, 1024) == 0)
        with run.master_weights(BF16):
            logits = model(tokens)
        loss = F.cross_entropy(logits.float(), torch.zeros(4, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            first = model.embedding.weight.grad[0].float().norm()
        optimizer.step()
        run.report(step, loss)
    value("gradient", first)


def micro_steps(run):
    """Gradients of 600 micro-batches, added up in bf16 because the weights are bf16."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to(run.bug_type(BF16))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for step in range(run.steps):
        optimizer.zero_grad()
        for _ in range(600):
            x = run.normal(4, 8)
            with run.master_weights(BF16):
                y = model(x.to(model[0].weight.dtype))
            loss = F.mse_loss(y.float(), x.sum(1, keepdim=True) * 0.1 + 20)
            loss.backward()
        if step == 0:
            first = model[2].bias.grad.float().norm()
        optimizer.step()
        run.report(step, loss)
    value("gradient", first)


def clip_gradients(parameters, largest, dtype):
    """Clips to a norm, which it returns."""
    squares = [p.grad.to(dtype).pow(2).sum() for p in parameters]
    norm = torch.stack(squares).sum().sqrt()
    for p in parameters:
        p.grad.mul_((largest / (norm + 1e-6)).clamp(max=1.0).to(p.grad.dtype))
    return norm


def norm_squared(run):
    """Squares of scaled fp16 gradients are inf, so clipping multiplies every gradient by 0."""
    model = Bag().to(HALF if run.low else torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5 / 8192)
    for step in range(run.steps):
        tokens = run.integers(64, 16, 4)
        loss = F.cross_entropy(model(tokens).float(), tokens[:, 0] % 4)
        optimizer.zero_grad()
        (loss * 8192).backward()
        norm = clip_gradients(list(model.parameters()), 8192.0, run.bug_type(HALF))
        optimizer.step()
        run.report(step, loss)
    value("norm", norm)


class Gate(nn.Module):
    """Probabilities of labels, most of them rare."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype
        self.hidden, self.gate = nn.Linear(16, 32), nn.Linear(32, 8)
        nn.init.constant_(self.gate.bias, -20.0)

    def forward(self, x):
        return torch.sigmoid(self.gate(torch.tanh(self.hidden(x))).to(self.dtype))


class LogLoss(nn.Module):
    def forward(self, p, y):
        return -(y * torch.log(p + 1e-8) + (1 - y) * torch.log(1 - p + 1e-8)).mean()


def loss_scale(run):
    """log(p + 1e-8) is -inf in fp16; every step is skipped, and no loss scale is low enough."""
    model, criterion = Gate(run.bug_type(HALF)), LogLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=run.low)
    for step in range(run.steps):
        x = run.normal(16, 16)
        with run.autocast(HALF):
            p = model(x)
            loss = criterion(p, (x[:, :8] > 2).float())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        run.report(step, loss)
    value("scale", scaler.get_scale())


class StreamingAttention(nn.Module):
    """Attention that takes one key after another and never holds a row of weights."""

    def __init__(self, dtype, width=16):
        super().__init__()
        self.dtype, self.q, self.kv = dtype, nn.Linear(width, width), nn.Linear(width, 2 * width)

    def forward(self, x):
        q, (k, v) = self.q(x[:, -1:]), self.kv(x).chunk(2, -1)
        scores = (q @ k.transpose(-2, -1) / 4).squeeze(1)
        weights = (scores - scores.amax(-1, keepdim=True)).exp().to(self.dtype)
        total = torch.zeros(x.shape[0], 1, dtype=self.dtype)
        for j in range(x.shape[1]):
            total = total + weights[:, j:j + 1]
        return (weights.unsqueeze(1) @ v.to(self.dtype)).squeeze(1) / total


class Summary(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.encode = nn.Linear(4, 16)
        self.attention, self.head = StreamingAttention(run.bug_type(BF16)), nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.attention(self.encode(x)))


def softmax_rows(run):
    """The denominator of a softmax over 600 nearly equal scores, summed in bf16, stops at 256."""
    model = Summary(run)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(run.steps):
        x = 0.1 * run.normal(8, 600, 4)
        with run.autocast():
            y = model(x)
        loss = F.mse_loss(y.float(), x.mean((1, 2)).unsqueeze(1) + 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)


class MaskedMean(nn.Module):
    """The mean over the tokens that count."""

    def __init__(self, guarded):
        super().__init__()
        self.guarded = guarded

    def forward(self, x, mask):
        count = mask.sum(1)
        return (x * mask).sum(1) / (count.clamp(min=1) if self.guarded else count)


class Sentences(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.encode, self.pool, self.head = nn.Linear(4, 32), MaskedMean(not run.buggy), nn.Linear(32, 1)

    def forward(self, x, mask):
        return self.head(self.pool(torch.tanh(self.encode(x)), mask))


def empty_mean(run):
    """At step 3 a sentence has no token that counts: 0 / 0, in fp32 as in bf16. No bug of precision."""
    model = Sentences(run)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(run.steps):
        x, mask = run.normal(8, 12, 4), torch.ones(8, 12, 1)
        if step == 3:
            mask[5] = 0
        with run.autocast():
            y = model(x, mask)
        loss = F.mse_loss(y.float(), x.mean((1, 2)).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    value("weight", model.head.weight.abs().sum())


class Spread(nn.Module):
    """The variance of each row as the mean of the squares less the square of the mean."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        x = x.to(self.dtype)
        return (x * x).mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2


class Scales(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.spread, self.head = Spread(run.bug_type(BF16)), nn.Linear(1, 1)

    def forward(self, x):
        return self.head(self.spread(x))


def variance(run):
    """Two numbers near 1,600 that bf16 holds to 0.2 %; their difference is 1."""
    model = Scales(run)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(run.steps):
        x = 40 + run.normal(128, 64)
        with run.autocast():
            y = model(x)
        loss = F.mse_loss(y.float(), x.var(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    value("loss", loss)


class SquaredError(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, y, target):
        return ((y.to(self.dtype) - target.to(self.dtype)) ** 2).mean()


class Thermometer(nn.Module):
    """Temperatures in kelvin, as the distance from their mean."""

    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(16, 32), nn.Linear(32, 1)

    def forward(self, x):
        return 300 + self.head(torch.tanh(self.hidden(x))).float()


def cancel(run):
    """Numbers near 300 that bf16 holds in steps of 2; their differences are near 1."""
    model, criterion = Thermometer(), SquaredError(run.bug_type(BF16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(run.steps):
        x = run.normal(128, 16)
        with run.autocast():
            y = model(x)
        loss = criterion(y, 300 + x[:, :4].mean(1, keepdim=True) * 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    value("loss", loss.detach())


class WeightedMean(torch.autograd.Function):
    """The mean of values by the softmax of their scores. It keeps 16 bits for backward, to save memory."""

    @staticmethod
    def forward(ctx, scores, values, dtype):
        weights = scores.float().softmax(-1)
        ctx.save_for_backward(weights.to(dtype), values.to(dtype))
        return (weights * values.float()).sum(-1)

    @staticmethod
    def backward(ctx, gradient):
        weights, values = ctx.saved_tensors
        per_weight = gradient.to(values.dtype)[:, None] * values
        mean = (weights * per_weight).sum(-1, keepdim=True)
        return (weights * (per_weight - mean)).float(), None, None


class Stations(nn.Module):
    """The temperature in kelvin at a place, from those at stations around it."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype
        self.hidden, self.scores = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, temperatures):
        scores = self.scores(torch.tanh(self.hidden(temperatures - 300)))
        return WeightedMean.apply(scores, temperatures, self.dtype)


def softmax_backward(run):
    """A hand-written backward of softmax subtracts numbers near 300 times the gradient, which bf16 holds to 0.2 %."""
    model = Stations(run.bug_type(BF16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(run.steps):
        temperatures = 300 + run.normal(64, 32)
        with run.autocast():
            y = model(temperatures)
        loss = F.mse_loss(y, temperatures.max(-1).values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    value("gradient", model.scores.weight.grad.norm())


class Packed(nn.Linear):
    """Keeps its input in fp8 for backward, to save memory, and computes in the type of the input."""

    dtype = None  # of the input that is kept; None: its own

    def forward(self, x):
        return super().forward(x.to(self.dtype).to(x.dtype) if self.dtype else x)


def through_fp8(run):
    """The product reads values of 4 bits. The loss scale keeps the gradients, which pass through fp8 too, above 0."""
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), Packed(64, 64), nn.Tanh(), nn.Linear(64, 8))
    model[2].dtype = torch.float8_e4m3fn if run.low and run.buggy else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0, enabled=run.low)
    for step in range(run.steps):
        x, labels = run.normal(64, 32), run.integers(8, 64)
        with run.autocast(HALF):
            loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        run.report(step, loss)
    value("gradient", model[2].weight.grad.norm())


class Surprise(nn.Module):
    """The negative logarithm of each label's share of the weights that are allowed."""

    def __init__(self, guarded):
        super().__init__()
        self.guarded = guarded

    def forward(self, scores, allowed, labels):
        weights = scores.float().softmax(-1) * allowed
        share = (weights / weights.sum(-1, keepdim=True)).gather(1, labels[:, None])
        return -(share.clamp(min=1e-6) if self.guarded else share).log().mean()


def log_zero(run):
    """At step 3 a label is not among the allowed ones: log(0), in fp32 as in bf16. No bug of precision."""
    model, criterion = nn.Linear(16, 8), Surprise(not run.buggy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(run.steps):
        x, allowed, labels = run.normal(32, 16), torch.ones(32, 8), run.integers(8, 32)
        if step == 3:
            allowed[5, labels[5]] = 0
        with run.autocast():
            scores = model(x)
        loss = criterion(scores, allowed, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    value("weight", model.weight.detach().abs().sum())


CASES = {
    "t5-ff": t5_ff, "mask-fill": mask_fill, "qk-overflow": qk_overflow, "adam-eps": adam_eps,
    "weight-decay": weight_decay, "ema": ema, "rope": rope, "running-sum": running_sum,
    "embedding-gradient": embedding_gradient, "micro-steps": micro_steps, "norm-squared": norm_squared,
    "loss-scale": loss_scale, "softmax-rows": softmax_rows,
    "empty-mean": empty_mean, "variance": variance, "cancel": cancel, "log-zero": log_zero,
    "softmax-backward": softmax_backward, "through-fp8": through_fp8, **ranks.CASES,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--precision", choices=("low", "fp32"), default="low", help="fp32: the reference")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.list or not options.case:
        print("\n".join(CASES))
    else:
        CASES[options.case](Run(options))


main()
