"""Small trainings on the device "late" or on the CPU, with the losses' bits and a hash of the weights on stdout.

    train.py CASE,CASE --device late|cpu [--fp32] [--skip-steps 0,1] [--steps N]
"""
import argparse
import contextlib
import hashlib
import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, CONTEXT, VOCABULARY = 32, 16, 17
late = None  # the module, on that device


class Block(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(CONTEXT, CONTEXT).triu(1).bool())

    def forward(self, x):
        batch, time, _ = x.shape
        q, k, v = (t.reshape(batch, time, 4, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(WIDTH // 4)).masked_fill(self.mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, time, WIDTH)
        x = x + self.drop(self.out(y))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class GPT(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.register_buffer("places", torch.arange(CONTEXT))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(self.places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def image_model():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 4, 4))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.lstm = nn.Embedding(VOCABULARY, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.lstm(self.tokens(tokens))[0])


class Run:
    def __init__(self, options):
        self.options, self.device = options, torch.device(options.device)
        self.skipped = {int(s) for s in options.skip_steps.split(",") if s}
        self.losses = []
        self.waited = self.waits()

    def waits(self):
        return late.synchronisations() if late else 0

    def autocast(self, dtype):
        low = not self.options.fp32
        return torch.autocast(self.device.type, dtype=dtype) if low else contextlib.nullcontext()

    def tokens(self, generator):
        ids = torch.randint(VOCABULARY, (4, CONTEXT + 1), generator=generator)
        ids[:, 1::2] = (ids[:, 0:-1:2] * 3 + 1) % VOCABULARY
        return ids[:, :-1].to(self.device), ids[:, 1:].to(self.device)

    def pictures(self, generator):
        noise, labels = torch.rand(8, 3, 8, 8, generator=generator), torch.randint(4, (8,), generator=generator)
        noise += labels[:, None, None, None] * 0.5
        return noise.to(self.device), labels.to(self.device)

    def train(self, model, make_optimizer, batch, dtype=torch.bfloat16, scale=0.0, clip=0.0):
        model = model.to(self.device)
        optimizer = make_optimizer(model.parameters())
        scaler = None
        if scale and not self.options.fp32:
            scaler = torch.amp.GradScaler(self.device.type, init_scale=scale, growth_interval=4)
        generator = torch.Generator().manual_seed(7)
        for step in range(self.options.steps):
            inputs, targets = batch(generator)
            optimizer.zero_grad()
            with self.autocast(dtype):
                loss = F.cross_entropy(model(inputs).float().flatten(0, -2), targets.flatten())
            self.losses.append(loss.detach())
            (scaler.scale(loss) if scaler else loss).backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            if scaler:
                before = scaler.get_scale()
                scaler.step(optimizer)
                scaler.update()
                if scaler.get_scale() < before:
                    print("skipped", step)
            elif not (scale and step in self.skipped):
                optimizer.step()
        self.end()
        for name, p in model.named_parameters():
            bits = p.detach().cpu().float().contiguous().numpy().tobytes()
            print("weight", name, hashlib.sha256(bits).hexdigest()[:16])

    def end(self):
        """The losses, and how often the training has waited for the device. A copy to the CPU is another wait: it is
        made for the twin as well."""
        for step, loss in enumerate(self.losses):
            print("loss", step, loss.item().hex())
        print("synchronisations", self.waits() - self.waited)


def adamw(**options):
    options = options or {"foreach": False}
    return lambda parameters: torch.optim.AdamW(parameters, lr=2e-3, **options)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.9)


def master_weights(run):
    """bf16 weights with fp32 masters of the program's own."""
    model = GPT().to(run.device)
    if not run.options.fp32:
        model = model.bfloat16()
    masters = [p.detach().clone().float() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=2e-3, foreach=False)
    generator = torch.Generator().manual_seed(7)
    for _ in range(run.options.steps):
        inputs, targets = run.tokens(generator)
        loss = F.cross_entropy(model(inputs).float().flatten(0, -2), targets.flatten())
        run.losses.append(loss.detach())
        loss.backward()
        for master, p in zip(masters, model.parameters()):
            master.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, p in zip(masters, model.parameters()):
                p.copy_(master)
                p.grad = None
    run.end()


def given_gradient(run):
    """A backward with a gradient on the device, and no optimizer of torch: the steps are inferred."""
    model = GPT().to(run.device)
    generator, gradient = torch.Generator().manual_seed(7), torch.full((), 0.5, device=run.device)
    for _ in range(run.options.steps):
        inputs, targets = run.tokens(generator)
        with run.autocast(torch.bfloat16):
            loss = F.cross_entropy(model(inputs).float().flatten(0, -2), targets.flatten())
        run.losses.append(loss.detach())
        loss.backward(gradient)
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
    run.end()


def side_stream(run):
    """All of it runs on a stream of the program's own."""
    if run.device.type == "cpu":
        return run.train(GPT(), adamw(), run.tokens)
    with torch.Stream(run.device):
        run.train(GPT(), adamw(), run.tokens)


def prefetched(run):
    """Batches in 16 bits, from a stream of the program's own; the training's stream is recorded as their reader."""
    dtype = torch.float32 if run.options.fp32 else torch.bfloat16
    here = torch.accelerator.current_stream() if run.device.type != "cpu" else None
    side = torch.Stream(run.device) if here else contextlib.nullcontext()

    def batch(generator):
        with side:
            images, labels = run.pictures(generator)
            images = (images * 2 - 0.5).to(dtype)
        if here:
            here.wait_stream(side)
            images.record_stream(here)
            labels.record_stream(here)
        return images, labels

    run.train(image_model(), sgd, batch)


CASES = {
    "gpt": lambda run: run.train(GPT(), adamw(), run.tokens, clip=0.2),
    "dropout": lambda run: run.train(GPT(0.1), adamw(), run.tokens),
    "foreach": lambda run: run.train(GPT(), adamw(foreach=True), run.tokens, clip=0.2),
    "fused": lambda run: run.train(GPT(), adamw(fused=True), run.tokens),
    "scaler": lambda run: run.train(GPT(), adamw(), run.tokens, torch.float16, 2.0 ** 22),
    "scaler-fused": lambda run: run.train(GPT(), adamw(fused=True), run.tokens, torch.float16, 2.0 ** 22),
    "pictures": lambda run: run.train(image_model(), sgd, run.pictures),
    "masters": master_weights,
    "recurrent": lambda run: run.train(Recurrent(), adamw(), run.tokens),
    "given": given_gradient,
    "stream": side_stream,
    "prefetched": prefetched,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", help=", ".join(CASES))
    parser.add_argument("--device", default="late")
    parser.add_argument("--fp32", action="store_true")
    parser.add_argument("--tf32", action="store_true", help="products of fp32 may use TF32")
    parser.add_argument("--skip-steps", default="", help="of the cases with a scaler, in fp32")
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    if options.device == "late":
        global late
        import late
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    for case in options.cases.split(","):
        print("case", case)
        torch.manual_seed(1)
        CASES[case](Run(options))


main()
