"""Puts everything in place once torch is imported and an adapter is attached."""
from . import compiled, finish, modules, names, ops as adapter, optimizers, say, scalers, workers


def _preload_is_here():
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return "libmptrace_preload" in maps.read()
    except OSError:
        return True


def install(torch, options):
    if not adapter.available(torch):
        # The preload library has said why. Without it nobody has: glibc skips a library that it cannot load.
        if not _preload_is_here():
            say.line("LD_PRELOAD did not reach this process; the program runs untraced")
        return
    ops = adapter.Ops(torch)
    finish.arm(ops)
    say.guarded("DataLoader workers", workers.install, torch, ops)
    if options.mode == "off":
        return
    known = names.Names(torch, ops)
    calls = say.guarded("modules", modules.install, torch, ops, known, options.wants_layers)
    steps = say.guarded("optimizers", optimizers.install, torch, ops, known, calls)
    if steps is not None:
        say.guarded("GradScaler", scalers.install, torch, ops, steps)
    say.guarded("torch.compile", compiled.install, torch, ops)
