"""The data sets of sixth.txt, and the small models and settings that a user would give; used by data.py's way."""
import json
import os
import random
import subprocess

import data
import data_fifth


def sixth(checkouts, python):
    at = lambda *parts: os.path.join(checkouts, *parts)  # noqa: E731
    draw = random.Random(6)
    data.images(at("hiera_finetune", "pictures", "train"), 2)
    data.images(at("hiera_finetune", "pictures", "val"))
    data.edit(at("hiera_finetune", "train_mae.py"), {  # its setting of mixed precision from the command line
        "self.amp = False": "self.amp = __import__('sys').argv[1] == 'bf16'", "self.device = 'cuda'":
        "self.device = 'cpu'", "self.accumulate = 10": "self.accumulate = 2", "self.batch_size = 32":
        "self.batch_size = 2", "self.num_worker = 8": "self.num_worker = 0",
        "'/dev/shm/chaofeng/imagenet/root/train'": "'pictures/train'",
        "'/dev/shm/chaofeng/imagenet/root/test'": "'pictures/val'", "mae_hiera_base_224()": "mae_hiera_tiny_224()"})
    data.edit(at("hiera_finetune", "hiera", "hiera", "hiera.py"), {  # the newer timm has it elsewhere
        "from timm.models.layers import": "from timm.layers import"})
    coco(at("my-jepa"))
    fibroids(at("DARU-Net-Pytorch"))
    stereo(at("RAFT-Stereo"))
    slices(at("Embedded-ViT"))
    mixture(at("nanoGPT-tencentspark"))
    teacher(at("fashion-mnist"), python)
    stories(at("MAMBA2"), draw)
    digits(at("discrete_latents_for_text_to_image_gen"))
    latents(at("Diffusion-transformer"), python)
    faces(at("progan_experiments", "faces"))
    data.edit(at("progan_experiments", "train_progan.py"), {  # other pictures; smaller nets, of which one soon fades in
        "    dataset = CelebA(": "    dataset = lambda: CelebA(", "dataset2 = ImageDataset(":
        "dataset2 = lambda: ImageDataset(", "dataset3 = ImageDataset(": "dataset3 = lambda: ImageDataset(",
        '"/run/media/gerben/LinuxData/data/celeba/cropped_faces64"': '"faces"', 'device="cuda"': 'device="cpu"',
        "n_shifting_steps=10000": "n_shifting_steps=4", "n_static_steps=10000": "n_static_steps=1",
        "batch_size=16,\n          latent": "batch_size=4,\n          latent", "num_workers=4": "num_workers=0",
        "h_size=64": "h_size=8", "max_h_size=256": "max_h_size=32",
        "os.mkdir(output_path)": "os.makedirs(output_path, exist_ok=True)",
        "betas=(0, 0.99)": "betas=(0.0, 0.99)"})
    data.pictures(at("diffusion_mnist", "data"), "MNIST")
    data.edit(at("diffusion_mnist", "train_flow_matching.py"), {
        "num_workers=4": "num_workers=0", "batch_size = 64": "batch_size = 8", "download=True": "download=False"})
    data.edit(at("diffusion_mnist", "model.py"), {"(64, 128, 256, 512)": "(32, 32, 64)",
                                                  "(512, 256, 128, 64)": "(64, 32, 32)"})


def coco(folder):
    """Pictures of bright boxes, as COCO has them; its mixed precision on a CPU."""
    import numpy
    from PIL import Image
    for part, count in (("train", 48), ("val", 16)):
        os.makedirs(os.path.join(folder, "coco", "images", part + "2017"), exist_ok=True)
        listed, boxes = [], []
        for i in range(count):
            picture = numpy.random.RandomState(i).randint(0, 90, (80, 80, 3))
            picture[10:50, i:i + 20] += 140
            Image.fromarray(picture.astype(numpy.uint8)).save(
                os.path.join(folder, "coco", "images", part + "2017", f"{i}.jpg"))
            listed.append({"id": i, "file_name": f"{i}.jpg", "width": 80, "height": 80})
            boxes.append({"id": i, "image_id": i, "category_id": 1, "bbox": [i, 10, 20, 40], "area": 800, "iscrowd": 0})
        data.write(os.path.join(folder, "coco", "annotations", f"instances_{part}2017.json"), json.dumps(
            {"images": listed, "annotations": boxes, "categories": [{"id": 1, "name": "box"}]}))
    data.edit(os.path.join(folder, "train_jepa.py"), {
        "import os\nimport hydra": "import os\nimport sys\nimport hydra",
        "with autocast(device_type=device.type):":
        "with autocast(device_type=device.type, enabled='+amp=True' in sys.argv):",
        "scaler = GradScaler()": "scaler = GradScaler(device.type, enabled='+amp=True' in sys.argv)"})


def fibroids(folder):
    """Pictures with bright discs and their masks; a setting for each precision."""
    import numpy
    from PIL import Image
    names = [f"{i}.png" for i in range(24)]
    for part in ("img", "label"):
        os.makedirs(os.path.join(folder, "mri", part), exist_ok=True)
    for i, name in enumerate(names):
        y, x = numpy.mgrid[:96, :96]
        disc = (y - 30 - i) ** 2 + (x - 60 + i) ** 2 < 400
        noise = numpy.random.RandomState(i).randint(0, 90, (96, 96)) + 120 * disc
        Image.fromarray(noise.astype(numpy.uint8)).save(os.path.join(folder, "mri", "img", name))
        Image.fromarray((255 * disc).astype(numpy.uint8)).save(os.path.join(folder, "mri", "label", name))
    for part, listed in (("train", names[:16]), ("test", names[16:])):
        data.write(os.path.join(folder, "mri", part + ".txt"), "\n".join(listed))
    for precision in ("fp16", "fp32"):
        data.write(os.path.join(folder, precision, "config.yaml"), json.dumps({
            "common": {"arch": "DARU_Net", "train_batch": 2, "test_batch": 2, "lr": 1e-3, "weight_decay": 1e-4,
                       "epoch": 1, "fp16": precision == "fp16", "scheduler_lr": "cyclic",
                       "cyclic": {"base_lr": 1e-4, "max_lr": 1e-3, "cycle_momentum": False}},
            "dataset": {"type": "FibroidDataset", "train_list": "mri/train.txt", "test_list": "mri/test.txt",
                        "prefix": "mri"},
            "augmentation": {"rotate_angle": 15, "offset": [0.2, 0.2]}, "loss_config": {"type": "DiceLoss"}}))
    data.edit(os.path.join(folder, "train_fp16.py"), {
        "torch.cuda.amp.GradScaler(enabled=True)": "torch.amp.GradScaler('cpu')",
        "torch.cuda.amp.autocast()": "torch.autocast('cpu', torch.float16)",
        "num_workers=5": "num_workers=0", "num_workers=2": "num_workers=0",
        "from utils.eval import JaccardIndex, precision, recall\n": ""})  # which the repository lacks
    data.edit(os.path.join(folder, "dataset", "fibroid_dataset.py"), {"img_size=(512, 512)": "img_size=(128, 128)"})
    smaller = [f"{end}={n}" for end in ("ch_in", "ch_out") for n in (32, 64, 128, 256, 512)]
    smaller += ["PPM_Block(512", "nn.Conv2d(32", *[f"scale_factor={n}" for n in (4, 8, 16, 32)]]
    data.edit(os.path.join(folder, "models", "DARU_Net.py"), {  # whose pools are for 512 by 512
        **{old: old + " // 4" for old in smaller}, "x.shape[-2] // ": "x.shape[-2] * 4 // "})


def pairs(folder):
    """Pairs of shifted noise with their disparity, as FlyingThings3D has them."""
    import numpy
    from PIL import Image
    root = os.path.join(folder, "datasets", "FlyingThings3D")
    for side in ("left", "right"):
        os.makedirs(os.path.join(root, "frames_finalpass", "TRAIN", "A", "0000", side), exist_ok=True)
        os.makedirs(os.path.join(root, "disparity", "TRAIN", "A", "0000", side), exist_ok=True)
    for i in range(16):
        noise = numpy.random.RandomState(i).randint(0, 255, (100, 160, 3)).astype(numpy.uint8)
        for side, picture in (("left", noise), ("right", numpy.roll(noise, -3 - i % 5, 1))):
            Image.fromarray(picture).save(
                os.path.join(root, "frames_finalpass", "TRAIN", "A", "0000", side, f"{i}.png"))
        with open(os.path.join(root, "disparity", "TRAIN", "A", "0000", "left", f"{i}.pfm"), "wb") as f:
            f.write(b"Pf\n160 100\n-1.0\n" + numpy.full((100, 160), 3 + i % 5, "<f4").tobytes())


def stereo(folder):
    """bf16, as fp16 takes minutes on a CPU."""
    pairs(folder)
    data.edit(os.path.join(folder, "core", "raft_stereo.py"), {
        "autocast = torch.cuda.amp.autocast": "autocast = __import__('functools').partial(torch.autocast, 'cpu', "
                                              "torch.bfloat16)"})
    data.edit(os.path.join(folder, "core", "stereo_datasets.py"), {
        "num_workers=int(os.environ.get('SLURM_CPUS_PER_TASK', 6))-2": "num_workers=0"})
    data.edit(os.path.join(folder, "train_stereo.py"), {
        "GradScaler(enabled=args.mixed_precision)": "torch.amp.GradScaler('cpu', enabled=args.mixed_precision)"})


def slices(folder):
    """Slices of bright organs, as Synapse has them; fp16 on a CPU, without the libraries of augmentation and tests."""
    import numpy
    os.makedirs(os.path.join(folder, "slices"), exist_ok=True)
    for i in range(32):
        label = numpy.zeros((80, 80))
        for organ in range(1, 9):
            label[8 * organ:8 * organ + 8, i:i + 30] = organ
        image = numpy.random.RandomState(i).rand(80, 80) * 0.4 + label / 16
        numpy.savez(os.path.join(folder, "slices", f"s{i}.npz"), image=image.astype("float32"),
                    label=label.astype("float32"))
    data.write(os.path.join(folder, "listed", "train.txt"), "".join(f"s{i}\n" for i in range(32)))
    data.write(os.path.join(folder, "listed", "test_vol.txt"), "s0\n")
    data.write(os.path.join(folder, "datasets", "__init__.py"), "")  # else the library of that name
    data.edit(os.path.join(folder, "datasets", "dataset_synapse.py"), {
        "import imgaug as ia\nimport imgaug.augmenters as iaa  # 导入iaa\n": "", "scipy.ndimage.interpolation":
        "scipy.ndimage", "            image,label = augment_seg(self.img_aug, image, label)\n": "",
        "        self.img_aug = iaa.SomeOf((0,4),[": "        _ = lambda iaa: iaa.SomeOf((0,4),["})
    for part in ("utils", "utils_half"):
        data.edit(os.path.join(folder, part + ".py"), {"from medpy import metric\n": "",
                                                       "import SimpleITK as sitk\n": ""})
    data.edit(os.path.join(folder, "trainer_half.py"), {
        "from tensorboardX": "from torch.utils.tensorboard", "num_workers=1": "num_workers=0",
        "torch.cuda.amp.GradScaler()": "torch.amp.GradScaler('cpu', enabled=args.tag == 'fp16')",
        'device_type="cuda", dtype=torch.float16': '"cpu", torch.float16, enabled=args.tag == "fp16"'})


def mixture(folder):
    """Tokens; its mixed precision on a CPU, where it had none."""
    data.tokens(os.path.join(folder, "data", "tiny"))
    data.edit(os.path.join(folder, "train_moe.py"), {
        "nullcontext() if device_type == 'cpu' else torch.amp.autocast(device_type=device_type, dtype=ptdtype)":
        "nullcontext() if dtype == 'float32' else torch.amp.autocast(device_type=device_type, dtype=ptdtype)"})
    data.edit(os.path.join(folder, "model_moe.py"), {
        "torch.get_autocast_gpu_dtype() if (x.device.type == 'cuda' and torch.is_autocast_enabled('cuda'))":
        "torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type)"})


def teacher(folder, python):
    """Random pictures in the place of FashionMNIST, and a teacher with random weights."""
    data.pictures(os.path.join(folder, "data"), "FashionMNIST")
    if not os.path.exists(os.path.join(folder, "teacher.pth.tar")):
        code = ("import torch, model; torch.manual_seed(1); torch.save({'state_dict': model.FashionComplexNet()"
                ".state_dict()}, 'teacher.pth.tar')")
        subprocess.run([python, "-c", code], cwd=folder, check=True, capture_output=True)
    data.edit(os.path.join(folder, "train_distill.py"), {"download=True": "download=False"})


def stories(folder, draw):
    """Tokens of random texts as its cache has them, and a tokenizer of words."""
    import datasets
    data_fifth.words_of(folder)
    rows = [[draw.randrange(4, 200) for _ in range(25)] for _ in range(64)]
    cache = os.path.join(folder, "cached")
    if not os.path.exists(cache):
        datasets.Dataset.from_dict({"input_ids": [row[:-1] for row in rows],
                                    "labels": [row[1:] for row in rows]}).save_to_disk(cache)
    data.edit(os.path.join(folder, "train_mamba.py"), {'from_pretrained("gpt2")': 'from_pretrained("tiny")'})


def digits(folder):
    """Pictures of three bright squares, with the descriptions of the data set."""
    import numpy
    from PIL import Image
    root = os.path.join(folder, "digits")
    os.makedirs(os.path.join(root, "images"), exist_ok=True)
    words = {"number": "1", "size": "small", "color": "red", "position": "left"}
    text = ""
    for i in range(64):
        picture = numpy.random.RandomState(i).randint(0, 60, (32, 32, 3))
        for j in range(3):
            picture[10 * j:10 * j + 8, i % 20:i % 20 + 8, j] += 180
        Image.fromarray(picture.astype(numpy.uint8)).save(os.path.join(root, "images", f"{i}.png"))
        text += f"Obs {i}\n" + "".join("digit\n" + "".join(f"+ {name if name != 'number' else 'value'}: {word}\n"
                                                           for name, word in words.items()) for _ in range(3))
    data.write(os.path.join(root, "description", "images_description.txt"), text)
    data.write(os.path.join(root, "description", "labels_info.json"), json.dumps(
        {"value_id_tree": {name: {word: 0} for name, word in words.items()}}))
    data.write(os.path.join(folder, "datasets", "__init__.py"), "")  # else the library of that name
    data.edit(os.path.join(folder, "train_vqvae.py"), {
        "'/u/82/sukhoba1/unix/Desktop/TA-VQVAE/configs/'": "'configs/'"})
    data.edit(os.path.join(folder, "configs", "comparison_vqvae_mnistmd_v256_ds2_jointopt.yaml"), {
        '"/u/82/sukhoba1/unix/Desktop/TA-VQVAE/data/multi_descriptive_MNIST/"': '"digits"',
        '"/u/82/sukhoba1/unix/Desktop/TA-VQVAE/models/mnist_md/comparison_vqvae_v256_ds2_jointopt/"': '"saved"',
        "vqvae_embedding_dim: 128": "vqvae_embedding_dim: 32"})


def latents(folder, python):
    """A VAE of its own with random weights, whose checkpoint the snapshot lacks; a smaller transformer."""
    if not os.path.exists(os.path.join(folder, "vae.pth")):
        code = ("import torch; from model.vae import VAE; torch.manual_seed(1); torch.save(VAE(in_channels=3, "
                "latent_dim=128, input_height=64, input_width=64).state_dict(), 'vae.pth')")
        subprocess.run([python, "-c", code], cwd=folder, check=True, capture_output=True)
    data.edit(os.path.join(folder, "train_dit.py"), {"dim=512, depth=6).to(device)": "dim=64, depth=3).to(device)",
                                                     "batch_size=32": "batch_size=16"})


def faces(folder):
    """Pictures of 64 by 64, all in one folder."""
    import numpy
    from PIL import Image
    os.makedirs(folder, exist_ok=True)
    for i in range(32):
        picture = numpy.random.RandomState(i).randint(0, 90, (64, 64, 3))
        picture[16:48, i:i + 24] += 140
        Image.fromarray(picture.astype(numpy.uint8)).save(os.path.join(folder, f"{i}.png"))
