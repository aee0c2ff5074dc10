"""The table of the truth suite: programs, options, and what is expected of the twin."""
from dataclasses import dataclass

BOTH = ("2.11", "debian")
NEW = ("2.11",)
OLD = ("debian",)


@dataclass(frozen=True)
class Inexact:
    """The twin cannot equal an fp32 run here: why, and the counter that must say so ("": none can)."""
    reason: str
    counter: str
    torches: tuple = BOTH  # where it cannot
    copies: bool = False   # it equals an fp32 run whose casts copy, as casts in 16 bits do


@dataclass(frozen=True)
class Case:
    name: str
    program: str                 # a script of testdata/programs/gpt, or sharded_gpt
    options: tuple = ()
    torches: tuple = BOTH
    ranks: int = 1               # 1: started plainly; else by torchrun, mpirun or --spawn
    steps: int = 30
    inexact: Inexact = None
    roots: str = "first"         # of a step's roots of backward(): the program prints the first, the last or all
    trace: tuple = ()            # further options of mp-trace
    decisions: bool = False      # the fp32 run follows the choices that the low-precision run wrote down
    mixed: bool = True           # the low-precision run differs from the fp32 run


def amp(name, torches=BOTH, **more):
    return Case(name, "amp_gpt.py", ("--case", name), torches, **more)


def fsdp(name, *options, ranks=2, **more):
    return Case(name, "fsdp_gpt.py", options, NEW, ranks=ranks, steps=20, **more)


def ddp(name, *options, torches=BOTH, ranks=2, **more):
    return Case(name, "ddp_gpt.py", options, torches, ranks=ranks, steps=20, **more)


def cpp(name, *options, ranks=2, **more):
    return Case(name, "sharded_gpt", options, OLD, ranks=ranks, **more)


FREE = ("--free-ints",)  # the twin picks its own maxima, as an fp32 run would
ROUTING = Inexact("tokens are routed by the real run's indices; near a tie, fp32 would choose others", "flips")
# Seen by gradients and later losses that differ in their last bits, alike on all ranks.
BUCKETS = Inexact("DDP orders its buckets as gradients arrive, and autocast's casts change that order; with three "
                  "ranks the place in the bucket decides which two values are added first", "")

# A torch that does not give the running node.
UNFOLLOWED = Inexact("casts group gradients, and this torch does not tell where a backward starts", "regrouped",
                     torches=OLD, copies=True)
DTYPES = Inexact("clip_grad_norm_ stacks the norms of gradients by type, and an fp32 run has one type", "regrouped")

CASES = [
    amp("bf16-adamw"), amp("bf16-foreach"), amp("bf16-fused", NEW),
    amp("sdpa", NEW), amp("sdpa-dropout", NEW),
    amp("fp16-adamw", NEW), amp("fp16-foreach", NEW), amp("fp16-fused", NEW), amp("fp16-fused-noclip", NEW),
    amp("checkpoint"), amp("checkpoint-reentrant"), amp("fft"), amp("accumulate"), amp("sgd-fused", NEW),
    amp("sgd-nesterov"), amp("adam-amsgrad"), amp("rmsprop"), amp("adagrad"), amp("adamax"), amp("nadam"),
    amp("pure-bf16"), amp("masters", roots="all"), amp("fused-masters"), amp("two-optimizers"), amp("ema-inference"),
    amp("hooks"), amp("python-threads"), amp("flat-buffer"), amp("weight-norm"), amp("spectral-norm"),
    amp("torchscript"), amp("compile-disabled", NEW), amp("custom-op", NEW), amp("native-dropout"),
    amp("float8", NEW), amp("byte-view"), amp("autocast-outside"),
    amp("llama", inexact=UNFOLLOWED), amp("llama-checkpoint", inexact=UNFOLLOWED),
    amp("llama-checkpoint-reentrant", inexact=UNFOLLOWED), amp("rms-module", NEW),
    amp("qwen", inexact=UNFOLLOWED), amp("rotary-again", inexact=UNFOLLOWED), amp("gated-norm", inexact=UNFOLLOWED),
    amp("shared-attention", NEW), amp("used-again", NEW), amp("clip-mixed", NEW, inexact=DTYPES),
    amp("cnn"), amp("cnn-channels-last"), amp("lstm"), amp("gru"), amp("nn-transformer"),
    amp("custom-function"), amp("double-backward", roots="last"), amp("vmap-grad"), amp("jvp"), amp("hessian"),
    amp("sort-topk-max"),
    Case("sort-topk-max-free", "amp_gpt.py", ("--case", "sort-topk-max"), trace=FREE), amp("where"), amp("out-resize"),
    amp("reduced-types"), amp("rrelu"), amp("scalar-parameter"),
    Case("moe-same-routing", "amp_gpt.py", ("--case", "moe", "--decisions", "decisions"), decisions=True),
    amp("moe", inexact=ROUTING),
    amp("lbfgs", inexact=Inexact("the line search depends on numbers that leave through .item()", "leaks")),
    amp("muon", NEW, inexact=Inexact("its source casts to bf16, so the fp32 run is not all fp32", "leaks")),
    amp("numpy-write", inexact=Inexact("numpy writes only the real weight; the twin starts again from it", "stale")),
    amp("sparse-embedding", inexact=Inexact("zero_grad() of 1.13 writes zeros into sparse gradients, which are not "
                                            "followed from there", "unshadowed", OLD)),
    fsdp("fsdp2-reduce-fp32"), fsdp("fsdp2-reduce-fp32-foreach", "--optimizer", "foreach"),
    fsdp("fsdp2-reduce-bf16", "--reduce", "bf16"),
    fsdp("fsdp2-reduce-bf16-fused", "--reduce", "bf16", "--optimizer", "fused"),
    fsdp("fsdp2-uint8-mix", "--uint8-mix"), fsdp("fsdp2-llama", "--llama"), fsdp("fsdp1-llama", "--llama", "--fsdp1"),
    fsdp("fsdp1-reduce-fp32", "--fsdp1"),
    fsdp("fsdp1-reduce-bf16-orig", "--fsdp1", "--reduce", "bf16", "--use-orig-params"),
    fsdp("fsdp1-keep-low-grads", "--fsdp1", "--reduce", "bf16", "--keep-low-precision-grads", "--optimizer", "sgd"),
    fsdp("fsdp2-3ranks", "--reduce", "bf16", ranks=3), fsdp("fsdp1-3ranks", "--fsdp1", ranks=3),
    ddp("ddp"), ddp("ddp-bf16-hook", "--hook", "bf16", torches=NEW), ddp("ddp-fp16-hook", "--hook", "fp16"),
    ddp("ddp-zero", "--zero"), ddp("ddp-dropout", "--dropout", "0.1"),
    ddp("ddp-3ranks", "--keep-buckets", ranks=3),
    ddp("ddp-fp16-hook-3ranks", "--keep-buckets", "--hook", "fp16", ranks=3),
    ddp("ddp-3ranks-rebuilt", ranks=3, inexact=BUCKETS),
    Case("lightning", "lightning_gpt.py", (), NEW, steps=20),
    Case("lightning-manual", "lightning_gpt.py", ("--manual",), NEW, steps=20),
    cpp("sharded-bf16", "--precision", "bf16", "--inject-overflow", "7"),
    cpp("sharded-fp16", "--precision", "fp16", "--inject-overflow", "7"),
    cpp("sharded-3ranks", "--precision", "bf16", "--inject-overflow", "7", ranks=3),
]

# Left to --long: each differs from a case above in one choice of its program.
VARIANTS = {
    "bf16-fused", "fp16-foreach", "fp16-fused", "sdpa", "sgd-nesterov", "adam-amsgrad", "adagrad", "adamax", "nadam",
    "fused-masters", "spectral-norm", "llama-checkpoint", "qwen", "gru", "hessian", "muon", "fsdp2-reduce-fp32",
    "fsdp2-reduce-fp32-foreach", "fsdp2-reduce-bf16-fused", "fsdp1-llama", "fsdp1-reduce-bf16-orig", "fsdp1-3ranks",
    "ddp-fp16-hook", "ddp-dropout", "ddp-3ranks", "ddp-3ranks-rebuilt", "lightning-manual",
}
# Left to --long with one torch: with the new one, because another case stands for them there ...
VARIANTS_OF = {
    "2.11": {"checkpoint-reentrant", "ddp-fp16-hook-3ranks"},
    # ... and with the old one, because the adapter does nothing there that it does not do with the new one.
    "debian": {
        "bf16-foreach", "checkpoint", "fft", "rmsprop", "pure-bf16", "two-optimizers", "weight-norm", "byte-view",
        "autocast-outside", "rotary-again", "cnn-channels-last", "vmap-grad", "jvp", "sort-topk-max",
        "sort-topk-max-free", "where", "out-resize", "reduced-types", "rrelu", "scalar-parameter", "moe", "lbfgs",
    },
}


def in_ci(case, torch):
    return case.name not in VARIANTS and case.name not in VARIANTS_OF[torch]


# These are started by torchrun; the other cases of several ranks only with --long, because it imports torch once more.
TORCHRUN = {"ddp", "fsdp2-reduce-bf16"}

# Rule of the adapter -> (case that needs it, torch). With the rule off that case must be red.
MUTATIONS = {
    "sparse": ("sparse-embedding", "2.11"),
    "random": ("nn-transformer", "2.11"),
    "integer": ("where", "2.11"),
    "locked": ("moe-same-routing", "2.11"),
    "choice": ("cnn", "2.11"),
    "own_backward": ("cnn-channels-last", "2.11"),
    "amp": ("fp16-fused-noclip", "2.11"),
    "dropout": ("native-dropout", "2.11"),
    "sdpa": ("rrelu", "2.11"),
    "collective": ("ddp", "2.11"),
    "work": ("fsdp2-reduce-bf16", "2.11"),
    "bytes": ("fsdp2-uint8-mix", "2.11"),
    "hidden_mutator": ("cnn", "2.11"),
    "overwrite": ("flat-buffer", "2.11"),
    "wrapped_number": ("scalar-parameter", "2.11"),
    "dtype_arg": ("reduced-types", "2.11"),
    "fingerprint": ("numpy-write", "2.11"),
    "complex": ("fft", "2.11"),
    "regrouped": ("llama", "2.11"),
    "cast_source": ("autocast-outside", "2.11"),
}

# Rules that no program on a CPU can reach, and why.
UNREACHABLE = {
    "half_to_float": "only softmax kernels of GPUs accept a half input with half_to_float",
    "dropout_state": "only cuDNN's recurrent layers draw from such a tensor; `torch.recurrent` shows it with a kernel "
                     "that takes their place"}
