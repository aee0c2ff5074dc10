"""Trains a small GPT on one process under autocast, with gradient scaling where fp16 needs it.

    python amp_gpt.py --dtype fp16 --optimizer adamw-fused --unscale-clip
    python amp_gpt.py --case moe          # one of cases.py, small_cases.py or residual_cases.py
    python amp_gpt.py --list
"""
import math

import torch

import cases
import residual_cases
import small_cases
from common import GPT, Run, base_parser, loss_of, make_optimizer

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

# Cases that are only a choice of options.
PRESETS = {
    "bf16-adamw": "--dropout 0.1 --clip 0.2",
    "bf16-foreach": "--dropout 0.1 --clip 0.2 --optimizer adamw-foreach",
    "bf16-fused": "--dropout 0.1 --clip 0.2 --optimizer adamw-fused",
    "sdpa": "--attention sdpa",
    "sdpa-dropout": "--attention sdpa --dropout 0.1",
    "fp16-adamw": "--dtype fp16 --unscale-clip",
    "fp16-foreach": "--dtype fp16 --unscale-clip --optimizer adamw-foreach",
    "fp16-fused": "--dtype fp16 --unscale-clip --optimizer adamw-fused",
    "fp16-fused-noclip": "--dtype fp16 --optimizer adamw-fused",
    "checkpoint": "--checkpointing nonreentrant --dropout 0.1",
    "checkpoint-reentrant": "--checkpointing reentrant --dropout 0.1",
    "fft": "--fourier",
    "accumulate": "--accumulate 3 --clip 0.2 --dropout 0.1",
    "sgd-fused": "--optimizer sgd-fused",
    "sgd-nesterov": "--optimizer sgd-nesterov",
    "adam-amsgrad": "--optimizer adam-amsgrad",
    "rmsprop": "--optimizer rmsprop",
    "adagrad": "--optimizer adagrad",
    "adamax": "--optimizer adamax",
    "nadam": "--optimizer nadam",
}


def make_parser():
    parser = base_parser(__doc__.splitlines()[0], steps=30)
    parser.add_argument("--case", default="", help="a named case instead of options")
    parser.add_argument("--cases", default="", help="several, separated by commas, one after another")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--attention", choices=("explicit", "sdpa"), default="explicit")
    parser.add_argument("--checkpointing", choices=("", "reentrant", "nonreentrant"), default="")
    parser.add_argument("--fourier", action="store_true", help="an FFT filter in each block")
    parser.add_argument("--accumulate", type=int, default=1, help="micro-batches per step")
    parser.add_argument("--clip", type=float, default=0.0, help="clip the gradient norm, without unscaling")
    parser.add_argument("--unscale-clip", action="store_true", help="scaler.unscale_, then clip to norm 0.2")
    return parser


def gradient_scaler(run, dtype):
    """Starts at 2^22, too high for these gradients: the first steps overflow, and later ones now and then."""
    if dtype != torch.float16 or not run.low:
        return None
    return torch.amp.GradScaler("cpu", init_scale=2.0 ** 22, growth_interval=8)


def train(run, options):
    dtype = DTYPES[options.dtype]
    model = GPT(run.vocabulary, dropout=options.dropout, attention=options.attention,
                checkpointing=options.checkpointing, fourier=options.fourier)
    optimizer = make_optimizer(options.optimizer, model.parameters())
    scaler = gradient_scaler(run, dtype)
    batches = run.batches()
    base_rate = optimizer.param_groups[0]["lr"]
    for step in range(run.steps):
        for group in optimizer.param_groups:
            group["lr"] = base_rate * 0.5 * (1 + math.cos(math.pi * step / run.steps))
        optimizer.zero_grad()
        first = None
        for _ in range(options.accumulate):
            inputs, targets = batches.next()
            with run.autocast(dtype):
                loss = loss_of(model(inputs), targets)
            loss = loss / options.accumulate if options.accumulate > 1 else loss
            (scaler.scale(loss) if scaler else loss).backward()
            first = loss if first is None else first
        clip = 0.2 if options.unscale_clip else options.clip
        if scaler and options.unscale_clip:
            scaler.unscale_(optimizer)
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler:
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            run.report(step, first, skipped=scaler.get_scale() < before, scale=before)
        else:
            if run.updates(step):
                optimizer.step()
            run.report(step, first)
    run.finish(model, optimizer)


def main():
    parser = make_parser()
    options = parser.parse_args()
    functions = {**cases.CASES, **small_cases.CASES, **residual_cases.CASES}
    if options.list:
        print("\n".join([*PRESETS, *functions]))
        return
    names = [n for n in (options.cases or options.case).split(",") if n]
    for name in names:
        if name not in PRESETS and name not in functions:
            parser.error(f"no case '{name}'; --list names them")
        run = Run(options, case=name)
        if options.cases:
            print("case", name, flush=True)
        if name in PRESETS:
            train(run, parser.parse_args(PRESETS[name].split()))
        else:
            functions[name](run)
    if not names:
        train(Run(options), options)


main()
