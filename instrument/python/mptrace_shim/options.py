"""The options file (runtime/trace/options.hpp): the few keys that the Python part needs."""


class Options:
    def __init__(self, values):
        self.mode = values.get("mode", "watch")
        self.eager = values.get("eager") == "1"
        self.quiet = values.get("quiet") == "1"

    @property
    def wants_layers(self):
        return self.mode in ("local", "step", "trajectory")


def read(path):
    """None when the file cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return None
    return Options(dict(line.split("=", 1) for line in lines if "=" in line))
