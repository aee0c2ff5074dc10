"""The precision that the program declares: FSDP and DDP policies, autocast, GradScaler, Lightning, TF32, HMP.

Each is recorded once, as the text that `mp-trace report --policy` accepts: "fsdp:param=bf16,reduce=fp32@layer".
"""
import functools
import sys
import weakref

from . import imports, say, wrappers

_DTYPES = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3",
           "float8_e5m2": "e5m2"}


def dtype_name(dtype):
    name = str(dtype).rpartition(".")[2]
    return _DTYPES.get(name, name)


def _text(kind, *pairs):
    """"kind:key=value,...", without the keys that are not set."""
    parts = ",".join(f"{key}={value if isinstance(value, str) else dtype_name(value)}"
                     for key, value in pairs if value is not None)
    return f"{kind}:{parts}" if parts else kind


def _switch(value, usual):
    return None if bool(value) == usual else "on" if value else "off"


def _fsdp1(precision):
    # Without a reduce_dtype, gradients are reduced in the dtype in which they are computed.
    return _text("fsdp", ("param", precision.param_dtype), ("reduce", precision.reduce_dtype or precision.param_dtype),
                 ("buffer", precision.buffer_dtype),
                 ("keep_low_precision_grads", _switch(precision.keep_low_precision_grads, False)))


def _fsdp2(precision):
    return _text("fsdp", ("param", precision.param_dtype), ("reduce", precision.reduce_dtype or precision.param_dtype),
                 ("output", precision.output_dtype),
                 ("cast_forward_inputs", _switch(precision.cast_forward_inputs, True)))


def _of_sharded(module):
    """The FSDP policy of one module; None when it is not sharded itself."""
    if wrappers.is_a(module, ("FullyShardedDataParallel",)):
        return _fsdp1(module.mixed_precision)
    if wrappers.is_a(module, ("FSDPModule",)):
        return _fsdp2(module._get_fsdp_state()._mp_policy)
    return None


class Policies:
    def __init__(self, torch, ops, layers, scopes):
        self._torch = torch
        self._ops = ops
        self._layers = layers
        self._scopes = scopes
        self._told = set()
        self._hooks = weakref.WeakKeyDictionary()  # DDP module -> name of its communication hook
        self._made = []  # weak references to the DDP modules that were made since the last step
        self._sharded = []  # the same of FSDP's, inner ones first
        self._known = weakref.WeakSet()  # FSDP modules whose policies were told

    def tell(self, text):
        if text not in self._told:
            self._told.add(text)
            self._ops.policy(text)

    def of_root(self, modules):
        """`modules`: (layer, module) of a model that is called for the first time, the root first."""
        sharded = []
        for layer, module in modules:
            text = say.guarded("FSDP policy", _of_sharded, module)
            if text is not None:
                self._known.add(module)
                sharded.append((layer, text, module is modules[0][1]))
                for cls in type(module).__mro__:
                    if cls.__name__ == "FullyShardedDataParallel":
                        self._scopes.wrap(cls, "clip_grad_norm_", "(clipping)")
            elif wrappers.is_a(module, ("DistributedDataParallel",)):
                self._tell_parallel(module)
        alike = len({text for _, text, _ in sharded}) == 1
        usual = next((text for _, text, is_root in sharded if is_root or alike), None)
        for layer, text, _ in sharded:
            self.tell(text if text == usual else f"{text}@{layer}")

    def step_is_over(self):
        """Modules of DDP and FSDP that are not called before the first step are no roots that watch mode learns of."""
        while self._made:
            module = self._made.pop()()
            if module is not None:
                self._tell_parallel(module)
        sharded = []
        while self._sharded:
            module = self._sharded.pop()()
            if module is None or module in self._known:
                continue
            if id(module) in self._layers.names:  # it ran before it was sharded
                sharded.append((self._layers.text(module), module))
            else:
                self._layers.learn(module, None)
        if sharded:
            self.of_root(sharded)

    def _tell_parallel(self, module):
        precision = getattr(module, "mixed_precision", None)
        pairs = [("param", precision.param_dtype), ("reduce", precision.reduce_dtype),
                 ("buffer", precision.buffer_dtype)] if precision is not None else []
        self.tell(_text("ddp", *pairs, ("hook", self._hooks.get(module))))

    def autocast(self, context):
        if context._enabled:
            self.tell(f"autocast:{context.device}={dtype_name(context.fast_dtype)}")

    def scaler(self, scaler):
        if scaler._enabled:
            self.tell(f"grad_scaler:init={float(scaler._init_scale):.17g}")

    def lightning(self, plugin):
        """Lightning's precision plugin, whose closure is passed to each step()."""
        precision = getattr(plugin, "precision", None)
        if precision is not None:
            self.tell(f"lightning:precision={precision},plugin={type(plugin).__name__}")

    def first_step_is_over(self):
        """Records the settings that are switches, not calls. They are set by now."""
        matmul, cudnn = self._tf32("matmul"), self._tf32("cudnn")
        try:
            precision = self._torch.get_float32_matmul_precision()
        except (AttributeError, RuntimeError):  # set per matrix unit, not in general
            precision = "mixed"
        self.tell(f"tf32:matmul={matmul},cudnn={cudnn},precision={precision}")
        if "habana_frameworks.torch.hpex.hmp" in sys.modules:
            self.tell("hmp")

    def _tf32(self, what):
        c = self._torch._C
        try:
            allowed = c._get_cublas_allow_tf32() if what == "matmul" else c._get_cudnn_allow_tf32()
        except (AttributeError, RuntimeError):  # set through the newer switches only
            backend, op = ("cuda", "matmul") if what == "matmul" else ("cuda", "conv")
            try:
                allowed = c._get_fp32_precision_getter(backend, op) == "tf32"
            except (AttributeError, RuntimeError):
                return "unknown"
        return "on" if allowed else "off"

    # ---- wrapping

    def watch_autocast(self, cls):
        original = cls.__enter__

        @functools.wraps(original)
        def __enter__(context):
            say.guarded("autocast", self.autocast, context)
            try:
                return original(context)
            except BaseException as error:
                say.hide_frame(error)
                raise

        cls.__enter__ = say.unseen(__enter__)

    def watch_parallel(self, cls):
        self._watch_making(cls, "__init__", lambda module, /, *_, **__: self._made.append(weakref.ref(module)))

    def watch_sharded(self, file):
        """FSDP1's class."""
        self._watch_making(file.FullyShardedDataParallel, "__init__",
                           lambda module, /, *_, **__: self._sharded.append(weakref.ref(module)))

    def watch_fully_shard(self, file):
        """FSDP2's state, which fully_shard() makes for the module, or the modules, of one call."""
        def remember(_, modules, *__, **___):
            each = modules if isinstance(modules, (list, tuple)) else [modules]
            self._sharded.extend(map(weakref.ref, reversed(each)))

        self._watch_making(file.FSDPState, "init", remember)

    def _watch_making(self, cls, name, remember):
        original = getattr(cls, name)

        @functools.wraps(original)
        def make(module, /, *arguments, **named):  # `module` is a keyword of DDP's, too
            try:
                original(module, *arguments, **named)
            except BaseException as error:
                say.hide_frame(error)
                raise
            say.guarded(cls.__name__, lambda: remember(module, *arguments, **named))

        setattr(cls, name, say.unseen(make))

    def watch_hooks(self, cls):
        original = cls.register_comm_hook

        @functools.wraps(original)
        def register_comm_hook(module, state, hook):
            # A bucket has gradients of many layers; the hook would run in that of the last one. What torch refuses (it
            # asks for the name) is passed as it is.
            named = callable(hook) and hasattr(hook, "__name__")
            scoped = say.guarded("DDP hook", self._scopes.around, hook, "(bucket)") if named else None
            try:
                original(module, state, scoped or hook)
            except BaseException as error:
                say.hide_frame(error)
                raise
            name = getattr(hook, "__name__", type(hook).__name__)
            say.guarded("DDP hook", self._hooks.__setitem__, module, name)

        cls.register_comm_hook = say.unseen(register_comm_hook)


def install(torch, ops, known, scopes):
    policies = Policies(torch, ops, known, scopes)
    known.on_root.append(lambda modules: say.guarded("policies", policies.of_root, modules))
    policies.watch_autocast(torch.amp.autocast_mode.autocast)
    policies.watch_parallel(torch.nn.parallel.DistributedDataParallel)
    policies.watch_hooks(torch.nn.parallel.DistributedDataParallel)
    fsdp = "torch.distributed.fsdp."
    imports.after(fsdp + "fully_sharded_data_parallel", lambda m: say.guarded("FSDP", policies.watch_sharded, m))
    imports.after(fsdp + "_fully_shard._fsdp_state", lambda m: say.guarded("FSDP", policies.watch_fully_shard, m))
    return policies
