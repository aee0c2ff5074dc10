"""Installs all wrappers once torch is imported and an adapter is attached."""
import os

from . import (checkpoints, compiled, decomposed, finish, modules, names, ops as adapter, optimizers, policies, ranks,
               say, scalers, scopes, workers)


def _preload_is_here():
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return "libmptrace_preload" in maps.read()
    except OSError:
        return True


def install(torch, options):
    if not adapter.available(torch):
        # The preload library has printed the reason. If the library is missing there was no message,
        # because glibc skips a library that it cannot load.
        if not _preload_is_here():
            say.line("LD_PRELOAD did not reach this process; the program runs untraced")
        return
    ops = adapter.Ops(torch)
    finish.arm(ops)
    say.guarded("DataLoader workers", workers.install, torch, ops)
    if options.mode == "off":
        return
    say.guarded("rank", ranks.install, torch, ops)
    known = names.Names(torch, ops)
    _install_all(torch, options, ops, known)
    finish.on_finish.append(known.layers.stop)


def _install_all(torch, options, ops, known):
    functions = ops.layer_functions()
    calls = say.guarded("modules", modules.install, torch, ops, known.layers, functions, options.wants_layers)
    around = scopes.NoScopes()
    if calls is not None and options.wants_layers:
        around = say.guarded("layer scopes", scopes.install, torch, ops, functions, calls) or around
        say.guarded("decomposed layers", decomposed.install, torch, ops, known.layers)
    declared = say.guarded("policies", policies.install, torch, ops, known.layers, around)
    steps = say.guarded("optimizers", optimizers.install, torch, ops, known, around)
    if steps is not None:
        os.register_at_fork(after_in_child=lambda: say.guarded("fork", steps.forked))
        finish.before_finish.append(steps.numbering.tell_end)
        if declared is not None:
            say.guarded("GradScaler", scalers.install, torch, ops, steps, around, declared)
        _at_steps(steps, known, calls, declared)
    saved = say.guarded("checkpoints", checkpoints.install, torch, ops)
    if steps is not None and saved is not None:
        steps.on_step.append(lambda: say.guarded("checkpoints", saved.install_distributed))
    say.guarded("torch.compile", compiled.install, torch, ops)


def _at_steps(steps, known, calls, declared):
    if calls is not None:
        steps.on_first.append(calls.first_step_is_over)
    if declared is None:
        return
    steps.on_first.append(lambda: say.guarded("policies", declared.first_step_is_over))
    steps.on_step.append(lambda: say.guarded("policies", declared.step_is_over))

    def closure(function):
        # Lightning's precision plugins pass to step() a closure of their own: a method, with the outermost
        # module.
        plugin = getattr(getattr(function, "func", None), "__self__", None)
        if type(plugin).__module__.startswith(("lightning.", "pytorch_lightning.")):
            declared.lightning(plugin)
            module = next(iter(function.args), None)
            if hasattr(module, "_modules") and id(module) not in known.layers.names:
                known.layers.learn(module, None)

    steps.on_closure.append(lambda function: say.guarded("Lightning", closure, function))
