"""plots.py: which rows become which line, what options change, what is refused; the same bytes for
the same data, labels apart, and no more series than a reader tells apart."""
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest

import lab

try:
    import matplotlib  # noqa: F401
except ImportError:
    lab.skip(f"no matplotlib for {sys.executable} (sh tools/setup.sh lab)")
import plots

TABLE = '''policy,share,"right, %",low,high,kind
mlp,2,90,80,95,a
mlp,0,40,30,50,a
"said ""x"", so",0,40,30,50,a
"said ""x"", so",3,50,40,60,a
mlp,1,72,62,82,b
random,0,,,,b
'''
LINES = "--x share --by policy --interval low,high --y".split() + ["right, %"]
KERNELS = '''op,isa,shape,ns,gb_s,read_gb_s,gop_s,peak_gop_s,times_scalar,level,doubtful
matmul_q8,scalar,gate 1 token,9,2,30,4,10,1,L3,
matmul_q8,avx2,gate 1 token,9,20,30,40,200,1,L3,
matmul_q8,avx2,gate 8 tokens,9,2,10,160,200,1,memory,busy
add_f32,avx2,row,9,2,10,,,1,L1,
'''
LIMITS = '''limit,unit,n_threads,one_thread,all_threads,bytes,doubtful,cpu
read from memory,GB/s,2,10,20,,,x
read 1 MiB again and again,GB/s,2,40,80,1048576,,x
read 64 MiB again and again,GB/s,2,11,20,67108864,others,x
'''


class Plots(unittest.TestCase):
    def draw(self, table, *args):
        """Return the picture of a table, as the script writes it in this process."""
        with tempfile.TemporaryDirectory() as folder:
            path, argv, stdin = os.path.join(folder, "t.svg"), sys.argv, sys.stdin
            sys.argv, sys.stdin = ["plots.py", "-", *args, "-o", path], io.StringIO(table)
            try:
                plots.main()
            finally:
                sys.argv, sys.stdin = argv, stdin
            with open(path, encoding="utf-8") as svg:
                return svg.read()

    def data(self, svg):
        text = re.search("<dc:description>(.*?)</dc:description>", svg, re.S).group(1)
        return text.replace("&quot;", '"').splitlines()

    def refuses(self, words, table, *args):
        with self.assertRaisesRegex(plots.Refused, words):
            self.draw(table, *args)

    def test_lines(self):
        svg = self.draw(TABLE, *LINES, "--title", "A <finding>", "--note", "why", "--guide",
                        "40=alone")
        self.assertEqual(self.data(svg), [
            "series,x,y,low,high", "mlp,0,40,30,50", "mlp,1,72,62,82", "mlp,2,90,80,95",
            'said "x", so,0,40,30,50', 'said "x", so,3,50,40,60', "random,0,,,", "alone,,40,,"])
        self.assertIn(">A &lt;finding&gt;</text>", svg)
        for text in (">why</text>", ">alone</text>", ">mlp</text>"):
            self.assertEqual(svg.count(text), 1, text)
        self.assertNotIn(">random<", svg)
        self.assertNotIn("<dc:date>", svg)
        self.assertEqual(svg.count('id="FillBetween') + svg.count('id="PolyCollection'), 2)
        again = self.draw(TABLE, *LINES, "--title", "A <finding>", "--note", "why", "--guide",
                          "40=alone")
        self.assertEqual(svg, again)

    def test_labels_stand_apart(self):
        rows = "".join(f"s{i},{x},{x * (1 + i / 1000)}\n" for i in range(8) for x in range(3))
        svg = self.draw("by,x,y\n" + rows, "--x", "x", "--y", "y", "--by", "by")
        at = [float(re.search(r' y="([0-9.]+)"[^<]*>s%d</text>' % i, svg).group(1))
              for i in range(8)]
        apart = [b - a for a, b in zip(sorted(at), sorted(at)[1:])]
        self.assertGreaterEqual(min(apart), plots.APART - 0.1)
        self.refuses("at most 8 series, found 9", "by,x,y\n" + rows + "s8,1,1\n", "--x", "x", "--y",
                     "y", "--by", "by")
        dots = "by,x,y\n" + "".join(f"s{i},{i},{i}\n" for i in range(12))
        for args in (("--x", "x", "--dots"), ("--bars", "x")):
            svg = self.draw(dots, *args, "--y", "y", "--by", "by")
            self.assertTrue(all(f">s{i}</text>" in svg for i in range(12)))

    def test_bars(self):
        svg = self.draw(TABLE, "--bars", "policy", "--y", "right, %", "--by", "kind", "--interval",
                        "low,high")
        self.assertEqual(self.data(svg)[1:], [
            "a,mlp,90,80,95", "a,mlp,40,30,50", 'a,said "x", so,40,30,50',
            'a,said "x", so,50,40,60', "b,mlp,72,62,82", "b,random,,,"])
        for text, n in (("mlp", 3), ("random", 1), ("b", 1), ("72", 1)):
            self.assertEqual(svg.count(f">{text}</text>"), n, text)
        self.assertIn("x,-3,", self.draw("a,b\nx,-3\n", "--bars", "a", "--y", "b"))

    def test_tables(self):
        self.assertEqual(self.data(self.draw("a,b\r\n1,2\r\n2,3", "--x", "a", "--y", "b"))[1:],
                         [",1,2,,", ",2,3,,"])
        two = "--x", "a", "--y", "b"
        for words, table in (
                ("expected a column b, found a,c", "a,c\n1,2\n"),
                ("row 2: expected 2 fields", "a,b\n1,2\n3\n"),
                ("expected 2 fields", "a,b\n1,2,3\n"), ("-: ", 'a,b\n"1,2\n'),
                ("a header and rows", "a,b\n"), ("a header and rows", ""),
                ("b: expected a number, found nan", "a,b\n1,nan\n"),
                ("b: expected a number, found mlp", "a,b\n1,mlp\n"),
                ("no point is left", "a,b\n1,\n")):
            self.refuses(words, table, *two)

    def test_bench(self):
        svg = self.draw(KERNELS, "--roofline")
        self.assertEqual(self.data(svg), [
            "matmul_q8 is fastest with avx2: 160 GOP/s", "series,x,y,low,high",
            "scalar,gate 1 token,4,,", "avx2,gate 1 token,40,,", "avx2,gate 8 tokens,160,,"])
        for text in ("L3 30 GB/s", "memory 10 GB/s", "(1 rows doubtful)"):
            self.assertIn(text, svg)
        none = KERNELS.split("matmul", maxsplit=1)[0] + "a,b,c,1,1,1,,,1,L1,\n"
        self.refuses("an operation that multiplies", none, "--roofline")
        svg = self.draw(LIMITS, "--caches")
        self.assertEqual(self.data(svg)[1:], ["1 thread,1,40,,", "1 thread,64,11,,",
                                              "2 threads,1,80,,", "2 threads,64,20,,"])
        self.assertIn("(doubtful)", svg)

    def test_command(self):
        script = os.path.join(lab.STUDY, "plots.py")
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "t.csv")
            with open(table, "w", encoding="utf-8") as out:
                out.write(TABLE)
            for args in (["--x", "share"], ["--y", "low"],
                         ["--bars", "a", "--x", "b", "--y", "low"],
                         ["--bars", "policy", "--y", "low", "--dots"],
                         ["--x", "share", "--y", "low", "--interval", "low"],
                         ["--x", "share", "--y", "low", "--guide", "alone"],
                         ["--x", "share", "--y", "low", "--guide", "inf=a"],
                         ["--x", "share", "--y", "low", "-o", os.path.join(folder, "none/t.svg")]):
                got = subprocess.run([sys.executable, "-B", script, table, *args], check=False,
                                     capture_output=True, text=True)
                self.assertNotEqual(got.returncode, 0, args)
                self.assertEqual(got.stdout, "", args)


if __name__ == "__main__":
    unittest.main()
