"""Random data sets in the form that the scripts of others read, written into the checkouts."""
import gzip
import json
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
    sentences(at("examples", "word_language_model", "data", "wikitext-2"))
    wave = numpy.sin((numpy.arange(40)[None, :] + numpy.arange(10)[:, None] * 7) / 20.0)
    torch.save(wave, at("examples", "time_sequence_prediction", "traindata.pt"))
    tokens(at("nanoGPT", "data", "tiny"))
    masks(at("Pytorch-UNet", "data"))


def sentences(folder):
    """Words of the README in an order by chance."""
    with open(os.path.join(folder, "README"), encoding="utf-8") as f:
        words = f.read().split()
    draw = random.Random(5)
    for part, lines in (("train", 250), ("valid", 40), ("test", 40)):
        with open(os.path.join(folder, part + ".txt"), "w", encoding="utf-8") as f:
            for _ in range(lines):
                f.write(" ".join(draw.choice(words) for _ in range(12)) + "\n")


def masks(folder):
    """Pictures with a bright rectangle, and where it is."""
    import numpy
    from PIL import Image
    for part in ("imgs", "masks"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    for i in range(10):
        mask = numpy.zeros((128, 128), numpy.uint8)
        mask[10 * i % 60:10 * i % 60 + 40, 20:80] = 1
        noise = numpy.random.RandomState(i).randint(0, 90, (128, 128, 3)) + mask[:, :, None] * 120
        Image.fromarray(mask).save(os.path.join(folder, "masks", f"{i}_mask.gif"))
        Image.fromarray(noise.astype(numpy.uint8)).save(os.path.join(folder, "imgs", f"{i}.jpg"))


def edit(path, changes):
    """What a user changes in the script: constants, paths, the device."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for old, new in changes.items():
        assert old in text or new in text, (path, old)
        if old not in new or new not in text:  # else it was made before
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
    images(os.path.join(folder, "pictures"))
    edit(os.path.join(folder, "ddpm_conditional.py"), {
        "noise_steps=1000": "noise_steps=8", "args.epochs = 300": "args.epochs = 1",
        "args.batch_size = 14": "args.batch_size = 2", 'args.device = "cuda"': 'args.device = "cpu"',
        'r"C:\\Users\\dome\\datasets\\cifar10\\cifar10-64\\train"': '"pictures"'})
    edit(os.path.join(folder, "modules.py"), {'device="cuda"': 'device="cpu"'})
    folder = at("PyTorch_Speaker_Verification")
    edit(os.path.join(folder, "config", "config.yaml"), {
        '"cuda"': '"cpu"', "hidden: 768": "hidden: 64", "proj: 256": "proj: 32", "epochs: 950": "epochs: 8"})
    edit(os.path.join(folder, "hparam.py"), {"load_all(stream)": "load_all(stream, Loader=yaml.FullLoader)"})
    speech(os.path.join(folder, "train_tisv"))
    tokens(at("nanoGPT-LoRA", "data", "tiny"))
    edit(at("nanoGPT-LoRA", "train.py"), {  # its LoRA starts from weights without LoRA, and from a new optimizer
        "model.load_state_dict(state_dict)": "model.load_state_dict(state_dict, strict=False)",
        "    optimizer.load_state_dict(checkpoint['optimizer'])": "    pass"})
    if not os.path.exists(at("nanoGPT-LoRA", "out", "ckpt.pt")):  # what LoRA starts from
        words = "--device=cpu --dtype=float32 --compile=False --dataset=tiny --out_dir=out"
        words += " --eval_iters=1 --eval_interval=2"
        sizes = "--block_size=32 --batch_size=4 --n_layer=2 --n_head=2 --n_embd=32 --max_iters=2"
        subprocess.run([python, "train.py", *words.split(), *sizes.split(), "--lora_rank=4", "--lora_alpha=8.0",
                        "--always_save_checkpoint=True"], cwd=at("nanoGPT-LoRA"), check=True, capture_output=True)


def third(checkouts, _):
    """The data sets of third.txt, and the small models and settings that a user would give."""
    at = lambda *parts: os.path.join(checkouts, *parts)  # noqa: E731
    draw = random.Random(5)
    for part in range(2):
        stories(at("llama2.c", "data", "tok64"), part)
    for part in ("train", "validation"):
        images(at("pytorch-image-models", "pictures", part), 12)
    for folder in (at("diffusers", "examples", "unconditional_image_generation", "pictures"),
                   at("improved-diffusion", "pictures"), at("open_clip", "src", "pictures"),
                   at("accelerate", "examples", "pictures"), at("denoising-diffusion-pytorch", "pictures")):
        images(folder, 12)
    pets(at("accelerate", "examples", "pictures"))
    edit(at("accelerate", "examples", "cv_example.py"), {
        'create_model("resnet50d", pretrained=True': 'create_model("resnet18d", pretrained=False',
        '"batch_size": 64, "image_size": 224': '"batch_size": 8, "image_size": 64', "num_workers=4": "num_workers=0"})
    folder = at("diffusers", "examples", "unconditional_image_generation")
    write(os.path.join(folder, "tiny", "config.json"), json.dumps({
        "_class_name": "UNet2DModel", "sample_size": 32, "in_channels": 3, "out_channels": 3, "layers_per_block": 1,
        "block_out_channels": [16, 32], "norm_num_groups": 8, "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
        "up_block_types": ["AttnUpBlock2D", "UpBlock2D"]}))
    pictures(at("lightning-hydra-template", "data"), "MNIST")
    edit(at("lightning-hydra-template", "configs", "data", "mnist.yaml"), {"[55_000, 5_000, 10_000]": "[640, 32, 32]"})
    edit(at("improved-diffusion", "improved_diffusion", "train_util.py"), {
        "INITIAL_LOG_LOSS_SCALE = 20.0": "INITIAL_LOG_LOSS_SCALE = 10.0"})
    with gzip.open(at("x-transformers", "data", "enwik8.gz"), "wb") as f:
        f.write(bytes((i * i + i // 3) % 23 + 97 for i in range(20000)))
    edit(at("x-transformers", "train_enwik8.py"), {"int(90e6)": "int(18e3)", "dim = 512": "dim = 64",
                                                   "depth = 6": "depth = 2"})
    edit(at("pytorch-cifar", "main.py"), {"\nnet = SimpleDLA()": "\nnet = ShuffleNetV2(0.5)",
                                          "batch_size=128": "batch_size=32", "num_workers=2": "num_workers=0"})
    edit(at("pytorch-cifar", "utils.py"), {"os.popen('stty size', 'r').read().split()": "24, 80"})
    folder = at("open_clip", "src")
    write(os.path.join(folder, "open_clip", "model_configs", "tiny.json"), json.dumps({
        "embed_dim": 32, "vision_cfg": {"image_size": 64, "layers": 2, "width": 64, "patch_size": 16, "head_width": 16},
        "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}}))
    write(os.path.join(folder, "pictures.csv"), "filepath\ttitle\n" + "".join(
        f"pictures/{label}/{i}.png\ta picture of {label} and {i}\n" for label in range(10) for i in range(12)))
    tiny_llama(at("stanford_alpaca", "tiny"))
    write(at("stanford_alpaca", "data.json"), json.dumps([
        {"instruction": sentence(draw, 6), "input": "", "output": sentence(draw, 8)} for _ in range(64)]))
    edit(at("stanford_alpaca", "train.py"), {"tokenizer=tokenizer, args=": "processing_class=tokenizer, args="})
    edit(at("lightly", "examples", "pytorch_lightning", "byol.py"), {
        "batch_size=256": "batch_size=32", "num_workers=8": "num_workers=0",
        "pl.Trainer(max_epochs=10,": 'pl.Trainer(precision=__import__("sys").argv[1], max_epochs=10,'})
    from_readme(at("denoising-diffusion-pytorch"))
    table(at("Time-Series-Library", "data"), draw)


def fourth(checkouts, python):
    """The data sets of fourth.txt, and the small models and settings that a user would give."""
    at = lambda *parts: os.path.join(checkouts, *parts)  # noqa: E731
    draw = random.Random(5)
    write(at("minimind", "dataset", "tiny.jsonl"), "".join(
        json.dumps({"text": sentence(draw, 12)}) + "\n" for _ in range(96)))
    airbench(at("cifar10-airbench", "legacy"))
    folder = at("VQGAN-pytorch")
    images(os.path.join(folder, "all"), 4)
    pets_of(os.path.join(folder, "all"), os.path.join(folder, "pictures"), 4)
    edit(os.path.join(folder, "training_vqgan.py"), {
        'r"C:\\Users\\dome\\datasets\\flowers"': '"pictures"', "λ": "weight_of_gan", "i % 10 == 0": "i % 100 == 99"})
    edit(os.path.join(folder, "vqgan.py"), {"λ": "weight_of_gan"})
    edit(os.path.join(folder, "lpips.py"), {"pretrained=True": "pretrained=False",
                                            "        self.load_from_pretrained()\n": ""})
    edit(os.path.join(folder, "encoder.py"), {"[128, 128, 128, 256, 256, 512]": "[16, 16, 32, 32]",
                                              "resolution = 256": "resolution = 64"})
    edit(os.path.join(folder, "decoder.py"), {"[512, 256, 256, 128, 128]": "[32, 16, 16]"})
    edit(os.path.join(folder, "helper.py"), {"num_groups=32": "num_groups=8"})
    edit(os.path.join(folder, "utils.py"), {  # Pillow does the same
        "import albumentations\n": "", "size=256": "size=32", "        self.rescaler = ": "        # ",
        "        self.cropper = ": "        # ", "        self.preprocessor = ": "        # ",
        "        image = np.array(image)": "        image = np.array(image.resize((self.size, self.size)))",
        '        image = self.preprocessor(image=image)["image"]\n': ""})
    images(at("dino", "pictures"), 4)
    edit(at("dino", "utils.py"), {  # a CPU in the place of a GPU
        "elif torch.cuda.is_available():": "else:", '"nccl"': '"gloo"',
        "    else:\n        print('Does not support training without GPU.')\n        sys.exit(1)\n": "",
        "    torch.cuda.set_device(args.gpu)\n": "    torch.cuda.synchronize = lambda: None\n"})
    edit(at("dino", "vision_transformer.py"), {"embed_dim=192, depth=12": "embed_dim=96, depth=3"})
    edit(at("dino", "main_dino.py"), {
        "torch.cuda.amp.autocast(fp16_scaler is not None)":
            'torch.autocast("cpu", torch.bfloat16, enabled=args.use_fp16)',
        'torch.hub.list("facebookresearch/xcit:main")': "[]",
        "fp16_scaler = torch.cuda.amp.GradScaler()": "fp16_scaler = None", ", device_ids=[args.gpu]": "",
        "RandomResizedCrop(224": "RandomResizedCrop(64", "RandomResizedCrop(96": "RandomResizedCrop(32"})
    pictures(at("schedule_free", "examples", "data"), "MNIST")
    words(at("crnn-pytorch", "src"), draw)
    edit(at("crnn-pytorch", "src", "config.py"), {
        "data/mnt/ramdisk/max/90kDICT32px/": "words/", "'cpu_workers': 4": "'cpu_workers': 0",
        "'train_batch_size': 32": "'train_batch_size': 8", "'rnn_hidden': 256": "'rnn_hidden': 32",
        "'img_width': 100": "'img_width': 64"})
    edit(at("crnn-pytorch", "src", "model.py"), {
        "64, 128, 256, 256, 512, 512, 512]": "8, 16, 32, 32, 64, 64, 64]"})
    edit(at("crnn-pytorch", "src", "train.py"), {  # as torch's documentation of GradScaler has it
        "    logits = crnn(images)\n": "    with torch.autocast('cpu', torch.float16, enabled=scaler.is_enabled()):\n"
                                       "        logits = crnn(images).float()\n",
        "    loss.backward()\n": "    scaler.scale(loss).backward()\n    scaler.unscale_(optimizer)\n",
        "    optimizer.step()\n": "    scaler.step(optimizer)\n    scaler.update()\n",
        "def main():\n": "import sys\nscaler = torch.amp.GradScaler('cpu', init_scale=256.0,\n"
                         "                              enabled=sys.argv[1] == 'fp16')\n\n\ndef main():\n"})
    views(at("nerf-pytorch", "views"))
    edit(at("nerf-pytorch", "run_nerf.py"), {
        "    torch.set_default_tensor_type('torch.cuda.FloatTensor')\n": "", "chunk=1024*32": "chunk=1024"})
    nanochat(at("nanochat"), python, draw)


def small_cifar(folder):
    """CIFAR-10 as the tensors that airbench keeps."""
    import torch
    torch.manual_seed(1)
    for part, count in (("train", 640), ("test", 64)):
        labels = torch.arange(count) % 10
        noise = torch.randint(0, 90, (count, 32, 32, 3))
        for i, picture in enumerate(noise):
            picture[:, 3 * (i % 10):3 * (i % 10) + 5] += 150
        os.makedirs(os.path.join(folder, "cifar10"), exist_ok=True)
        torch.save({"images": noise.to(torch.uint8), "labels": labels, "classes": list("0123456789")},
                   os.path.join(folder, "cifar10", part + ".pt"))


def airbench(folder):
    """The sizes and the dtype by hand."""
    small_cifar(folder)
    edit(os.path.join(folder, "airbench94.py"), {
        "import torchvision\n": "import torchvision\nfrom types import SimpleNamespace\n"
                                "clock = SimpleNamespace(record=lambda: None, elapsed_time=lambda _: 0.0)\n"
                                "low = getattr(torch, sys.argv[1])\n",
        ".half()": ".to(low)", "gpu=0": "gpu='cpu'", "torch.cuda.Event(enable_timing=True)": "clock",
        "torch.cuda.synchronize()": "pass", "'batch_size': 1024": "'batch_size': 64",
        "'block1': 64": "'block1': 16", "'block2': 256": "'block2': 32", "'block3': 256": "'block3': 32",
        "(torch.half, torch.float)": "(low, torch.float)", "'train_epochs': 9.9": "'train_epochs': 1.2",
        "for run in range(25)": "for run in range(1)"})


def pets_of(folder, out, count):
    """The pictures of all labels in one folder, without labels."""
    from PIL import Image
    os.makedirs(out, exist_ok=True)
    for label in range(10):
        for i in range(count):
            Image.open(os.path.join(folder, str(label), f"{i}.png")).save(os.path.join(out, f"{label}_{i}.png"))


def words(folder, draw):
    """Pictures of words: a bar for each letter, whose height is the letter."""
    import numpy
    from PIL import Image
    os.makedirs(os.path.join(folder, "words"), exist_ok=True)
    lines = {part: [] for part in ("train", "val")}
    listed = ["".join(draw.choice("abcdefgh") for _ in range(draw.randrange(3, 7))) for _ in range(120)]
    for i, word in enumerate(listed):
        picture = numpy.random.RandomState(i).randint(0, 60, (32, 64)).astype(numpy.uint8)
        for k, letter in enumerate(word):
            picture[:4 * (ord(letter) - 96), 10 * k:10 * k + 7] += 150
        Image.fromarray(picture).save(os.path.join(folder, "words", f"{i}.png"))
        lines["train" if i < 100 else "val"].append(f"{i}.png {i}\n")
    write(os.path.join(folder, "words", "lexicon.txt"), "\n".join(listed) + "\n")
    for part, listed in lines.items():
        write(os.path.join(folder, "words", f"annotation_{part}.txt"), "".join(listed))


def views(folder):
    """Pictures of a ball from a circle around it, with the cameras' places, as Blender's."""
    import math
    import numpy
    from PIL import Image
    os.makedirs(folder, exist_ok=True)
    for part, count in (("train", 8), ("val", 1), ("test", 1)):
        frames = []
        for i in range(count):
            turn = 2 * math.pi * i / 8
            c, s = math.cos(turn), math.sin(turn)
            y, x = numpy.mgrid[0:16, 0:16]
            inside = (x - 8) ** 2 + (y - 8) ** 2 < 25
            shade = (128 + 100 * numpy.sin(x / 3 + turn)).astype(numpy.uint8)
            picture = numpy.stack([shade, shade // 2, 200 - shade // 2, numpy.full_like(shade, 255)], -1)
            Image.fromarray((picture * inside[:, :, None]).astype(numpy.uint8)).save(
                os.path.join(folder, f"{part}{i}.png"))
            frames.append({"file_path": f"{part}{i}", "transform_matrix": [
                [c, 0, s, 4 * s], [0, 1, 0, 0], [-s, 0, c, 4 * c], [0, 0, 0, 1]]})
        write(os.path.join(folder, f"transforms_{part}.json"), json.dumps({"camera_angle_x": 0.7, "frames": frames}))


def nanochat(folder, python, draw):
    """Texts in parquet files and its tokenizer of 512 words, without torch.compile."""
    import pyarrow
    import pyarrow.parquet
    base = os.path.join(folder, "base")
    os.makedirs(os.path.join(base, "base_data_climbmix"), exist_ok=True)
    for part in range(2):
        pyarrow.parquet.write_table(pyarrow.table({"text": [sentence(draw, 30) for _ in range(400)]}),
                                    os.path.join(base, "base_data_climbmix", f"shard_{part:05d}.parquet"))
    for path, old in (("nanochat/optim.py", "@torch.compile(dynamic=False, fullgraph=True)\n"),
                      ("scripts/base_train.py", "model = torch.compile(model, dynamic=False)")):
        edit(os.path.join(folder, path), {old: ""})
    edit(os.path.join(folder, "nanochat", "common.py"), {  # instead of the environment
        'os.environ.get("NANOCHAT_BASE_DIR")': 'os.path.join(os.path.dirname(__file__), "..", "base")',
        'os.environ.get("NANOCHAT_DTYPE")': 'os.environ.get("NANOCHAT_DTYPE", sys.argv.pop(1) if '
                                            'sys.argv[1:2] in (["bfloat16"], ["float32"]) else None)',
        "import os\n": "import os\nimport sys\n"})
    if not os.path.exists(os.path.join(base, "tokenizer", "token_bytes.pt")):
        subprocess.run([python, "-m", "scripts.tok_train", "--vocab-size=512", "--max-chars=20000"], cwd=folder,
                       check=True, capture_output=True)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def stories(folder, part):
    """Tokens of an alphabet of 64; the first part is for the evaluation."""
    import numpy
    os.makedirs(folder, exist_ok=True)
    numpy.array([(i * i + i // 3 + part) % 61 for i in range(9000)], numpy.uint16).tofile(
        os.path.join(folder, f"data{part}.bin"))


def pets(folder):
    """Pictures in one folder, whose names begin with their label."""
    from PIL import Image
    for label in range(10):
        for i in range(12):
            Image.open(os.path.join(folder, str(label), f"{i}.png")).save(os.path.join(folder, f"pet{label}_{i}.jpg"))


def sentence(draw, length):
    return " ".join(f"word{draw.randrange(200)}" for _ in range(length))


def tiny_llama(folder):
    """A Llama of two layers and a tokenizer of words, as from_pretrained reads them."""
    import tokenizers
    import torch
    import transformers
    words = {word: i for i, word in enumerate(["<unk>", "<s>", "</s>"] + [f"word{i}" for i in range(200)])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", bos_token="<s>",
                                         eos_token="</s>").save_pretrained(folder)
    torch.manual_seed(1)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128)).save_pretrained(folder)


def from_readme(folder):
    """The training of the README as a script, smaller."""
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as f:
        code = f.read().split("you can use the `Trainer` class")[1].split("```python")[1].split("```")[0]
    write(os.path.join(folder, "train.py"), "import sys\n" + code)
    edit(os.path.join(folder, "train.py"), {
        "dim = 64": "dim = 16", "(1, 2, 4, 8)": "(1, 2)", "image_size = 128": "image_size = 32",
        "path/to/your/images": "pictures", "train_batch_size = 32": "train_batch_size = 8",
        "amp = True": "amp = sys.argv[1] == \"amp\", mixed_precision_type = \"bf16\"",
        "calculate_fid = True": "calculate_fid = False"})


def table(folder, draw):
    """Seven noisy waves, an hour a row."""
    import datetime
    import math
    start = datetime.datetime(2020, 1, 1)
    rows = [",".join([str(start + datetime.timedelta(hours=i)), *(
        f"{math.sin(i / (3 + k)) + draw.random() / 5:.4f}" for k in range(7))]) for i in range(900)]
    write(os.path.join(folder, "waves.csv"), "\n".join(["date,a,b,c,d,e,f,OT", *rows]) + "\n")


def images(folder, count=1):
    """So many pictures of each of 10 labels, in a folder of its name."""
    import numpy
    from PIL import Image
    for label in range(10):
        os.makedirs(os.path.join(folder, str(label)), exist_ok=True)
        for i in range(count):
            noise = numpy.random.RandomState(10 * i + label).randint(0, 90, (80, 80, 3))
            noise[:, 8 * label:8 * label + 8] += 150
            Image.fromarray(noise.astype(numpy.uint8)).save(os.path.join(folder, str(label), f"{i}.png"))


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
