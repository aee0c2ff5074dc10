"""Messages of the Python part. An internal fault becomes one line, and the program continues."""
import os
import sys

quiet = False
_said = set()
_first_stderr = None


def line(text):
    if quiet:
        return
    try:
        # Not sys.stderr, because the program may have replaced it.
        os.write(2, ("mp-trace: " + text.replace("\n", " ") + "\n").encode("utf-8", "replace"))
    except OSError:
        pass


def keep_first_stderr():
    """Keeps the stderr that the kernel of a notebook was started with.

    ipykernel puts a pipe in its place, which a thread reads. At the end of the process nothing reads it any more.
    """
    global _first_stderr
    replaced = getattr(sys.stderr, "_original_stdstream_copy", None)
    if isinstance(replaced, int):
        _first_stderr = os.dup(replaced)


def use_first_stderr():
    if _first_stderr is not None:
        os.dup2(_first_stderr, 2)


def once(where, error):
    """Reports a fault, once for each place."""
    if where not in _said:
        _said.add(where)
        line(f"internal fault in the Python part ({where}): {error!r}; this part is off, the program goes on")


def guarded(where, function, *arguments):
    """The function's result; None and one line on stderr when it fails."""
    try:
        return function(*arguments)
    except Exception as error:
        once(where, error)
        return None


def hide_frame(error):
    """Removes our own frame, the innermost caller's, from the traceback that the program will print.

    For `except BaseException as error: hide_frame(error); raise`, which adds no frame of its own.
    """
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next


def unseen(function):
    """A wrapper whose frame warnings.warn(stacklevel=...) and logging skip, so that they name the program's line.

    Both skip frames whose file name contains importlib's bootstrap, as for Python's own frames.
    """
    code = function.__code__
    function.__code__ = code.replace(co_filename=code.co_filename + " (importlib._bootstrap)")
    return function
