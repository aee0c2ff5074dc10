"""Names of layers in the usual form: "blocks.2.fc2", and "GPT" for the model itself.

A root is a module that is not called inside another module's forward(). The names of its parts start from it. When
two roots have the same names, the names of the later one get its class as prefix ("Discriminator.net.0"), or "Block#2"
when the class is the same too. Trained models keep the short names; teachers, averages and transforms get the prefix.
A root that contains earlier roots renames them. Modules are remembered by id, as long as they live.
"""
import os
import weakref

from . import wrappers


_PARAMETRIZATIONS = frozenset(("ParametrizationList",))


class Root:
    def __init__(self, module, gone):
        self.module = weakref.ref(module, gone)
        self.parts = [(path, weakref.ref(part), id(part)) for path, part in wrappers.named_modules(module)]
        self.inside = {key for _, _, key in self.parts}
        self.clean = wrappers.cleaner(module)
        parameters = list(module.named_parameters())
        self.has_parameters = bool(parameters)
        self.needs_gradients = any(p.requires_grad for _, p in parameters)
        self.spellings = {path for path, _, _ in self.parts if path} | {self.clean(name) for name, _ in parameters}
        self.class_name = wrappers.class_of(module).__name__
        self.name = self.class_name
        self.prefix = ""  # of the names of its parts: "" or "<name>."

    def parameter_ids(self):
        module = self.module()
        return {id(p) for p in module.parameters()} if module is not None else set()


class Layers:
    def __init__(self, ops, root_is_gone):
        self._ops = ops
        self._root_is_gone = root_is_gone  # called with whether other roots are left
        self.spell = str      # converts a layer's name for the adapter: str, or to bytes
        self.names = {}       # id(module) -> converted layer name; read on every call of a module
        self._texts = {}      # the same names, not converted
        self._below = {}      # id(module) -> prefix of the names of its parts
        self._alive = {}      # id(module) -> weak reference that clears them
        self._optimizers = weakref.WeakSet()
        self._sources = {}    # class -> "file:line"
        self.roots = []       # in order of their first call
        self.on_root = []     # called with the (name, module) of each new root
        self.at_call = {}     # id of a module -> called once with the arguments of its next call

    def optimizer_made(self, optimizer):
        self._optimizers.add(optimizer)

    def text(self, module):
        return self._texts.get(id(module), "")

    def learn(self, module, parent):
        """Names a module that is seen for the first time, below `parent` (None: it is a root)."""
        if parent is not None:
            self._learn_part(module, parent)
        elif (module._modules or module._parameters or module._buffers) \
                and not wrappers.is_a(module, _PARAMETRIZATIONS):
            self._add_root(module)
        else:  # a loss, an activation: often created again for each call; a weight of a model that is not made yet
            self._set(module, type(module).__name__, type(module).__name__ + ".")
        return self.names[id(module)]

    def outermost(self):
        alive = [root for root in self.roots if root.module() is not None]
        return [r for r in alive if not any(id(r.module()) in other.inside for other in alive if other is not r)]

    def _learn_part(self, module, parent):
        below = self._below.get(id(parent), "")
        key = next((key for key, value in parent._modules.items() if value is module), None)
        if key is not None and wrappers.holds_as_part(parent, key):
            self._set(module, self.text(parent), below)
        else:
            text = below + (key or wrappers.class_of(module).__name__)
            self._set(module, text, text + ".")
        self._tell_source(module)

    def stop(self):
        """Forgets all modules without a call: Python clears our globals before it frees the program's modules."""
        self.roots.clear()
        self._alive.clear()

    # ---- roots

    def _add_root(self, module):
        key = id(module)
        root = Root(module, lambda reference: self._gone(reference))
        self._below.setdefault(key, "")
        self.roots.append(root)
        for other in self._place(root) + [root]:
            self._spell_root(other)
        for told in self.on_root:
            told([(self.text(part), part) for part in (reference() for _, reference, _ in root.parts)
                  if part is not None])

    def _place(self, root):
        """Chooses the root's name and prefix; returns the roots that must be renamed."""
        others = [other for other in self.outermost() if other is not root]
        names, count = {other.name for other in others}, 1
        while root.name in names:
            count += 1
            root.name = f"{root.class_name}#{count}"
        trained = {id(p) for optimizer in list(self._optimizers)
                   for group in getattr(optimizer, "param_groups", ()) for p in group["params"]}
        is_trained = not trained.isdisjoint(root.parameter_ids())
        if not root.has_parameters or (trained and not is_trained and not root.needs_gradients):
            root.prefix = root.name + "."
            return []
        alike = [other for other in others if not other.prefix and not other.spellings.isdisjoint(root.spellings)]
        if alike and (not is_trained or any(not trained.isdisjoint(other.parameter_ids()) for other in alike)):
            root.prefix = root.name + "."
            return []
        for other in alike:
            other.prefix = other.name + "."
        return alike

    def _spell_root(self, root):
        for path, reference, _ in root.parts:
            part = reference()
            if part is not None:
                self._set(part, root.prefix + path if path else root.name,
                          root.prefix + path + "." if path else root.prefix)
                self._tell_source(part)

    def _gone(self, reference):
        self.roots = [root for root in self.roots if root.module is not reference]
        self._root_is_gone(bool(self.roots))

    # ---- one module

    def _set(self, module, text, below):
        key = id(module)
        self._texts[key] = text
        self._below[key] = below
        self.names[key] = self.spell(text)
        if key not in self._alive:
            self._alive[key] = weakref.ref(module, lambda _: self._forget(key))

    def _forget(self, key):
        for of_module in (self.names, self._texts, self._below, self._alive):
            of_module.pop(key, None)

    def _tell_source(self, module):
        if wrappers.wrapped(module) is None:
            where = self._source_of(wrappers.class_of(module))
            if where:
                self._ops.source(self.text(module), where)

    def _source_of(self, cls):
        if cls not in self._sources:
            self._sources[cls] = _place_of(getattr(cls, "forward", None))
        return self._sources[cls]


def _place_of(function):
    """file:line of a function, relative to the working directory when below it; "" when there is none."""
    for _ in range(16):  # decorators of decorators
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    if code is None or code.co_name == "_forward_unimplemented":  # of torch itself, as in ModuleList
        return ""
    path, here = os.path.abspath(code.co_filename), os.getcwd().rstrip("/") + "/"
    return f"{path[len(here):] if path.startswith(here) else path}:{code.co_firstlineno}"
