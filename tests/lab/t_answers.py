"""t_answers.py: answers.py and table.py on the journals that 0.5.1 has written, whose tables are
committed, and on the settings that are kept beside committed items: the same values come out."""
import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import tarfile
import tempfile
import unittest

import lab
import numpy
import answers
import table

RESULTS = lab.RESULTS
OLD = os.path.join(lab.ROOT, "tests/tools/eval/journals-0.5.1.tar.xz")


def rows_of(name):
    with open(os.path.join(RESULTS, name + ".csv"), encoding="utf-8") as text:
        return list(csv.DictReader(text))


class Journals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with tarfile.open(fileobj=lzma.open(OLD)) as tar:
            tar.extractall(cls.folder.name)
        cls.of = os.path.join(cls.folder.name, "journals-0.5.1/")
        with open(cls.of + "index.txt", encoding="utf-8") as text:
            cls.index = dict(line.rstrip("\n").split("\t") for line in text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def same(self, got, wanted, names):
        """Compare columns: texts as they stand, numbers within a unit of the last digit."""
        for name in names:
            a, b = got[name], wanted[name]
            exact = a == b or not a or not b
            self.assertTrue(a == b if exact else abs(float(a) - float(b)) < 1.01e-6,
                            f"{wanted}: {name}: found {a}")

    def option(self, name, option):
        words = self.index[name].split()
        return words[words.index(option) + 1] if option in words else ""

    def test_threshold(self):
        """Sweeps: thresholds, intervals, and the mean gap closed from 0 to 7 %."""
        all_rows = rows_of("threshold")
        for name in ("threshold-15", "threshold-18", "threshold-19", "threshold-20"):
            got = table.table([f"{self.of}{name}.jsonl"], [f"{self.of}threshold-20.jsonl"])
            policies = {r["policy"] for r in got}
            wanted = [r for r in all_rows if r["wording"] == "story" and r["policy"] in policies]
            self.assertEqual(len(got), len(wanted))
            for a, b in zip(got, wanted):
                self.same(a, b, [n for n in b if n not in ("wording", "free")])

    def test_tasks(self):
        for number, kind in enumerate(("notes", "sort", "sums", "where", "which"), 1):
            got = table.table([f"{self.of}tasks-0{number}.jsonl"])
            for a, b in zip(got, (r for r in rows_of("tasks") if r["kind"] == kind)):
                a["router"] = b["router"] if a["router"].startswith("edge-") else a["router"] or a["policy"]
                self.same(a, b, [n for n in b if n != "kind"])

    def test_ways(self):
        checked = 0
        for number in range(1, 13):
            name = f"ways-{number:02}.jsonl"
            latency = self.option(name, "--latency")
            for a in table.table([self.of + name], [self.of + "ways-01.jsonl"]):
                wanted = [r for r in rows_of("ways") if (r["policy"], r["target"], r["latency_ms"])
                          == (a["policy"], a["target"], latency)]
                if len(wanted) == 1:
                    self.same(a, wanted[0], ("questions", "routed", "accuracy", "accuracy_low",
                                             "accuracy_high", "pgr", "calls_answer", "work"))
                    checked += 1
        self.assertGreater(checked, 20)

    def test_network(self):
        """Answers; times depend on the bytes that a server sends, and network.py has them."""
        checked = 0
        for name in sorted(self.index):
            if not self.option(name, "--bandwidth"):
                continue
            key = [self.option(name, "--latency"), str(int(self.option(name, "--bandwidth")) // 125),
                   self.option(name, "--loss"), self.option(name, "--ahead")]
            wanted = next(r for r in rows_of("network") if not r["deadline_ms"] and
                          [r[x] for x in ("latency_ms", "kbit_s", "loss", "ahead")] == key)
            (got,) = table.table([self.of + name])
            self.same(got, wanted, [n for n in got if n in wanted and not n.endswith("ms")])
            checked += 1
        self.assertEqual(checked, 34)

    def test_paper(self):
        got = table.table([self.of + "paper-01.jsonl"])
        wanted = [r for r in rows_of("paper") if r["way"] == "at its thresholds"]
        self.assertEqual(len(got), len(wanted))
        for a, b in zip(got, wanted):
            self.assertEqual(f"{float(a['threshold']):.4f}", b["threshold"])
            self.assertEqual(f"{100 * int(a['cloud']) / int(a['tokens']):.2f}", b["routed"])

    def test_packed_and_parts(self):
        """A compressed journal, and parts of which two have the same answers, are the whole."""
        path, packed = self.of + "tasks-01.jsonl", self.of + "packed.gz"
        with open(path, "rb") as plain, gzip.open(packed, "wb") as out:
            lines = plain.readlines()
            out.writelines(lines[:900])
        with open(self.of + "rest", "wb") as out:
            out.writelines(lines[:1] + lines[800:])
        whole, parts = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(whole):
            answers.items([path])
        with contextlib.redirect_stdout(parts):
            answers.items([self.of + "rest", packed])
        self.assertEqual(sorted(whole.getvalue().split("\n")), sorted(parts.getvalue().split("\n")))
        self.assertEqual(table.table([path]), table.table([packed, self.of + "rest"]))
        with open(self.of + "other", "wb") as out:
            out.writelines(lines[:1] + [lines[1].replace(b'"tokens":', b'"tokens":1')])
        with self.assertRaises(answers.Refused), contextlib.redirect_stdout(io.StringIO()):
            answers.items([path, self.of + "other"])

    def test_parts_of_others(self):
        """Parts of another run, with another answer or another threshold, are refused."""
        with open(self.of + "tasks-01.jsonl", "rb") as plain:
            first, *lines = plain.readlines()
        own = [x for x in lines if x.startswith(b'{"policy"')][-1]
        at = next(x for x in lines if x.startswith(b'{"calibrated"'))
        low = at.replace(b'"threshold":', b'"threshold":9')
        for refused, *part in (("settings", first.replace(b'"seed":"', b'"seed":"7'), own),
                               ("found two", first, own.replace(b'"cloud":', b'"cloud":1')),
                               ("expected threshold", first, low, own)):
            with open(self.of + "part", "wb") as out:
                out.writelines(part)
            with self.assertRaisesRegex(answers.Refused, refused):
                table.table([self.of + "tasks-01.jsonl", self.of + "part"])


class ByHand(unittest.TestCase):
    def mean(self, *points):
        shares, pgrs = zip(*points)
        return table.apgr7(numpy.array(shares)[:, None], numpy.array(pgrs)[:, None])[0]

    def test_apgr7(self):
        near = lambda got, want: self.assertAlmostEqual(got, want, 12)
        near(self.mean((0.07, 1)), 0.5)  # a triangle
        near(self.mean((0.07, 0.8), (0.035, 0.4)), 0.4)  # not sorted
        near(self.mean((0.14, 1), (0.5, 1)), 0.25)  # cut at 0.5
        near(self.mean((0.02, 0.5)), 0.03 / 0.07)  # the last one's goes on
        near(self.mean((0, 0.6), (0, -0.2)), 0.6)  # equal shares are a step
        near(self.mean((0.07, -1)), -0.5)

    def test_trainings(self):
        """Of two trainings one has all right and the other none: each draw has one of them."""
        draws = table.Draws([i // 4 for i in range(64)])
        two = numpy.repeat([[1.0], [0.0]], 64, axis=1)
        low, high = draws.interval(draws.sums(two) / draws.items)
        self.assertEqual((low, high), (0, 1))
        low, high = draws.accuracy(two, True)
        self.assertTrue(low < 0.0946 and high > 0.9054)  # Wilson's of 1 of 2 questions
        same = numpy.array([[i % 3 > 0 for i in range(64)]], dtype=float)
        three = numpy.repeat(same, 3, axis=0)
        self.assertTrue(numpy.allclose(draws.sums(three), draws.sums(same)))
        for got, want in zip(draws.accuracy(three, True), draws.accuracy(same, True)):
            self.assertAlmostEqual(got, want, 12)


class Kept(unittest.TestCase):
    def test_settings(self):
        """The hash of settings and router in committed items is that of the journal beside them."""
        checked = 0
        for folder in sorted(os.listdir(os.path.join(RESULTS, "real"))):
            here = os.path.join(RESULTS, "real", folder)
            if not os.path.exists(os.path.join(here, "answers.csv.gz")):
                continue
            kept = {}
            with answers.opened(os.path.join(here, "answers.csv.gz")) as text:
                for name, *_, settings in answers.in_full(text):
                    kept.setdefault(f"{name}.jsonl", set()).add(settings)
            for name in sorted(os.listdir(here)):
                if name not in kept:
                    continue
                with open(os.path.join(here, name), encoding="utf-8") as text:
                    journal = answers.Journal(json.loads(text.readline())["settings"])
                hashes = {answers.sha256(f"{journal.digest} {digest}")[:16]
                          for _, _, digest in journal.policies.values()}
                self.assertEqual(kept[name], hashes, name)
                checked += 1
        self.assertGreater(checked, 20)

    def test_pack(self):
        """A pack is read as the lines that it stands for."""
        pack = os.path.join(RESULTS, "real", "open", "answers.csv.gz")
        with answers.opened(pack) as text:
            lines = [",".join(fields[1:]) for fields in answers.in_full(text)]
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as items:
            print(*lines, sep="\n", file=items, flush=True)
            for a, b in zip(answers.read([pack]), answers.read([items.name])):
                self.assertEqual((a.of, a.policy, a.ids, a.groups), (b.of, b.policy, b.ids, b.groups))
                self.assertTrue(all((a.numbers[x] == b.numbers[x]).all() for x in a.numbers))
        with open(pack, "rb") as file, tempfile.NamedTemporaryFile(buffering=0) as other:
            whole = file.read()
            for damaged in (whole[:900], whole[:20] + b"\xff\xff" + whole[22:], whole[:-6] + bytes(6)):
                other.truncate(other.seek(0))
                other.write(damaged)
                self.assertRaisesRegex(answers.Refused, "a whole .gz", answers.read, [other.name])

    def test_trainings(self):
        """Trainings that stand one by one in the settings are one policy, with the hash of all."""
        one = {"trainings": 1, "router": "", "router_fingerprint": ""}
        listed = [{**one, "policy": f"mlp=mix.safetensors.{k}", "router_sha256": str(k)} for k in (1, 2)]
        alone = {**one, "policy": "mlp=mlp.1", "router_sha256": "c"}
        found = answers.trainings({"policies": [*listed, alone]})
        both = answers.sha256("1\0" + "2\0")
        self.assertEqual(found, {"mlp=mix.safetensors.1": ("mlp=mix.safetensors", 1, both),
                                 "mlp=mix.safetensors.2": ("mlp=mix.safetensors", 2, both),
                                 "mlp=mlp.1": ("mlp=mlp.1", 0, "c")})

    def test_numbers(self):
        for value, text in ((0.0, "0.0"), (0.06, "0.06"), (1e-5, "1e-5"), (1e20, "1e20"),
                            (0.00999999978, "0.00999999978"), (3, "3"), (True, "true")):
            self.assertEqual(answers.dumped(value), text)
        self.assertEqual(answers.dumped({"b": [1, None], "a": "é\n"}), '{"a":"é\\n","b":[1,null]}')


if __name__ == "__main__":
    unittest.main()
