"""Stands in for what the programs of others expect and the machine lacks: data sets, a GPU, plots, other libraries."""
import importlib.machinery
import importlib.util
import sys
import types
import unittest.mock

import torch


def module(name, **members):
    made = sys.modules.setdefault(name, types.ModuleType(name))
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)  # others ask whether it is there
    for key, value in members.items():
        setattr(made, key, value)
    return made


class RandomImages(torch.utils.data.Dataset):
    """In place of MNIST and FashionMNIST, whose files are not in the checkout: ten batches of 64."""

    SHAPE = (1, 28, 28)

    def __init__(self, *_, **__):
        generator = torch.Generator().manual_seed(1)
        self.images = torch.rand(640, *self.SHAPE, generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i % len(self.images)], i % 10


class RandomPictures(RandomImages):
    """In place of CIFAR10: pictures that the program's transform gets, each brighter where its label says."""

    SHAPE = (3, 32, 32)

    def __init__(self, *_, transform=None, **__):
        super().__init__()
        self.transform = transform
        for i, image in enumerate(self.images):
            image[:, 3 * (i % 10):3 * (i % 10) + 5] += 1

    def __getitem__(self, i):
        import torchvision
        picture = torchvision.transforms.functional.to_pil_image(self.images[i] / 2)
        return self.transform(picture) if self.transform else picture, i % 10


class OneRank:
    """In place of MPI's world of all ranks."""

    rank, size = 0, 1
    Get_rank, Get_size, bcast = (staticmethod(f) for f in (lambda: 0, lambda: 1, lambda value, root=0: value))


def everything():
    """For scripts of others that were written for a machine with a GPU."""
    if not torch.cuda.is_available():
        torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_, **__: self
    if importlib.util.find_spec("librosa") is None:
        module("librosa")
    if importlib.util.find_spec("wandb") is None:
        module("wandb", **{name: unittest.mock.MagicMock() for name in ("init", "log", "finish", "run", "Image",
                                                                        "Histogram")})
    if importlib.util.find_spec("mpi4py") is None:
        module("mpi4py", MPI=types.SimpleNamespace(COMM_WORLD=OneRank))
    if importlib.util.find_spec("gymnasium") is not None:
        import gymnasium
        sys.modules["gym"] = gymnasium
        plain_make = gymnasium.make

        def make(*args, **kwargs):
            world = plain_make(*args, **kwargs)
            world.reset(seed=1)  # else each run has another start
            return world
        gymnasium.make = make
    if importlib.util.find_spec("torchvision") is not None:
        import torchvision
        torchvision.datasets.CIFAR10 = RandomPictures
