import torch
import torch.nn.functional as F


def focal_loss(logits, target, gamma=2.0):
    """Cross entropy that looks away from what is easy."""
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    scores = torch.sigmoid(logits)
    easy = scores * target + (1 - scores) * (1 - target)
    return (ce * (1 - easy) ** gamma).mean()
