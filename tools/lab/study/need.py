"""need.py - end a script at once that lacks a module, with the command that brings it."""
import importlib.util
import sys


def need(*modules):
    for name in modules:
        if importlib.util.find_spec(name) is None:
            sys.exit(f"no {name} for {sys.executable}: sh tools/setup.sh lab")
