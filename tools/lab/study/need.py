"""need.py - how a program of this folder ends: at once where it lacks a module, with the command
that brings it, and with one line where it is refused what it needs."""
import importlib.util
import os
import sys


class Refused(Exception):
    """One line for the user, and the exit code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def need(*modules):
    for name in modules:
        if importlib.util.find_spec(name) is None:
            sys.exit(f"no {name} for {sys.executable}: sh tools/setup.sh lab, which brings it to "
                     "/usr/bin/python3")


def end(main, *args):
    """Run a program; what it refuses, and a file that cannot be read, are one line on stderr."""
    name = os.path.basename(sys.argv[0])
    try:
        main(*args)
    except Refused as e:
        print(f"{name}: {e}", file=sys.stderr)
        sys.exit(e.code)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as e:
        sys.exit(f"{name}: {e.filename}: {e.strerror}")
