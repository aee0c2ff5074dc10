"""Names of tensors, in the program's spelling.

The name of a parameter is the one in named_parameters() of its root, without the parts of wrappers. It therefore
consists of the layer's name and the parameter's own name: "blocks.0.attn.weight".
"""
import weakref

from . import say
from .layers import Layers
from .ops import local_tensor


class Names:
    def __init__(self, torch, ops):
        self._torch = torch
        self._ops = ops
        self.layers = Layers(ops, self._root_is_gone)
        self._tensors = {}    # id(parameter) -> name; kept as long as the parameter lives
        self._owners = {}     # id(parameter) -> weak reference
        self._wrapped = {}    # id(parameter) where the recorded local tensor has no .grad
        self._states = {}     # (id(parameter), key) -> weak reference to the tensor recorded last
        self._signature = None
        self.layers.on_root.append(self._root_is_new)

    def _root_is_new(self, _):
        self._signature = None

    def _root_is_gone(self, others_are_left):
        if not others_are_left:
            # The last model is freed, but its parameters still exist: an adapter that saves can do so now.
            say.guarded("save", self._ops.save)

    # ---- tensors

    def tell(self, optimizers):
        """Passes the names of all parameters and buffers to the adapter, when there are new ones."""
        groups = [(number, group) for number, o in optimizers for group in enumerate(getattr(o, "param_groups", ()))]
        signature = (len(self.layers.roots), hash(tuple(id(p) for _, (_, g) in groups for p in g["params"])))
        if signature == self._signature:
            return
        self._signature = signature
        for key in [key for key, owner in self._owners.items() if owner() is None]:
            del self._owners[key], self._tensors[key]
            self._wrapped.pop(key, None)
        trained = {id(p) for _, (_, group) in groups for p in group["params"]}
        # Trained models first, so that a teacher or an average of the same class does not take their names.
        for root in sorted(self.layers.outermost(), key=lambda r: trained.isdisjoint(r.parameter_ids())):
            self._tell_root(root)
        for number, (index, group) in groups:
            for position, parameter in enumerate(group["params"]):
                if id(parameter) not in self._tensors:
                    self._tell(self._ops.parameter, f"optimizer{number}.group{index}.param{position}", parameter)

    def tell_gradients(self):
        """Passes the gradients of DTensor parameters; the adapter finds other gradients at the parameter."""
        for key, name in self._wrapped.items():
            parameter = self._owners[key]()
            gradient = local_tensor(self._torch, parameter.grad) if parameter is not None else None
            if gradient is not None:
                self._ops.gradient(name, gradient)

    def tell_state(self, optimizer):
        """Passes the tensors of the optimizer's state that are new since the last call."""
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
                    for part, tensor in self._plain_parts(f"{name}.{key}", value):
                        self._ops.state(part, tensor)

    def _plain_parts(self, name, value, depth=4):
        """The plain tensors of a tensor, with their names: a quantised subclass holds codes and scales."""
        tensor = local_tensor(self._torch, value)
        if tensor is not None:
            return [(name, tensor)]
        inner = getattr(value, "_local_tensor", None)
        if inner is not None and depth > 0:
            return self._plain_parts(name, inner, depth - 1)
        parts = say.guarded("optimizer state", lambda: value.__tensor_flatten__()[0]) \
            if hasattr(type(value), "__tensor_flatten__") else None
        return [pair for part in parts or () if depth > 0
                for pair in self._plain_parts(f"{name}.{part}", getattr(value, part), depth - 1)]

    def _tell_root(self, root):
        module = root.module()
        if module is None:
            return
        told, taken = set(), set(self._tensors.values())
        for op, tensors in ((self._ops.parameter, module.named_parameters()),
                            (self._ops.buffer, module.named_buffers())):
            for name, tensor in tensors:
                if id(tensor) in told:
                    continue
                told.add(id(tensor))
                if id(tensor) in self._tensors:
                    name = self._tensors[id(tensor)]
                else:
                    base = name = root.prefix + root.clean(name)
                    count = 1
                    while name in taken:  # names of a freed root whose parameters still exist
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
