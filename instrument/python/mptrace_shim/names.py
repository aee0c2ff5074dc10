"""Names of layers and tensors, as the program spells them.

A root is a module that was called by nobody's forward(). Its named_modules() name the layers
("GPT.blocks.0.attn", with the root's class in front), its named_parameters() the parameters
("blocks.0.attn.weight", without). Modules are remembered by id, as long as they live.
"""
import weakref

from . import say
from .ops import local_tensor


class Names:
    def __init__(self, torch, ops):
        self._torch = torch
        self._ops = ops
        self.spell = str      # how a layer's name is handed over: str, or to bytes
        self.layers = {}      # id(module) -> layer name, spelled; read on every call of a module
        self._texts = {}      # the same as text
        self._alive = {}      # id(module) -> weak reference that clears both
        self._roots = []      # weak references, in order of their first call
        self._inside = {}     # id(root) -> ids of its modules
        self._tensors = {}    # id(parameter) -> name; kept as long as the parameter lives
        self._owners = {}     # id(parameter) -> weak reference
        self._wrapped = {}    # id(parameter) of those whose local tensor, the one told, has no .grad
        self._states = {}     # (id(parameter), key) -> weak reference to the tensor last told
        self._signature = None

    # ---- layers

    def learn(self, module, parent):
        """The name of a module seen for the first time, below `parent` (None: it is a root)."""
        if parent is None:
            self._add_root(module)
        else:
            base = self._texts.get(id(parent), type(parent).__name__)
            child = next((key for key, value in parent._modules.items() if value is module), type(module).__name__)
            self._set(module, f"{base}.{child}")
        return self.layers[id(module)]

    def _add_root(self, module):
        base = type(module).__name__
        inside = set()
        for name, part in module.named_modules():
            # A root seen later that holds earlier ones renames them: the outermost counts.
            self._set(part, f"{base}.{name}" if name else base)
            inside.add(id(part))
        self._set(module, base)
        self._inside[id(module)] = inside
        self._roots.append(weakref.ref(module, self._root_is_gone))
        self._signature = None

    def _set(self, module, name):
        key = id(module)
        self._texts[key] = name
        self.layers[key] = self.spell(name)
        if key not in self._alive:
            self._alive[key] = weakref.ref(module, lambda _: self._forget(key))

    def _forget(self, key):
        self.layers.pop(key, None)
        self._texts.pop(key, None)
        self._alive.pop(key, None)
        self._inside.pop(key, None)

    def _root_is_gone(self, reference):
        self._roots = [r for r in self._roots if r is not reference]
        if not self._roots:
            # The last model goes, its parameters are still there: an adapter that saves may do so now.
            say.guarded("save", self._ops.save)

    # ---- tensors

    def tell(self, optimizers):
        """Tells the adapter the names of all parameters and buffers, when there are new ones."""
        groups = [(number, group) for number, o in optimizers for group in enumerate(getattr(o, "param_groups", ()))]
        signature = (len(self._roots), hash(tuple(id(p) for _, (_, g) in groups for p in g["params"])))
        if signature == self._signature:
            return
        self._signature = signature
        for key in [key for key, owner in self._owners.items() if owner() is None]:
            del self._owners[key], self._tensors[key]
            self._wrapped.pop(key, None)
        trained = {id(p) for _, (_, group) in groups for p in group["params"]}
        # What is trained comes first: a teacher or an average of the same class does not take its names.
        for root in sorted(self._outermost(), key=lambda r: not any(id(p) in trained for p in r.parameters())):
            self._tell_root(root)
        for number, (index, group) in groups:
            for position, parameter in enumerate(group["params"]):
                if id(parameter) not in self._tensors:
                    self._tell(self._ops.parameter, f"optimizer{number}.group{index}.param{position}", parameter)

    def tell_gradients(self):
        """Tells the gradients of DTensor parameters; those of others are found at the parameter."""
        for key, name in self._wrapped.items():
            parameter = self._owners[key]()
            gradient = local_tensor(self._torch, parameter.grad) if parameter is not None else None
            if gradient is not None:
                self._ops.gradient(name, gradient)

    def tell_state(self, optimizer):
        """Tells the tensors of the optimizer's state that are new since the last time."""
        for parameter, state in list(getattr(optimizer, "state", {}).items()):
            name = self._tensors.get(id(parameter))
            if name is None or not hasattr(state, "items"):
                continue
            for key, value in state.items():
                if not isinstance(value, self._torch.Tensor):
                    continue
                told = self._states.get((id(parameter), key))
                if told is None or told() is not value:
                    self._states[id(parameter), key] = weakref.ref(value)
                    tensor = local_tensor(self._torch, value)
                    if tensor is not None:
                        self._ops.state(f"{name}.{key}", tensor)

    def _outermost(self):
        roots = [r for r in (reference() for reference in self._roots) if r is not None]
        return [r for r in roots
                if not any(id(r) in self._inside.get(id(other), ()) for other in roots if other is not r)]

    def _tell_root(self, root):
        told, taken = set(), set(self._tensors.values())
        for op, tensors in ((self._ops.parameter, root.named_parameters()), (self._ops.buffer, root.named_buffers())):
            for name, tensor in tensors:
                if id(tensor) in told:
                    continue
                told.add(id(tensor))
                if id(tensor) in self._tensors:
                    name = self._tensors[id(tensor)]
                elif name in taken:  # two roots with the same spelling, e.g. generator and discriminator
                    base = name = f"{type(root).__name__}.{name}"
                    count = 1
                    while name in taken:
                        count += 1
                        name = f"{base}#{count}"
                taken.add(name)
                self._tell(op, name, tensor)

    def _tell(self, op, name, tensor):
        if id(tensor) not in self._tensors:
            self._tensors[id(tensor)] = name
            self._owners[id(tensor)] = weakref.ref(tensor)
        local = local_tensor(self._torch, tensor)
        if local is not None:
            op(name, local)
            if local is not tensor:
                self._wrapped[id(tensor)] = name
