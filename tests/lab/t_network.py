"""network.py: answers whose times can be added up by hand, and rows of tables that the program's
own virtual clock has made. From the same answers each value is the same, lost packets included."""
import csv
import json
import os
import unittest

import lab
import network
from network import Call, Device, Network

SLOW = Device(edge=10, prefill=2, cloud=0)


def decided(text, ahead, call):
    """Times of tokens. e: edge; c: the cloud says what the edge would, x: something else. Steps of
    10 ms; the calls take turns at `call` and 40 ms."""
    turns, ms = 0, []
    for mark in text:
        ms.append((40 if turns % 2 else call) if mark != "e" else 0)
        turns += mark != "e"
    at = network.decided([m != "e" for m in text], [m == "c" for m in text], ms, 10, ahead)
    return list(network.np.diff(at, prepend=-14))  # 7 ids at 2 ms come first


def of(name, marks=None):
    """The lines of a journal, with ids and sizes where `marks` has them."""
    lines = [json.loads(line) for line in lab.journals(name)[name].splitlines()]
    lines = [line for line in lines if line.get("trace")]
    for line in lines:
        line.update((marks or {}).get(str(line["item"]), {}))
    return lines


def table(name):
    with open(os.path.join(lab.RESULTS, name), encoding="utf-8") as text:
        return list(csv.DictReader(text))


class ByHand(unittest.TestCase):
    def test_order_of_decisions(self):
        self.assertEqual(decided("eee", 0, 25), [14, 10, 10])
        self.assertEqual(decided("eee", 1, 25), [14, 10, 10])
        self.assertEqual(decided("ceec", 0, 25), [39, 10, 10, 50])
        # Asked at 14, answered at 39, seen after the step that ends at 44, which decides what was
        # written until then: tokens 0 to 2. The call at 44 takes until 84.
        self.assertEqual(decided("ceec", 1, 25), [44, 0, 0, 40])
        # Without the 4 ms before the first token: asked at 10, answered at 35, seen at 40.
        self.assertEqual(decided("exeee", 1, 25), [14, 40, 10, 10, 10])
        # Asked at 10, awaited from 20 to 35; the second call, at 45, lasts until 85.
        self.assertEqual(decided("exceee", 1, 25), [14, 35, 50, 0, 0, 0])
        self.assertEqual(decided("exceee", 0, 25), [14, 35, 50, 10, 10, 10])
        self.assertEqual(decided("eec", 1, 25), [14, 10, 35])  # nothing to do in the meantime
        # An answer that comes just as a step ends is seen after the next one.
        self.assertEqual(decided("ceee", 1, 10), [34, 0, 0, 10])

    def test_long_texts(self):
        """With a share r routed and a of them guessed, the bounds of decided()."""
        draws = network.np.random.default_rng(1).random((2, 20000))
        for step, r, a, call in ((10, 0.1, 0.7, 75), (10, 0.3, 0.7, 75), (50, 0.2, 0.4, 150)):
            routed, agrees = draws[0] < r, draws[1] < a
            ms = [call * bool(x) for x in routed]
            in_step, ahead = (network.decided(routed, agrees, ms, step, w)[-1] / len(ms)
                              for w in (0, 1))
            self.assertAlmostEqual(in_step, step + routed.mean() * call, delta=0.01)
            self.assertGreaterEqual(ahead, step + (routed & ~agrees).mean() * call - 0.01)
            self.assertLess(ahead, in_step)

    def test_calls(self):
        call = Call(network.key_of(0, [3, 1, 4]), 200, 300, 700)
        self.assertEqual(network.call_ms(SLOW, Network(80, 0, 0, 0), call), 80)
        slow = Device(10, 2, 5)
        self.assertEqual(network.call_ms(slow, Network(80, 10000, 7000, 0), call), 235)

    def test_losses(self):
        """Two packets of which a fifth is lost: 36 % of the calls wait for 250 ms or more."""
        net = Network(50, 0, 0, 0.2)
        keys = [network.key_of(9, [i, 7]) for i in range(200)]
        ms = [network.transit(net, Call(key, 200, 300, 700)) for key in keys]
        self.assertTrue(all((m - 50) % 250 == 0 for m in ms))
        self.assertTrue(40 < sum(m > 50 for m in ms) < 110)
        self.assertEqual(ms, [network.transit(net, Call(key, 0, 9, 9)) for key in keys])

    def test_draws(self):
        """Draws of the program (tools/lab/stand_in/fault.c): the finisher of splitmix64."""
        self.assertEqual(int(network.splitmix(0)), 0xe220a8397b1dcdaf)
        self.assertEqual(int(network.splitmix(1)), 0x910a2dec89025cc1)

    def test_without_ids_and_sizes(self):
        lines = of("network-09")
        self.assertEqual(network.row(lines, Device(50, 10, 20), Network(100, 0, 0, 0), 0)[:3],
                         (200, 9545, 511))
        (one, *_), first = network.calls_of(lines[2]).values(), lines[2]
        self.assertEqual((one.up, one.down), (first["bytes_up"] / 2, first["bytes_down"] / 2))


class Tables(unittest.TestCase):
    """What the program has measured before, and is computed from its journals now."""

    def test_network(self):
        """All rows without a deadline: their answers are the same. ids, sizes of requests and
        replies: those of the program that made the table."""
        lines, rows = of("network-09", lab.fixture("network-calls.json.xz")), 0
        self.assertEqual(sum(sum(x["header"]) + sum(x["up"]) for x in lines if "up" in x),
                         sum(x["bytes_up"] for x in lines))
        alone = of("network-35")
        for row in table("network.csv"):
            if row["deadline_ms"]:
                continue
            rate = 125 * float(row["kbit_s"] or 0)
            net = Network(float(row["latency_ms"] or 0), rate, rate, float(row["loss"] or 0))
            got = network.row(alone if row["factor"] == "alone" else lines, Device(50, 10, 20), net,
                              int(row["ahead"] or 0))
            want = [row[k] for k in ("questions", "tokens", "cloud", "accuracy", "accuracy_low",
                                     "accuracy_high", "ms", "ttft_ms", "tbt_ms", "tbt_p95_ms")]
            self.assertEqual([*map(str, got[:3]), *(f"{v:.6f}" for v in got[3:6]),
                              *(f"{v:.3f}" for v in got[6:])], want, row)
            rows += 1
        self.assertEqual(rows, 35)

    def test_each_token(self):
        """Each token's µs, and Table 1's last column: seconds for 100 tokens."""
        for name, way, ahead in (("paper-02", "in step", 0), ("paper-03", "ahead", 1)):
            points, device, net = {}, Device(280, 0, 730), Network(170, 0, 0, 0)
            for line in of(name):
                if line["policy"] == "mlp":
                    points.setdefault(line["point"], []).append(line)
                    ms = network.times(line, device, net, ahead)
                    self.assertEqual([round(1000 * v) for v in ms], line["us"])
            want = [(x["routed"], x["overall_s"]) for x in table("paper.csv") if x["way"] == way]
            got = [network.row(points[k], device, net, ahead) for k in sorted(points)]
            self.assertEqual([(f"{100 * cloud / tokens:.2f}", f"{ms * n / tokens / 10:.3f}")
                              for n, tokens, cloud, *_, ms, _, _, _ in got], want)

    def test_ways(self):
        of_mlp = {0: ("02", "03", "04"), 50: ("10", "11", "12"), 170: ("06", "07", "08")}
        alone = {0: "01", 50: "09", 170: "05"}
        jobs = [(i, latency, "mlp") for latency in of_mlp for i in of_mlp[latency]] + [
            (i, latency, policy) for latency, i in alone.items() for policy in ("never", "always")]
        for journal, latency, policy in jobs:
            own = [x for x in of(f"ways-{journal}") if x["policy"] == policy]
            net = Network(latency, 0, 0, 0)
            n, tokens, cloud, *rest = network.row(own, Device(50, 10, 20), net, 1)
            want = [x for x in table("ways.csv") if x["policy"] == policy and
                    x["latency_ms"] == str(latency) and x["routed"] == f"{cloud / tokens:.6f}"]
            got = str(n), *(f"{v:.6f}" for v in rest[:3]), f"{rest[3]:.3f}"
            self.assertEqual([got], [(x["questions"], x["accuracy"], x["accuracy_low"],
                                      x["accuracy_high"], x["ms"]) for x in want])


if __name__ == "__main__":
    unittest.main()
