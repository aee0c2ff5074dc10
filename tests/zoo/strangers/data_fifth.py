"""The data sets of fifth.txt, and the small models and settings that a user would give; used by data.py's way."""
import base64
import json
import os
import pickle
import random
import shutil
import subprocess
import wave

import data


def fifth(checkouts, python):
    at = lambda *parts: os.path.join(checkouts, *parts)  # noqa: E731
    draw = random.Random(5)
    detection(at("MobileNetV3-SSD"))
    language(at("slm_training"), draw)
    translation(at("Transformer_final"), draw)
    lora(at("Nano"), python)
    cartoons(at("CartoonGAN-PyTorch"))
    speech(at("GST_Tacotron2"), draw)
    data.edit(at("music-generation", "train_seq2seq.py"), {  # oneDNN has no LSTM in 16 bits for every processor
        "import torch\n": "import torch\ntorch.backends.mkldnn.enabled = False\n",
        "device = 'cuda:0'": "device = 'cpu'", "num_workers=10": "num_workers=0", "hidden_dim=512": "hidden_dim=64",
        "val_frac = 0.8": "val_frac = 0.02"})
    graph = "import time\nfrom torch_geometric.datasets import FakeDataset\nfrom torch_geometric.transforms import "
    graph += "RandomNodeSplit\nmasked = RandomNodeSplit(num_val=40, num_test=40)\n"
    data.edit(at("gcn-cora", "train_gcn.py"), {  # a random graph in the place of Cora
        "dataset = Planetoid(root='/tmp/Cora', name='Cora')":
            "dataset = FakeDataset(1, 300, 8, num_channels=64, num_classes=7, task='node'); dataset.name = 'fake'",
        "data = dataset[0]  #": "data = masked(dataset[0])  #",
        "import time\n": graph})
    data.edit(at("cartpole-ppo", "rollout.py"), {
        "n_timesteps = 2048": "n_timesteps = 192", "observation, info = env.reset()\n    for":
        "observation, info = env.reset(seed=1)\n    for"})


def detection(folder):
    """Pictures of bright boxes, as VOC has them."""
    import numpy
    from PIL import Image
    root = os.path.join(folder, "voc")
    names = ["aeroplane", "bicycle", "bird"]
    for part in ("Annotations", "JPEGImages", "ImageSets/Main"):
        os.makedirs(os.path.join(root, part), exist_ok=True)
    for i in range(40):
        picture = numpy.random.RandomState(i).randint(0, 90, (120, 120, 3))
        x, y = 5 + i % 50, 10 + 2 * (i % 20)
        picture[y:y + 50, x:x + 60] += 140
        Image.fromarray(picture.astype(numpy.uint8)).save(os.path.join(root, "JPEGImages", f"{i}.jpg"))
        data.write(os.path.join(root, "Annotations", f"{i}.xml"),
                   f"<annotation><object><name>{names[i % 3]}</name><difficult>0</difficult><bndbox><xmin>{x}</xmin>"
                   f"<ymin>{y}</ymin><xmax>{x + 60}</xmax><ymax>{y + 50}</ymax></bndbox></object></annotation>")
    for part, places in (("train", range(32)), ("test", range(32, 40))):
        data.write(os.path.join(root, "ImageSets", "Main", part + ".txt"), "".join(f"{i}\n" for i in places))
    os.makedirs(os.path.join(folder, "models"), exist_ok=True)
    data.edit(os.path.join(folder, "vision", "ssd", "mobilenet_v3_ssd_lite.py"), {
        "from .onnxpred import OnnxPredictor\n": ""})
    data.edit(os.path.join(folder, "vision", "transforms", "transforms.py"), {  # of several lengths: numpy refuses
        "random.choice(self.sample_options)": "self.sample_options[random.randint(len(self.sample_options))]"})


def words_of(folder):
    """A tokenizer of words, as from_pretrained reads it."""
    import tokenizers
    import transformers
    listed = {word: i for i, word in enumerate(["<unk>", "<s>", "</s>", "<pad>"] + [f"word{i}" for i in range(200)])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(listed, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(os.path.join(folder, "en-de-tokenizer.json"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                                         pad_token="<pad>").save_pretrained(os.path.join(folder, "tiny"))


def language(folder, draw):
    """Texts as a data set on the disk; a smaller model, without torch.compile and wandb."""
    import datasets
    words_of(folder)
    shutil.rmtree(os.path.join(folder, "texts"), ignore_errors=True)
    datasets.DatasetDict({part: datasets.Dataset.from_dict({"text": [data.sentence(draw, 24) for _ in range(count)]})
                          for part, count in (("train", 96), ("validation", 16))}).save_to_disk(
        os.path.join(folder, "texts"))
    data.edit(os.path.join(folder, "WikiText103Loader.py"), {
        '"/workspace/fineweb-edu-10BT"': '"texts"', 'from_pretrained("gpt2")': 'from_pretrained("tiny")',
        "num_workers=4": "num_workers=0"})
    data.edit(os.path.join(folder, "train_lightning.py"), {
        "import WikiText103Loader as wiki": "import sys\nimport WikiText103Loader as wiki",
        "max_seq_len = 128": "max_seq_len = 32", "d_model = 768": "d_model = 64", "num_layers = 12": "num_layers = 2",
        "ff_hidden = 2048": "ff_hidden = 128", "batch_size = 128": "batch_size = 8",
        'if hasattr(torch, "compile")': "if False", "wandb_logger = WandbLogger(project='112MFinewebEdu10B')":
        "wandb_logger = False", '"bf16-mixed"': "sys.argv[1]", "else None": "else 1",
        "val_check_interval=1000": "val_check_interval=1.0, enable_checkpointing=False",
        "callbacks=[checkpoint_callback2],": "callbacks=[],"})


def translation(folder, draw):
    """Pairs of sentences and a tokenizer; two ranks without a GPU."""
    words_of(folder)
    data.write(os.path.join(folder, "pairs.json"), json.dumps(
        [{"en": data.sentence(draw, 8), "de": data.sentence(draw, 9)} for _ in range(160)]))
    data.edit(os.path.join(folder, "src", "dataset.py"), {
        "load_dataset(dataset_name, name=None, split='train')": "json.load(open('pairs.json'))",
        "load_dataset(dataset_name, name=None, split='validation')": "json.load(open('pairs.json'))[:8]",
        "import os\n": "import json\nimport os\n", "    tokenizer_path,\n": "",
        "'num_workers', 2)": "'num_workers', 0)"})
    data.edit(os.path.join(folder, "src", "trainer_ddp.py"), {
        "device_type='cuda', dtype=torch.float16": "'cpu', torch.float16, enabled=sys.argv[1] == 'fp16'",
        "GradScaler(init_scale=2.**10)": "GradScaler('cpu', init_scale=2.**10)",
        "import torch\n": "import sys\nimport torch\n",
        "tgt_output.view(-1)": "tgt_output.reshape(-1)"})
    data.edit(os.path.join(folder, "train_ddp.py"), {
        '"nccl"': '"gloo"', 'f"cuda:{rank}"': '"cpu"', "    torch.cuda.set_device(device)\n": "",
        "tokenizer.get_vocab_size()": "len(tokenizer)", "DDP(model, device_ids=[rank])": "DDP(model)"})
    data.edit(os.path.join(folder, "config", "model_config.py"), {
        "d_model: int = 512": "d_model: int = 64", "n_heads: int = 8": "n_heads: int = 4",
        "n_layers: int = 6": "n_layers: int = 2", "d_ff: int = 2048": "d_ff: int = 128"})
    data.edit(os.path.join(folder, "config", "training_config.py"), {
        "accumulation_steps: int = 16": "accumulation_steps: int = 2", "warmup_steps: int = 16000":
        "warmup_steps: int = 100", "eval_every: int = 2500": "eval_every: int = 2500\n    log_every: int = 1"})


def lora(folder, python):
    """Tokens in its form, autocast and GradScaler on the CPU, and the checkpoint that LoRA starts from."""
    for part, start in (("train", 0), ("val", 3)):
        rows = ([(i * i + i // 3 + 7 * k + start) % 97 + 10 for i in range(65)] for k in range(200))
        data.write(os.path.join(folder, part + ".base64"), "".join(
            base64.b64encode(pickle.dumps((row, None))).decode() + "\n" for row in rows))
    data.edit(os.path.join(folder, "train.py"), {
        "torch.cuda.amp.GradScaler(": 'torch.amp.GradScaler("cpu", ',
        "nullcontext() if _device_type == 'cpu' else torch.amp.autocast(device_type=_device_type, dtype="
        "self.torch_dtype)":
        "torch.amp.autocast(_device_type, self.torch_dtype, enabled=self.torch_dtype != torch.float32)"})
    with open(os.path.join(folder, "config", "pretrain.json"), encoding="utf-8") as f:
        settings = json.load(f)
    settings |= {"dataset_path": [["train.base64", "val.base64"]], "tokenizer_path": "tokenizer/tokenizer_4096.json",
                 "save_checkpoint_to": "out", "batch_size": 4, "gradient_accumulation_steps": 2, "decay_lr": False,
                 "eval_interval": 1, "eval_iters": 1, "sdp_kernel": "math", "use_amp": True, "dtype": "float32"}
    sizes = {"block_size": 64, "vocab_size": 4096, "n_layer": 2, "n_embd": 64, "n_head": 4, "n_kv_head": 2,
             "n_hidden": 128, "dropout": 0.0, "use_rope": True, "norm_eps": 1e-5, "is_causal": True}
    data.write(os.path.join(folder, "tiny.json"), json.dumps(sizes))
    data.write(os.path.join(folder, "float32.pretrain.json"), json.dumps(settings))
    if not os.path.exists(os.path.join(folder, "out", "base.pt")):
        code = ("import json, train; train.TrainGPT(json.load(open('tiny.json')), json.load(open('float32."
                "pretrain.json')), max_steps=1, ckpt_filename='base.pt').start()")
        subprocess.run([python, "-c", code], cwd=folder, check=True, capture_output=True)
    for dtype in ("bfloat16", "float32"):
        data.write(os.path.join(folder, dtype + ".json"), json.dumps(settings | {
            "use_lora": True, "lora_rank": 4, "lora_alpha": 8, "lora_dropout": 0.0, "from_checkpoint": "out/base.pt",
            "eval_interval": 1000, "dtype": dtype, "learning_rate": 1e-3}))


def cartoons(folder):
    """Photos, and cartoons beside their edges; VGG with random weights and few classes."""
    import numpy
    from PIL import Image
    for part, count, width in (("train/photo", 2, 80), ("train/cartoon_edge_pair", 2, 160), ("val/photo", 1, 80)):
        os.makedirs(os.path.join(folder, "data", part), exist_ok=True)
        for i in range(count):
            picture = numpy.random.RandomState(i).randint(0, 90, (80, width, 3))
            picture[20:60, 10 + 20 * i:40 + 20 * i] += 140
            Image.fromarray(picture.astype(numpy.uint8)).save(os.path.join(folder, "data", part, f"{i}.png"))
    for part in ("train", "test"):
        os.makedirs(os.path.join(folder, "results", part), exist_ok=True)
    data.edit(os.path.join(folder, "config.py"), {
        "NUM_WORKERS = 4": "NUM_WORKERS = 0", "IMAGE_SIZE = 256": "IMAGE_SIZE = 32", "PRETRAIN_EPOCHS = 10":
        "PRETRAIN_EPOCHS = 1", "LOAD_MODEL = True": "LOAD_MODEL = False", "SAVE_MODEL = True": "SAVE_MODEL = False",
        '"vgg19-dcbb9e9d.pth"': "None"})
    data.edit(os.path.join(folder, "train.py"), {"if not(is_gen_loaded):": "if not config.LOAD_MODEL:"})
    data.edit(os.path.join(folder, "VGGNet.py"), {"nn.Linear(512 * 7 * 7, 4096)": "nn.Linear(512 * 7 * 7, 8)",
                                                  "nn.Linear(4096, 4096)": "nn.Linear(8, 8)",
                                                  "nn.Linear(4096, num_classes)": "nn.Linear(8, num_classes)"})


def speech(folder, draw):
    """Tones of a few frequencies with sentences; fp16 without a GPU, smaller layers."""
    import numpy
    os.makedirs(os.path.join(folder, "tones"), exist_ok=True)
    lines = []
    for i in range(32):
        time = numpy.arange(9000 + 256 * (i % 5)) / 22050
        tone = numpy.sin(2 * numpy.pi * (200 + 40 * i) * time) * 9000
        tone += numpy.random.RandomState(i).randn(len(time)) * 300
        with wave.open(os.path.join(folder, "tones", f"{i}.wav"), "wb") as f:
            f.setparams((1, 2, 22050, 0, "NONE", ""))
            f.writeframes(tone.astype(numpy.int16).tobytes())
        lines.append(f"tones/{i}.wav|{' '.join(draw.choice(['one', 'two', 'three', 'four']) for _ in range(4))}\n")
    for part in ("train", "val"):
        data.write(os.path.join(folder, "filelists", f"ljs_audio_text_{part}_filelist.txt"), "".join(lines))
    data.edit(os.path.join(folder, "hyper_parameters.py"), {
        "'fp16_run': False": "'fp16_run': __import__('sys').argv[1] == 'fp16'", "'batch_size': 32": "'batch_size': 4",
        "'decoder_rnn_dim': 1024": "'decoder_rnn_dim': 64", "'attention_rnn_dim': 1024": "'attention_rnn_dim': 64",
        "'postnet_embedding_dim': 512": "'postnet_embedding_dim': 64",
        "'prenet_dim': 256": "'prenet_dim': 32"})
    data.edit(os.path.join(folder, "fp16_optimizer.py"), {
        "'torch.cuda.HalfTensor'": "'torch.HalfTensor'", "'torch.cuda.FloatTensor'": "'torch.FloatTensor'"})
    data.edit(os.path.join(folder, "loss_scaler.py"), {"init_scale=2**32": "init_scale=2**10"})
    data.edit(os.path.join(folder, "MAIN.py"), {
        "'/homedtic/apeiro/GST_Tacotron2_ORIGINAL/outputs'": "'outputs'", "'/tmp/loggs_GST_ORIGINAL/'": "'logs'",
        "num_workers=1": "num_workers=0"})
    data.edit(os.path.join(folder, "training.py"), {
        "num_workers=1": "num_workers=0", "if not overflow and (iteration %": "if iteration > 0 and (iteration %"})
    data.edit(os.path.join(folder, "utils.py"), {"torch.cuda.LongTensor(max_len)": "torch.LongTensor(max_len)",
                                                 ".byte()": ".bool()"})
    data.edit(os.path.join(folder, "logger.py"), {"from tensorboardX": "from torch.utils.tensorboard"})
    data.edit(os.path.join(folder, "stft.py"), {"pad_center(fft_window, filter_length)":
                                                "pad_center(fft_window, size=filter_length)"})
    with open(os.path.join(folder, "nn_layers.py"), encoding="utf-8") as f:
        old = f.read().split("librosa_mel_fn(", 1)[1].split(")", 1)[0]
    if "sr=" not in old:
        names = [f"{name}={value.strip()}" for name, value in zip(("sr", "n_fft", "n_mels", "fmin", "fmax"),
                                                                  old.split(","))]
        data.edit(os.path.join(folder, "nn_layers.py"), {old: ", ".join(names)})
