import torch


def unit_vectors(x: torch.Tensor) -> torch.Tensor:
    half = x.half()
    length = half.abs().amax(dim=-1, keepdim=True)
    return half / (length + 1e-8)  # defect P6: MP302
