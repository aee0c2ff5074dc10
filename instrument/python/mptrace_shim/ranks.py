"""The rank of a process that no launcher gave one: as torch.distributed knows it (mp.spawn, Lightning, by hand)."""
import functools
import os

from . import imports, say


def _tell(distributed, ops):
    if distributed.is_initialized():
        local = os.environ.get("LOCAL_RANK", "")
        ops.world(distributed.get_rank(), int(local) if local.isdigit() else -1, distributed.get_world_size())


def install(torch, ops):
    def wrap(c10d):
        original = getattr(c10d, "init_process_group", None)
        if original is None:
            return

        @functools.wraps(original)
        def init_process_group(*arguments, **named):
            try:
                result = original(*arguments, **named)
            except BaseException as error:
                say.hide_frame(error)
                raise
            say.guarded("rank", _tell, c10d, ops)
            return result

        c10d.init_process_group = say.unseen(init_process_group)
        if getattr(torch.distributed, "init_process_group", None) is original:
            torch.distributed.init_process_group = c10d.init_process_group
        _tell(c10d, ops)

    imports.after("torch.distributed.distributed_c10d", lambda c10d: say.guarded("rank", wrap, c10d))
