"""lab.py - what the tests of tools/lab/study share: without numpy they end as SKIP, aloud."""
import json
import lzma
import os
import re
import sys
import tarfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
STUDY, RESULTS = os.path.join(ROOT, "tools/lab/study"), os.path.join(ROOT, "router/results")
sys.path.insert(0, STUDY)


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


try:
    import numpy  # noqa: F401
except ImportError:
    skip(f"no numpy for {sys.executable} (sh tools/setup.sh lab)")
if re.search("-(?!release)[a-z]*$", os.environ.get("BUILD", "")):
    skip("scripts are the same in every build")


def journals(*names):
    """Return {NAME: text} of the journals that 0.5.1 has written, NAME.jsonl."""
    with tarfile.open(os.path.join(ROOT, "tests/tools/eval/journals-0.5.1.tar.xz")) as tar:
        return {name: tar.extractfile(f"journals-0.5.1/{name}.jsonl").read().decode()
                for name in names}


def fixture(name):
    with lzma.open(os.path.join(ROOT, "tests/lab", name), "rt") as text:
        return json.load(text)
