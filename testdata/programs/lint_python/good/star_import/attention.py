import math

from common import *


def attend(q, k, v, mask):
    q, k = q.to(HALF), k.to(HALF)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(mask, MASKED)
    return scores.softmax(-1) @ v.to(HALF)
