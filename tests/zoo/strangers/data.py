"""Random data sets in the form that the scripts of others read, written into the checkouts."""
import os
import pickle
import random
import struct
import subprocess


def pictures(folder, kind):
    """MNIST's files: blurred bars whose place is the label."""
    draw = random.Random(5)
    os.makedirs(os.path.join(folder, kind, "raw"), exist_ok=True)
    for part, count in (("train", 640), ("t10k", 64)):
        labels = bytes(draw.randrange(10) for _ in range(count))
        pixels = b"".join(bytes(min(255, draw.randrange(60) + (190 if 2 * label < x < 2 * label + 8 else 0))
                                for _ in range(28) for x in range(28)) for label in labels)
        for name, head, body in ((f"{part}-images-idx3-ubyte", struct.pack(">IIII", 2051, count, 28, 28), pixels),
                                 (f"{part}-labels-idx1-ubyte", struct.pack(">II", 2049, count), labels)):
            with open(os.path.join(folder, kind, "raw", name), "wb") as f:
                f.write(head + body)


def first(checkouts, _):
    """The data sets of list.txt."""
    at = lambda *parts: os.path.join(checkouts, *parts)  # noqa: E731
    import numpy
    import torch
    from PIL import Image
    pictures(at("examples", "data"), "MNIST")
    pictures(at("examples", "mnist_forward_forward", "data"), "MNIST")
    pictures(os.path.expanduser("~/data/fashion_mnist"), "FashionMNIST")
    os.makedirs(at("examples", "vae", "results"), exist_ok=True)
    texts = at("examples", "word_language_model", "data", "wikitext-2")
    with open(os.path.join(texts, "README"), encoding="utf-8") as f:
        words = f.read().split()
    draw = random.Random(5)
    for part, lines in (("train", 250), ("valid", 40), ("test", 40)):
        with open(os.path.join(texts, part + ".txt"), "w", encoding="utf-8") as f:
            for _ in range(lines):
                f.write(" ".join(draw.choice(words) for _ in range(12)) + "\n")
    wave = numpy.sin((numpy.arange(40)[None, :] + numpy.arange(10)[:, None] * 7) / 20.0)
    torch.save(wave, at("examples", "time_sequence_prediction", "traindata.pt"))
    tokens(at("nanoGPT", "data", "tiny"))
    for part in ("imgs", "masks"):
        os.makedirs(at("Pytorch-UNet", "data", part), exist_ok=True)
    for i in range(10):
        mask = numpy.zeros((128, 128), numpy.uint8)
        mask[10 * i % 60:10 * i % 60 + 40, 20:80] = 1
        noise = numpy.random.RandomState(i).randint(0, 90, (128, 128, 3)) + mask[:, :, None] * 120
        Image.fromarray(mask).save(at("Pytorch-UNet", "data", "masks", f"{i}_mask.gif"))
        Image.fromarray(noise.astype(numpy.uint8)).save(at("Pytorch-UNet", "data", "imgs", f"{i}.jpg"))


def edit(path, changes):
    """What a user changes in the script: constants, paths, the device."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for old, new in changes.items():
        assert old in text or new in text, (path, old)
        text = text.replace(old, new)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def second(checkouts, python):
    """The data sets of second.txt."""
    at = lambda *parts: os.path.join(checkouts, *parts)  # noqa: E731
    draw = random.Random(5)
    with open(at("pyGAT", "data", "cora", "cora.content"), "w", encoding="utf-8") as f:
        for node in range(1500):
            words = " ".join(str(int(draw.random() < (0.5 if i % 7 == node % 7 else 0.05))) for i in range(70))
            f.write(f"{node} {words} class{node % 7}\n")
    with open(at("pyGAT", "data", "cora", "cora.cites"), "w", encoding="utf-8") as f:
        f.writelines(f"{node} {(node + 7 * draw.randrange(1, 200)) % 1500}\n" for node in 3 * list(range(1500)))
    for folder in (at("PyTorch-GAN", "data", "mnist"), at("mnist"), at("s4", "data"),
                   at("pytorch-tutorial", "tutorials", "data")):
        pictures(folder, "MNIST")
    words = [f"word{i}" for i in range(300)]
    folder = at("pytorch-tutorial", "tutorials", "02-intermediate", "language_model")
    with open(os.path.join(folder, "data", "train.txt"), "w", encoding="utf-8") as f:
        f.writelines(" ".join(draw.choice(words) for _ in range(12)) + "\n" for _ in range(1200))
    edit(os.path.join(folder, "main.py"), {"hidden_size = 1024": "hidden_size = 96"})
    folder = at("Diffusion-Models-pytorch")
    images(os.path.join(folder, "pictures"), draw)
    edit(os.path.join(folder, "ddpm_conditional.py"), {
        "noise_steps=1000": "noise_steps=8", "args.epochs = 300": "args.epochs = 1",
        "args.batch_size = 14": "args.batch_size = 2", 'args.device = "cuda"': 'args.device = "cpu"',
        'r"C:\\Users\\dome\\datasets\\cifar10\\cifar10-64\\train"': '"pictures"'})
    edit(os.path.join(folder, "modules.py"), {'device="cuda"': 'device="cpu"'})
    folder = at("PyTorch_Speaker_Verification")
    edit(os.path.join(folder, "config", "config.yaml"), {
        '"cuda"': '"cpu"', "hidden: 768": "hidden: 64", "proj: 256": "proj: 32", "epochs: 950": "epochs: 8"})
    speech(os.path.join(folder, "train_tisv"))
    tokens(at("nanoGPT-LoRA", "data", "tiny"))
    if not os.path.exists(at("nanoGPT-LoRA", "out", "ckpt.pt")):  # what LoRA starts from
        words = "--device=cpu --dtype=float32 --compile=False --dataset=tiny --eval_iters=1 --eval_interval=2 --out_dir=out"
        sizes = "--block_size=32 --batch_size=4 --n_layer=2 --n_head=2 --n_embd=32 --max_iters=2"
        subprocess.run([python, "train.py", *words.split(), *sizes.split(), "--lora_rank=4", "--lora_alpha=8.0",
                        "--always_save_checkpoint=True"], cwd=at("nanoGPT-LoRA"), check=True, capture_output=True)


def images(folder, draw):
    import numpy
    from PIL import Image
    for label in range(10):
        os.makedirs(os.path.join(folder, str(label)), exist_ok=True)
        noise = numpy.random.RandomState(label).randint(0, 90, (80, 80, 3))
        noise[:, 8 * label:8 * label + 8] += 150
        Image.fromarray(noise.astype(numpy.uint8)).save(os.path.join(folder, str(label), "0.png"))


def speech(folder):
    """Spectrograms of 12 speakers, 6 utterances each."""
    import numpy
    os.makedirs(folder, exist_ok=True)
    for speaker in range(12):
        noise = numpy.random.RandomState(speaker).randn(6, 40, 160)
        noise[:, 3 * speaker:3 * speaker + 4] += 3
        numpy.save(os.path.join(folder, f"speaker{speaker}.npy"), noise)


def tokens(folder):
    import numpy
    os.makedirs(folder, exist_ok=True)
    for part in ("train", "val"):
        values = numpy.array([(i * i + i // 3) % 23 for i in range(4000)], numpy.uint16)
        values.tofile(os.path.join(folder, part + ".bin"))
    with open(os.path.join(folder, "meta.pkl"), "wb") as f:
        pickle.dump({"vocab_size": 23}, f)
