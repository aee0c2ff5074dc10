"""Small models that are no GPT, for the corners of torch that a GPT does not reach; see amp_gpt.py --case."""
import torch
from torch import nn
from torch.nn import functional as F

from common import CONTEXT, WIDTH, loss_of, make_optimizer

BF16 = torch.bfloat16

try:
    from torch.func import grad, hessian, jvp, vmap
except ImportError:  # before torch 2
    from functorch import grad, hessian, jvp, vmap


class Images:
    """8 x 8 pictures with a bright spot; the label is its quadrant."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def next(self, size=16):
        noise = torch.rand(size, 3, 8, 8, generator=self.generator)
        labels = torch.randint(4, (size,), generator=self.generator)
        for picture, label in zip(noise, labels.tolist()):
            row, column = 4 * (label // 2), 4 * (label % 2)
            picture[:, row + 1:row + 3, column + 1:column + 3] += 1.0
        return noise, labels


def image_model():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 4, 4))


def convolution(run, memory_format=torch.contiguous_format):
    """Trains, then goes on with frozen statistics, so that the running ones reach the loss."""
    model = image_model().to(memory_format=memory_format)
    optimizer = make_optimizer("sgd", model.parameters())
    images = Images(run.seed)
    for step in range(run.steps):
        if step == 2 * run.steps // 3:
            model.eval()
        optimizer.zero_grad()
        pictures, labels = images.next()
        with run.autocast():
            loss = F.cross_entropy(model(pictures.to(memory_format=memory_format)).float(), labels)
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


class Recurrent(nn.Module):
    def __init__(self, kind, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.cell = kind(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, vocabulary)

    def forward(self, tokens):
        return self.head(self.cell(self.embedding(tokens))[0])


def recurrent(run, kind):
    """Without oneDNN: its recurrent layer takes 16-bit types on some processors only."""
    model = Recurrent(kind, run.vocabulary).to(run.dtype(BF16))
    text_loop(run, model)


def text_loop(run, model, autocast=False):
    optimizer = make_optimizer("adamw", model.parameters())
    batches = run.batches()
    with torch.backends.mkldnn.flags(enabled=False):
        for step in range(run.steps):
            optimizer.zero_grad()
            inputs, targets = batches.next()
            if autocast:
                with run.autocast():
                    loss = loss_of(model(inputs), targets)
            else:
                loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()
            run.report(step, loss)
    run.finish(model, optimizer)


class Transformer(nn.Module):
    """torch's own encoder layer."""

    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1, batch_first=True)
        self.head = nn.Linear(WIDTH, vocabulary)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1), persistent=False)

    def forward(self, tokens):
        return self.head(self.layer(self.embedding(tokens), src_mask=self.mask))


class Line(nn.Module):
    """Two matrices and what `between` does, in 16 bits where the run says so; regression on a fixed map."""

    def __init__(self, run, between):
        super().__init__()
        self.dtype, self.between = run.dtype(BF16), between
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        h = F.linear(x.to(self.dtype), self.first.weight.to(self.dtype), self.first.bias.to(self.dtype))
        h = self.between(h)
        return F.linear(h, self.second.weight.to(self.dtype), self.second.bias.to(self.dtype)).float()


class Samples:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.map = torch.randn(16, 8, generator=self.generator)

    def next(self, size=32):
        x = torch.randn(size, 16, generator=self.generator)
        return x, torch.tanh(x @ self.map)


def regression(run, between, loss_from=None, replace_gradients=None, gain=None):
    model = Line(run, between)
    if gain is not None:
        model.gain = nn.Parameter(torch.tensor(gain))
    optimizer = make_optimizer("adamw", model.parameters(), 1e-2)
    samples = Samples(run.seed)
    for step in range(run.steps):
        optimizer.zero_grad()
        x, y = samples.next()
        loss = loss_from(model, x, y) if loss_from else F.mse_loss(model(x), y)
        loss.backward()
        if replace_gradients:
            replace_gradients(model, x, y)
        optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


class SquaredRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        positive = x.clamp(min=0)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx, gradient):
        positive, = ctx.saved_tensors
        return 2 * positive * gradient


def double_backward(run):
    """The penalty on the gradient is part of the loss."""
    def loss_from(model, x, y):
        loss = F.mse_loss(model(x), y)
        gradients = torch.autograd.grad(loss, [model.first.weight, model.second.weight], create_graph=True)
        return loss + 0.1 * sum(g.square().sum() for g in gradients)
    regression(run, torch.tanh, loss_from)


def functional_loss(model, first, second, x, y):
    h = torch.tanh(x.to(model.dtype) @ first.to(model.dtype).t())
    return F.mse_loss((h @ second.to(model.dtype).t()).float(), y)


def sample_gradients(run):
    """Each sample's gradient is clipped before they are averaged."""
    def replace(model, x, y):
        one = grad(lambda a, b, u, v: functional_loss(model, a, b, u, v), argnums=(0, 1))
        first, second = vmap(one, in_dims=(None, None, 0, 0))(
            model.first.weight.detach(), model.second.weight.detach(), x, y)
        for p, g in ((model.first.weight, first), (model.second.weight, second)):
            norm = g.flatten(1).norm(dim=1).view(-1, 1, 1)
            p.grad = (g / norm.clamp(min=0.5)).mean(0)
    regression(run, torch.tanh, replace_gradients=replace)


def forward_mode(run):
    """The derivative along a direction is part of the loss."""
    def loss_from(model, x, y):
        direction = torch.full_like(model.first.weight, 0.01)
        _, slope = jvp(lambda w: functional_loss(model, w, model.second.weight, x, y),
                           (model.first.weight,), (direction,))
        return F.mse_loss(model(x), y) + slope.square()
    regression(run, torch.tanh, loss_from)


def second_order(run):
    """Newton's method on a logistic regression: hessian and solve."""
    weight = nn.Parameter(torch.zeros(16))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    samples = Samples(run.seed)
    dtype = run.dtype(BF16)
    for step in range(run.steps):
        x, y = samples.next(64)
        label = (y[:, 0] > 0).float()

        def objective(w):
            logits = (x.to(dtype) @ w.to(dtype)).float()
            return F.binary_cross_entropy_with_logits(logits, label) + 0.05 * w.square().sum()

        optimizer.zero_grad()
        loss = objective(weight)
        loss.backward()
        curvature = hessian(objective)(weight.detach())
        weight.grad = torch.linalg.solve(curvature, weight.grad)
        optimizer.step()
        run.report(step, loss)
    run.finish(nn.Module(), optimizer)


def ordered(run):
    """Sorted, topmost, largest and middle values feed the loss."""
    def between(h):
        top = h.topk(4, -1)[0].mean(-1, keepdim=True)
        ranked = h.sort(-1)[0]
        return torch.tanh(ranked) + top + h.max(-1, keepdim=True)[0] - h.median(-1, keepdim=True)[0]
    regression(run, between)


def comparisons(run):
    def between(h):
        h = torch.where(h > 0, h, 0.1 * h)
        h = torch.where(h.abs() < 1.5, h, h.sign() * (h.abs() - 0.5).clamp(min=0.5).sqrt() * 1.5)
        return h.masked_fill(h < -0.5, -0.5) + torch.maximum(h, h.mean(-1, keepdim=True))
    regression(run, between)


def reduced_types(run):
    """Sums and means that are asked for in 16 bits."""
    low = run.dtype(BF16)

    def between(h):
        wide = h.float()
        centred = wide - wide.mean(-1, keepdim=True, dtype=low).float()
        return (torch.tanh(centred) + 0.1 * wide.cumsum(-1, dtype=low).float()).to(h.dtype)
    regression(run, between)


def scalar_parameter(run):
    """One number is learned too; between tensors without dimensions Python's numbers take part in the rounding."""
    def loss_from(model, x, y):
        gain = model.gain * 1.7 - 0.37
        return F.mse_loss(model(x) * gain, y) * 0.3 / 0.7 + 0.01 * (gain / 3).square()
    regression(run, torch.tanh, loss_from, gain=1.0)


def random_slopes(run):
    """rrelu draws a slope for each negative element: how many numbers it takes depends on the values."""
    def between(h):
        torch.manual_seed(run.seed + len(run.losses))  # so that no step depends on how many the last one took
        return F.rrelu(h, training=True)
    regression(run, between)


def resized_output(run):
    """Results land in buffers that grow on demand."""
    scratch = torch.empty(0)

    def loss_from(model, x, y):
        with torch.no_grad():
            low = x.to(run.dtype(BF16)).float()
            torch.mm(low, model.first.weight.t(), out=scratch.resize_(0))
            weight = scratch.abs().mean()
        return F.mse_loss(model(x), y) * weight
    regression(run, torch.tanh, loss_from)


CASES = {
    "cnn": convolution,
    "cnn-channels-last": lambda run: convolution(run, torch.channels_last),
    "lstm": lambda run: recurrent(run, nn.LSTM),
    "gru": lambda run: recurrent(run, nn.GRU),
    "nn-transformer": lambda run: text_loop(run, Transformer(run.vocabulary), autocast=True),
    "custom-function": lambda run: regression(run, SquaredRelu.apply),
    "double-backward": double_backward,
    "vmap-grad": sample_gradients,
    "jvp": forward_mode,
    "hessian": second_order,
    "sort-topk-max": ordered,
    "where": comparisons,
    "reduced-types": reduced_types,
    "rrelu": random_slopes,
    "scalar-parameter": scalar_parameter,
    "out-resize": resized_output,
}
