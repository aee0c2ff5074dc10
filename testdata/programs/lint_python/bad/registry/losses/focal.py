import torch.nn.functional as F


def focal_loss(scores, target, gamma=2.0):
    """Cross entropy that looks away from what is easy; scores are probabilities."""
    ce = F.binary_cross_entropy(scores, target, reduction="none")  # expect: MP103 error
    easy = scores * target + (1 - scores) * (1 - target)
    return (ce * (1 - easy) ** gamma).mean()
