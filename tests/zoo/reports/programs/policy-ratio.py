"""Old log-probabilities from bf16 logits, new ones from fp32. https://github.com/InternLM/xtuner/pull/1108"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(16, 64), nn.Linear(64, 128)

    def forward(self, state):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.head(F.gelu(self.body(state)))


class Surrogate(nn.Module):
    """The clipped objective; a ratio of 1 where no update lies between the old policy and the new one."""

    def __init__(self):
        super().__init__()
        self.ratio = None

    def forward(self, new, old, advantage):
        self.ratio = (new - old).exp()
        return -torch.minimum(self.ratio * advantage, self.ratio.clamp(0.8, 1.2) * advantage).mean()


def chosen(logits, action):
    return F.log_softmax(logits, -1).gather(1, action[:, None])[:, 0]


run = Training()
policy, surrogate = Policy(), Surrogate()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
apart = 0.0
for _ in range(run.steps):
    state, action, advantage = run.normal(256, 16), run.integers(128, 256), run.normal(256)
    with torch.no_grad():
        logits = policy(state)
        old = chosen(logits.float() if run.fixed else logits, action)
    run.update(surrogate(chosen(policy(state).float(), action), old.float(), advantage), optimizer)
    apart = max(apart, (surrogate.ratio.detach() - 1).abs().max().item())
print(f"ratio off by {apart:.4g}")
run.end(apart > 1e-3, policy.parameters())
