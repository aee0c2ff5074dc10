"""Losses by the names that configurations give them."""
from .focal import focal_loss

LOSSES = {}


def register_loss(name, loss):
    if name in LOSSES:
        raise ValueError(f"there is a loss {name} already")
    LOSSES[name] = loss
    return loss


register_loss("focal", focal_loss)
