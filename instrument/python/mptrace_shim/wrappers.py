"""Modules that wrap another module and compute nothing themselves; names leave them out.

The name of a layer is "blocks.2.fc2" whether or not its block is sharded, checkpointed or compiled.
"""

# Attribute names under which wrappers store the wrapped module. Other classes do not use these
# names.
_PARTS = frozenset(("_fsdp_wrapped_module", "_fpw_module", "_checkpoint_wrapped_module", "_orig_mod",
                    "_forward_module"))  # the last one: Lightning Fabric's
# These store it as "module", a name that other classes use too.
_PARALLEL = frozenset(("DistributedDataParallel", "DataParallel"))
_ENGINES = frozenset(("DeepSpeedEngine", "Float16Module", "FP16Module"))  # of DeepSpeed and Megatron
# fully_shard() makes a class ("FSDPBlock", FSDPModule, Block) for each wrapped class.
_SHARDED = frozenset(("FSDPModule", "ReplicateModule"))


def _holds_module(module):
    return is_a(module, _PARALLEL) or type(module).__name__ in _ENGINES


def is_a(module, names):
    return any(cls.__name__ in names and cls.__module__.startswith("torch.") for cls in type(module).__mro__)


def holds_as_part(module, key):
    """Whether `module` is a wrapper of its part `key`."""
    return key in _PARTS or (key == "module" and _holds_module(module))


def wrapped(module):
    """The module that `module` wraps; None when it is not a wrapper."""
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
    """The class that the program defines."""
    cls = type(innermost(module))
    if len(cls.__bases__) > 1 and cls.__bases__[0].__name__ in _SHARDED:
        return cls.__bases__[1]
    return cls


def named_modules(module, path="", seen=None):
    """Like Module.named_modules(), parents first, without the names that wrappers add."""
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
    """A function that removes wrappers from names as root.named_parameters() returns them."""
    parallel = {f"{path}.module" if path else "module" for path, module in root.named_modules()
                if _holds_module(module)}

    def clean(name):
        parts = name.split(".")
        return ".".join(part for i, part in enumerate(parts)
                        if part not in _PARTS and (part != "module" or ".".join(parts[:i + 1]) not in parallel))

    return clean
