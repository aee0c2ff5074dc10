from precision import Precision


def mask_scores(scores, keep):
    scores = scores.to(Precision.HALF.value)
    return scores.masked_fill(~keep, -1e4).softmax(-1)
