"""checks.py - what the checks of tools/lab/study share: `check` says what does not hold, and `end`
ends with 1 then."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tools/lab/study"))
failed = []


def check(true, what):
    if not true:
        failed.append(what)
        print(f"{os.path.basename(sys.argv[0])[:-3]}: {what}", file=sys.stderr)


def near(got, want, off=1e-9):
    return abs(got - want) < off


def end():
    sys.exit(bool(failed))
