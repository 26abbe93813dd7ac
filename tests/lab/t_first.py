"""first.py asks, loads, draws, trains a router and asks again; and no program of the folder shows a
traceback where a part of its journal is missing: one line names the file and what was expected."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import lab

try:
    import matplotlib  # noqa: F401
except ImportError:
    lab.skip(f"no matplotlib for {sys.executable} (sh tools/setup.sh lab)")
PROGRAM = os.environ.get("MIZZLE") or os.path.join(os.environ.get("BUILD", "build/x86_64-release"), "mizzle")


def run(*args):
    return subprocess.run([sys.executable, "-B", os.path.join(lab.STUDY, args[0]), *args[1:]], text=True,
                          capture_output=True, env={**os.environ, "MIZZLE": PROGRAM}, cwd=lab.ROOT)


class First(unittest.TestCase):
    def test_first(self):
        with tempfile.TemporaryDirectory() as folder:
            got = run("first.py", folder, "12")
            self.assertEqual(got.returncode, 0, got.stderr)
            head, *rows = [line.split(",") for line in got.stdout.splitlines()]
            self.assertEqual(head, ["policy", "right", "routed"])
            right = {(name, i): float(x) for i, (name, x, _) in enumerate(rows)}
            self.assertEqual([r[0] for r in rows], ["always", *["max-prob"] * 3, *["mlp"] * 3,
                                                    *["mlp=linear"] * 3, "never"])
            mean = {p: sum(x for (q, _), x in right.items() if q == p) / 3 for p in ("mlp=linear", "never")}
            self.assertGreater(mean["mlp=linear"], 3 * mean["never"] + 10)  # never has one row
            with open(os.path.join(folder, "first.svg"), encoding="utf-8") as svg:
                self.assertIn("mlp=linear,", svg.read())


class Refusals(unittest.TestCase):
    PROGRAMS = (("table.py",), ("figures.py",), ("claim.py", "--of", "a,b"), ("network.py",),
                ("paper.py", "table", "280", "900"))

    def refuses(self, words, text, *program):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as journal:
            print(*text, sep="\n", end="\n" if text else "", file=journal, flush=True)
            got = run(*program, journal.name)
            self.assertNotEqual(got.returncode, 0, program)
            self.assertEqual(len(got.stderr.splitlines()), 1, got.stderr)
            for word in (journal.name, "expected", words):
                self.assertIn(word, got.stderr, program)

    def test_refusals(self):
        lines = lab.journals("tasks-01")["tasks-01"].splitlines()
        answer = next(i for i, line in enumerate(lines) if "policy" in json.loads(line))
        for program in self.PROGRAMS:
            self.refuses("", [], *program)
            self.refuses("", lines[:1], *program)
        for field, *program in (("tokens", "figures.py"), ("us", "table.py"), ("bytes_up", "network.py"),
                                ("trace", "paper.py", "table", "280", "900")):
            one = json.loads(lines[answer])
            del one[field]
            self.refuses(field, [*lines[:answer], json.dumps(one), *lines[answer + 1:]], *program)


if __name__ == "__main__":
    unittest.main()
