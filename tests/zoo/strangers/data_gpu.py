"""Random data sets of gpu.txt, written into the checkouts, and what a user changes in the scripts."""
import os

import data
import data_sixth


def gpu(checkouts, _):
    """The data sets of gpu.txt. Kernels are not chosen by time, which may differ from run to run."""
    at = lambda *parts: os.path.join(checkouts, *parts)  # noqa: E731
    chosen = {"cudnn.benchmark = True": "cudnn.benchmark = False"}
    data.tokens(at("nanoGPT", "data", "tiny"))
    data.tokens(at("nanoGPT-tencentspark", "data", "tiny"))
    data.masks(at("Pytorch-UNet", "data"))
    data.sentences(at("examples", "word_language_model", "data", "wikitext-2"))
    data.pictures(at("examples", "data"), "MNIST")
    os.makedirs(at("examples", "vae", "results"), exist_ok=True)
    data.edit(at("pytorch-cifar", "main.py"), {**chosen, "\nnet = SimpleDLA()": "\nnet = ResNet18()",
                                               "num_workers=2": "num_workers=0"})
    data.edit(at("pytorch-cifar", "utils.py"), {"os.popen('stty size', 'r').read().split()": "24, 80"})
    for part in range(2):
        data.stories(at("llama2.c", "data", "tok64"), part)
    folder = at("cifar10-airbench", "legacy")
    data.small_cifar(folder)
    data.edit(os.path.join(folder, "airbench94.py"), {
        **chosen, "import torchvision\n": "import torchvision\nlow = getattr(torch, sys.argv[1])\n",
        ".half()": ".to(low)", "(torch.half, torch.float)": "(low, torch.float)",
        "'batch_size': 1024": "'batch_size': 64", "for run in range(25)": "for run in range(1)"})
    data_sixth.pairs(at("RAFT-Stereo"))
    data.edit(at("RAFT-Stereo", "core", "stereo_datasets.py"), {
        "num_workers=int(os.environ.get('SLURM_CPUS_PER_TASK', 6))-2": "num_workers=0"})
