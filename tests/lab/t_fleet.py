"""fleet.py against what queueing theory and the event model of decoding ahead say, and the table
that the program's own simulation has made: each value is the same."""
import csv
import os
import subprocess
import sys
import unittest
from types import SimpleNamespace
from unittest import mock

import lab
import fleet
import network

ONE = fleet.Options(idle=0, routed=0.999999, agree=1, edge=0, prefill=1e9, decode=1e9, step=10,
                    prompt=7, tokens=1, latency=0, parallel=1, chunk=0, kv=0, cache=True)
CAR = fleet.Options(idle=60, routed=0.07, agree=0.7, edge=40, prefill=11146, decode=1443, step=11.3,
                    prompt=150, tokens=100, latency=50, parallel=0, chunk=8192, kv=0, cache=False)


def run(o, n):
    f = fleet.Fleet(o, n).run()
    ms = f.now - f.since
    return SimpleNamespace(
        load=f.work / ms, busy=f.busy / ms, calls=1000 * f.answered / ms,
        batch=f.joined / f.passes, read=f.read_ids / f.answered, p50=f.quantile(0.5),
        p95=f.quantile(0.95), answers=1000 * f.answers / ms, answer_ms=f.answers_ms / f.answers)


class Theory(unittest.TestCase):
    def near(self, have, want, share):
        self.assertLessEqual(abs(have - want), share * want, f"{have}, expected {want}")

    def test_queue(self):
        """Many devices that ask seldom make a Poisson process: M/D/1 waits rho D / 2 (1 - rho)."""
        for rho in (0.3, 0.5, 0.7):
            load = run(ONE._replace(idle=5000 / 100 / rho), 5000)
            self.near(load.busy, rho, 0.02)
            self.near(load.answer_ms, 10 + rho * 10 / (2 * (1 - rho)), 0.03)

    def test_limits(self):
        """A closed system: one device never waits; many have N = X (R + Z), too many X = 1 / D."""
        o = ONE._replace(latency=30, idle=0.005)
        one = run(o, 1)
        self.near(one.answer_ms, 40, 1e-3)
        self.near(one.p95, 40, 1e-3)
        o = o._replace(idle=1)
        many = run(o, 400)
        self.near(many.calls, 100, 1e-6)
        self.near(many.answer_ms, 400 * 10 - 1000, 0.01)
        self.near(many.load, 100 * 7 / 1e9, 1e-6)
        # Calls of 10 tokens in one pass: the rate is all that counts.
        o = o._replace(prefill=1000, step=1, parallel=0, prompt=10)
        wide = run(o, 400)
        self.near(wide.calls, 100, 1e-3)
        self.near(wide.load, 1, 1e-3)
        self.assertGreater(wide.batch, 50)
        narrow = run(o._replace(chunk=20), 400)
        self.near(narrow.calls, 100, 1e-3)
        self.near(narrow.batch, 2, 0.01)

    def test_overload(self):
        """Little's law, where an answer of many calls takes minutes."""
        load = run(CAR, 3000)
        self.near(load.answers, load.calls / 7, 0.01)
        self.near(load.answers * (load.answer_ms / 1000 + 60), 3000, 0.01)

    @mock.patch.object(fleet, "LEAST", 1000)
    def test_ahead(self):
        """One device sees every call take latency and step: network.py has the time of a token."""
        draws = network.np.random.default_rng(1).random((2, 100000))
        o = fleet.Options(0.001, 0, 0.7, 10, 1e12, 1, 15, 5, 500, 60, 0, 0, 0, True)
        for routed in (0.1, 0.2, 0.3):
            marks, agrees = (draws[0] < routed).tolist(), (draws[1] < 0.7).tolist()
            at = network.decided(marks, agrees, [75] * len(marks), 10, True)
            load = run(o._replace(routed=routed), 1)
            self.near(load.answer_ms / 500, at[-1] / len(marks), 0.015)
            self.near(load.calls / load.answers, routed * 500, 0.02)

    @mock.patch.object(fleet, "LEAST", 2000)
    def test_cache(self):
        """With the cache a text is read once; a small memory falls back to reading it again."""
        o = fleet.Options(0.1, 0.1, 1, 5, 1e5, 1e4, 5, 50, 100, 20, 0, 0, 0, False)
        without = run(o, 20)
        self.near(without.read, 50 + 49.5, 0.02)  # a call reads the text before its token
        o = o._replace(cache=True)
        with_it = run(o, 20)
        # The last of the routed tokens is on average 1 / r - 1 before the end.
        self.near(with_it.read * with_it.calls / with_it.answers, 50 + 100 - 10, 0.02)
        self.near(run(o._replace(kv=20 * 150), 20).read, with_it.read, 1e-9)
        some, none = run(o._replace(kv=10 * 150), 20).read, run(o._replace(kv=151), 20).read
        self.assertLess(with_it.read, some)
        self.assertLess(some, none)
        self.assertLessEqual(none, without.read * 1.05)

    @mock.patch.object(fleet, "LEAST", 1000)
    def test_whole(self):
        """Whole answers: one read, then one token a pass, as many calls at a time as fit."""
        o = fleet.Options(0, 1, 0, 0, 1000, 200, 1, 100, 50, 10, 0, 0, 0, False)
        one = run(o, 1)
        self.near(one.answer_ms, 100 + 49 * 5 + 10, 1e-9)
        self.near(one.p50, 110, 1e-3)
        o = o._replace(kv=4 * 149)
        many = run(o, 64)
        self.near(many.batch, 4, 0.01)
        self.near(many.answers, 1000 / (100 + 49 * 5), 0.01)
        self.near(run(o._replace(prefill=1e6, decode=20), 1).p50, 50, 1e-3)


class Tables(unittest.TestCase):
    def test_table(self):
        """Rows of fleet.csv; `carries` is another simulation's (below)."""
        with open(os.path.join(lab.RESULTS, "fleet.csv"), encoding="utf-8") as text:
            rows = {tuple(row[:2]): row for row in csv.reader(text)}
        real = [float(fleet.np.float32(v)) for v in (0.07, 0.7, 11.3)]
        o = CAR._replace(routed=real[0], agree=real[1], step=real[2], kv=224000)
        cache, whole = o._replace(cache=True), o._replace(routed=1, cache=True)
        for mode, n, of in (("cache", 10, cache), ("cache", 1000, cache), ("no-cache", 300, o),
                            ("no-cache", 1000, o), ("cloud-alone", 300, whole)):
            want = rows[mode, str(n)]
            got = fleet.row(fleet.Fleet(of, n).run(), int(want[-1])).split(",")
            self.assertEqual([mode, got[0], got[1], *got[3:]], want)


class Command(unittest.TestCase):
    def fleet(self, *args):
        script = os.path.join(lab.STUDY, "fleet.py")
        return subprocess.run([sys.executable, "-B", script, *args], capture_output=True, text=True,
                              check=False)

    def test_rows(self):
        """What is carried keeps the promise, and 5 % more do not; or one device is too many."""
        small = "--cloud-ms 20 --kv 3000 --n-prompt 50 --n-predict 20 --idle 5 --share 0.2".split()
        got = self.fleet(*small, "--devices", "7,376,395", "--cloud-timeout", "100").stdout.split()
        self.assertEqual(got[:2], [
            fleet.COLUMNS, "7,0.200,1,0.0069,0.0946,4.74,1.00,16.1,70.0,77.3,0.923,1.186,376"])
        kept, broken = (float(row.split(",")[9]) for row in got[2:])
        self.assertLessEqual(kept, 100)
        self.assertGreater(broken, 100)
        got = self.fleet(*small, "--devices", "1", "--cloud-timeout", "50").stdout.split()
        self.assertTrue(got[1].endswith(",0"))

    def test_refused(self):
        for wrong in ("--devices 0", "--devices x", "--devices 2000000", "--share 0", "--share 1.5",
                      "--agree 2", "--n-prompt 0", "--prefill 0", "--edge-ms -1", "--kv 10",
                      "--latency 1.5", "--latency 60001", "--idle inf", "x"):
            got = self.fleet(*wrong.split())
            self.assertNotEqual(got.returncode, 0, wrong)
            self.assertEqual(got.stdout, "", wrong)


if __name__ == "__main__":
    unittest.main()
