"""Modules that stand around another one and compute nothing of their own; names leave them out.

A layer is called "blocks.2.fc2" whether or not its block is sharded, checkpointed or compiled.
"""

# Parts by which wrappers of torch hold what they wrap. Nobody else uses these names.
_PARTS = frozenset(("_fsdp_wrapped_module", "_fpw_module", "_checkpoint_wrapped_module", "_orig_mod"))
# These hold it as "module", which others use as well.
_PARALLEL = frozenset(("DistributedDataParallel", "DataParallel"))
# fully_shard() makes a class ("FSDPBlock", FSDPModule, Block) for each class that it meets.
_SHARDED = frozenset(("FSDPModule", "ReplicateModule"))


def is_a(module, names):
    return any(cls.__name__ in names and cls.__module__.startswith("torch.") for cls in type(module).__mro__)


def holds_as_part(module, key):
    """Whether `module` is a wrapper of its part `key`."""
    return key in _PARTS or (key == "module" and is_a(module, _PARALLEL))


def wrapped(module):
    """What `module` is a wrapper of; None for all others."""
    return next((part for key, part in module._modules.items() if part is not None and holds_as_part(module, key)),
                None)


def innermost(module):
    for _ in range(16):  # wrappers of wrappers
        inner = wrapped(module)
        if inner is None:
            break
        module = inner
    return module


def class_of(module):
    """The class as the program wrote it."""
    cls = type(innermost(module))
    if len(cls.__bases__) > 1 and cls.__bases__[0].__name__ in _SHARDED:
        return cls.__bases__[1]
    return cls


def named_modules(module, path="", seen=None):
    """As Module.named_modules(), parents first, without the parts that wrappers add."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    yield path, module
    for key, part in module._modules.items():
        if part is not None:
            below = path if holds_as_part(module, key) else f"{path}.{key}" if path else key
            yield from named_modules(part, below, seen)


def cleaner(root):
    """A function from names as root.named_parameters() spells them to names without wrappers."""
    parallel = {f"{path}.module" if path else "module" for path, module in root.named_modules()
                if is_a(module, _PARALLEL)}

    def clean(name):
        parts = name.split(".")
        return ".".join(part for i, part in enumerate(parts)
                        if part not in _PARTS and (part != "module" or ".".join(parts[:i + 1]) not in parallel))

    return clean
