"""Trains an image classifier of timm or torchvision on random images: vision.py timm.NAME | torchvision.NAME."""
import torch

import recipe

SIZE = 64


def make(library, name):
    if library == "torchvision":
        import torchvision
        return torchvision.models.get_model(name, weights=None, num_classes=10)
    import timm
    try:
        return timm.create_model(name, num_classes=10, img_size=SIZE)
    except TypeError:  # a model that takes any size
        return timm.create_model(name, num_classes=10)


def main():
    run = recipe.parse()
    library, name = run.name.split(".", 1)
    criterion = torch.nn.CrossEntropyLoss()

    def loss_of(model):
        return criterion(model(run.rand(4, 3, SIZE, SIZE)), run.integers(0, 10, 4))

    recipe.train(run, make(library, name), loss_of)


main()
