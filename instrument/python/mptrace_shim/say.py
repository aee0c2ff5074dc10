"""What this part has to say, and how a fault of ours ends: in one line, with the program going on."""
import os

quiet = False
_said = set()


def line(text):
    if quiet:
        return
    try:
        # Not sys.stderr: the program may have replaced it.
        os.write(2, ("mp-trace: " + text.replace("\n", " ") + "\n").encode("utf-8", "replace"))
    except OSError:
        pass


def once(where, error):
    """A fault: said the first time for each place."""
    if where not in _said:
        _said.add(where)
        line(f"internal fault in the Python part ({where}): {error!r}; this part is off, the program goes on")


def guarded(where, function, *arguments):
    """The function's result, or None and a line when it fails."""
    try:
        return function(*arguments)
    except Exception as error:
        once(where, error)
        return None


def hide_frame(error):
    """Takes the innermost caller's frame, ours, out of the traceback that the program will print.

    For `except BaseException as error: hide_frame(error); raise`, which adds no frame of its own.
    """
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next


def unseen(function):
    """A wrapper whose frame warnings.warn(stacklevel=...) and logging pass over, so that they name the program's line.

    Both leave out frames whose file is called after importlib's bootstrap, as Python does with its own.
    """
    code = function.__code__
    function.__code__ = code.replace(co_filename=code.co_filename + " (importlib._bootstrap)")
    return function
