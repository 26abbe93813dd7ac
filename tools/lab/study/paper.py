#!/usr/bin/python3
"""paper.py - the paper's Table 1 from a journal, and the page of tools/lab/paper.sh.

Usage: paper.py table EDGE_MS CALL_MS JOURNAL
       paper.py report OUT NAME=VALUE...    of paper.sh: OUT/claims.csv and OUT/report.html

Source: She et al., arXiv 2504.07878. A token of an answer takes EDGE_MS in the small model, a
routed one CALL_MS more, each call awaited. A row is a threshold; seconds are for 100 tokens; TTFT
is the median; TBT is the small model's time by the tokens that it contributed, as in the printed rows.

A claim holds (yes) or not (no) where the whole interval says so, else it is open. A share has the
normal interval over 30 questions or more, of the ratio of the cloud's tokens to all.
"""
import csv
import html
import io
import os
import re
import subprocess
import sys

from need import end, need

need("numpy")
import numpy as np

import table
from answers import Refused

CLOUD = "=#?"  # marks of a trace
HERE = os.path.dirname(os.path.abspath(__file__))
PRINTED = os.path.join(HERE, "../../../router/results/paper.csv")
STYLE = (":root{color-scheme:light dark}body{font-family:sans-serif;max-width:60em;margin:2em auto;"
         "padding:0 1em;line-height:1.4}table{border-collapse:collapse;font-size:85%}th,td{padding:"
         ".2em .6em;border-bottom:1px solid #8886;text-align:left}td:not(:first-child){white-space:"
         "nowrap}svg{max-width:100%;height:auto}code{overflow-wrap:anywhere}")
RIGHT, SHARE = "answers that are right (%)", "tokens from the cloud (%)"
COLUMNS = "threshold,routed of 100,SLM s,TTFT s,TBT s,communication and LLM s,overall s"


def table_line(row, edge, call):
    tokens, cloud = row.sum["tokens"], row.sum["cloud"]
    first = np.median([edge + call * (x["trace"][:1] in CLOUD) for x in row.lines if x["trace"]])
    own, calls = edge / 10, call / 10 * cloud / tokens  # seconds of 100 tokens
    between = f"{edge / 1000 * tokens / (tokens - cloud):.3f}" if tokens > cloud else "-"
    return (f"{row.threshold:.4f}", f"{100 * cloud / tokens:.2f}", f"{own:.3f}",
            f"{first / 1000:.3f}", between, f"{calls:.3f}", f"{own + calls:.3f}")


def table_1(journal, edge, call):
    rows = [table_line(r, edge, call) for r in table.read([journal]) if not np.isnan(r.threshold)]
    return ["threshold,routed,edge_s,ttft_s,tbt_s,cloud_s,overall_s".split(","), *rows]


def share_of(row):
    """Return the cloud's share of the tokens, and its interval."""
    tokens, cloud = (row.of[x].sum(axis=0) for x in ("tokens", "cloud"))
    n, share = len(tokens), cloud.sum() / tokens.sum()
    half = 1 if n < 30 else 3 / tokens.sum()
    if n >= 30 and cloud.sum():
        square = ((cloud - share * tokens) ** 2).sum()
        half = 1.959964 * np.sqrt(square * n / (n - 1)) / tokens.sum()
    return share, max(share - half, 0), min(share + half, 1)


def holds(kind, value, low, high):
    """kind: least, below, or how far from the value it may be."""
    if np.isnan(low):
        return "open"
    if kind in ("least", "below"):
        above = low >= value if kind == "least" else high < value
        none = high < value if kind == "least" else low >= value
        return "yes" if above else "no" if none else "open"
    if low > value + kind or high < value - kind:
        return "no"
    return "open" if low < value - kind or high > value + kind else "yes"


def rows_of(path):
    with open(path, encoding="utf-8") as text:
        return list(csv.DictReader(text))


def html_table(lines):
    out = ["<table>"]
    for i, line in enumerate(lines):
        cell = "td" if i else "th"
        text = (str(x).replace("&", "&amp;").replace("<", "&lt;") for x in line)
        out.append("<tr>" + "".join(f"<{cell}>{x}</{cell}>" for x in text) + "</tr>")
    return "\n".join([*out, "</table>"])


def picture(header, rows, *options):
    """Return a picture for the page, which needs nothing from elsewhere (plots.py)."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    made = subprocess.run([sys.executable, "-B", os.path.join(HERE, "plots.py"), "-", *options],
                          input=text.getvalue(), text=True, capture_output=True)
    if made.returncode:
        raise Refused(1, made.stderr.strip())
    svg = made.stdout[made.stdout.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    return re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).strip()


def percent(row, name):
    return f"{100 * float(row[name]):.1f}" if row[name] else ""


def interval(row, name):
    ends = percent(row, name + "_low"), percent(row, name + "_high")
    return f"{ends[0]} to {ends[1]}" if ends[0] else ""


class Page:
    def __init__(self, out, of):
        self.out, self.of = out, of
        self.edge_ms, self.call_ms = float(of["edge_ms"]), float(of["call_ms"])
        self.ways, self.thresholds = (rows_of(f"{out}/{x}.csv") for x in ("ways", "thresholds"))
        self.printed = [list(r.values())[1:] for r in rows_of(PRINTED) if r["way"] == "printed"]
        self.edges = of["edges"].split()
        self.repeats = int(of["repeats"])

    def way(self, row):
        return row["router"] if row["policy"] == "mlp" else row["policy"]

    def seconds(self, row):
        steps = float(row["cloud_answer"]) + float(row["edge_answer"])
        return (self.edge_ms * steps + self.call_ms * float(row["calls_answer"])) / 1000

    def claim(self, name, kind, value, command, figure, low, high):
        text = ["" if np.isnan(x) else f"{x:.4f}" for x in (figure, low, high)]
        shown = f"{value:.4f}" if name.startswith("Table 1") else f"{value:g}"
        return [name, shown, command, *text, holds(kind, value, low, high)]

    def claims(self):
        of, out = self.of, self.out
        asks = f"{of['by']} {of['large']} {of['task']} {of['ask']}"
        command = f"mizzle eval -m {self.edges[0]} {asks}"
        ending = ".1" if self.repeats > 1 else ""
        several = f" (mean with .2 to .{self.repeats})" if self.repeats > 1 else ""
        number = lambda row, name: [float(row[name + x] or "nan") for x in ("", "_low", "_high")]
        routed = {r.label: r for r in table.read([f"{out}/ways-0.06.jsonl"])}
        lines = ["claim,paper,command,figure,low,high,holds".split(",")]
        for head in ("mlp", "mix"):
            row = next(r for r in self.ways if r["policy"] == "mlp" and r["router"] == head
                       and r["target"] == "0.060000")
            aside = f" {of['aside']}" if of["aside"] else ""
            way = (f"{command}{aside} --target-routed 0.06 --policy mlp={out}/1/{head}{ending} "
                   f"--json{several}")
            lines.append(self.claim(
                f"60 % more right answers at thresholds for 6 % of the tokens ({head})",
                "least", 0.6, way, *number(row, "relative_gain")))
            lines.append(self.claim(
                f"less than 7 % of the tokens from the cloud there ({head})",
                "below", 0.07, way, *share_of(routed[f"mlp={head}"])))
        never = next(r for r in self.ways if r["policy"] == "never")
        lines.append(self.claim("the small model alone is right in about 50 %", 0.1, 0.5,
                                f"{command} --policy never", *number(never, "accuracy")))
        lines.append(["the small model writes 3.6 tokens per second (0.28 s each on an M1 without "
                      "KV cache)", "3.6", f"mizzle bench model -m {self.edges[0]} -p 0 -n 16 -r 6",
                      "", "", "", "speed.csv"])
        points = [r for r in table.read([f"{out}/table.jsonl"]) if not np.isnan(r.threshold)]
        for (threshold, share, *_), row in zip(self.printed, points):
            lines.append(self.claim(
                f"Table 1: share of the tokens from the cloud at threshold {threshold}", 0.01,
                float(share) / 100,
                f"{command} --ahead 0 --as-paper --policy mlp={out}/1/mlp{ending}", *share_of(row)))
        return lines

    def sizes(self):
        lines = ["edge,way,from the cloud %,right %,low,high,gap closed %,95 %".split(",")]
        for i, edge in enumerate(self.edges, 1):
            rows = rows_of(f"{self.out}/{i}/size.csv") if i > 1 else self.ways
            for r in rows:
                routed = self.way(r) == "mlp" and r["target"] == "0.060000"
                if routed or r["policy"] in ("never", "always"):
                    lines.append([
                        os.path.basename(edge).removesuffix(".gguf"), self.way(r), *(
                            percent(r, x) for x in ("routed", "accuracy", "accuracy_low",
                                                    "accuracy_high", "pgr")), interval(r, "pgr")])
        return lines

    def pictures(self):
        value = lambda r, *names: [percent(r, x) for x in names]
        band = ("accuracy", "accuracy_low", "accuracy_high")
        line = ("--y", RIGHT, "--interval", "low,high", "--title")
        share = ("--x", SHARE, "--y", RIGHT, "--by", "way", "--title")
        alone = {r["policy"]: percent(r, "accuracy") for r in self.ways if not r["target"]}
        timed = [[self.way(r), f"{self.seconds(r):.3f}", percent(r, "accuracy")] for r in self.ways
                 if r["target"]]  # the models alone are lines
        steps = self.of["edge_ms"], self.of["call_ms"]
        out = {
            "accuracy": picture(["threshold", RIGHT, "low", "high"],
                                [[r["threshold"], *value(r, *band)] for r in self.thresholds],
                                "--x", "threshold", *line, "Right answers by threshold"),
            "share": picture(["threshold", SHARE],
                             [[r["threshold"], *value(r, "routed")] for r in self.thresholds],
                             "--x", "threshold", "--y", SHARE, "--title",
                             "Tokens from the cloud by threshold"),
            "curve": picture([SHARE, RIGHT, "low", "high"],
                             [value(r, "routed", *band) for r in self.thresholds],
                             "--x", SHARE, *line, "Right answers by tokens from the cloud"),
            "ways": picture(["way", SHARE, RIGHT],
                            [[self.way(r), *value(r, "routed", "accuracy")]
                             for r in self.ways if r["target"]], *share,
                            "Ways to divide an answer, at 2, 6 and 10 % of the tokens",
                            "--guide", f"{alone['never']}=the small model alone",
                            "--guide", f"{alone['always']}=the large model alone"),
            "times": picture(["way", "time of an answer (s)", RIGHT], timed, "--x",
                             "time of an answer (s)", "--y", RIGHT, "--by", "way", "--title",
                             "Right answers by the time of an answer, on the paper's devices",
                             "--note", f"{steps[0]} ms a token, {steps[1]} ms more a call",
                             "--guide", f"{alone['never']}=the small model alone"),
        }
        if len(self.edges) > 1:
            out["sizes"] = picture(
                ["edge", "way", "right (%)", "low", "high"],
                [[x[0], x[1], *x[3:6]] for x in self.sizes()[1:]], "--by", "edge", "--bars", "way",
                "--y", "right (%)", "--interval", "low,high", "--title",
                "Sizes of the small model, mlp at 6 % of the tokens")
        return out

    def by_citer(self):
        """Return the share right by CITER's rule of never, always, mlp and mix."""
        rows = table.read([f"{self.out}/ways-{x}.jsonl" for x in ("0.02", "0.06")])
        rows = [r for r in rows if r.target != 0.02]
        right = {r.label: f"{100 * r.of['citer'].mean():.1f}" for r in rows}
        return [right[x] for x in ("never", "always", "mlp=mlp", "mlp=mix")]

    def text(self, claims):
        of, drawn = self.of, self.pictures()
        short = [os.path.basename(x).removesuffix(".gguf") for x in (self.edges[0], of["large"])]
        with open(f"{self.out}/table.csv", encoding="utf-8") as text:
            own = list(csv.reader(text))[1:]
        ways = ["way,aimed at %,from the cloud %,right %,95 %,gap closed %,95 %,beside mlp,95 %,"
                "calls,work %,s an answer".split(",")]
        for r in self.ways:
            ways.append([self.way(r), *(percent(r, x) for x in ("target", "routed", "accuracy")),
                         interval(r, "accuracy"), percent(r, "pgr"), interval(r, "pgr"),
                         percent(r, "equal_share"), interval(r, "equal_share"),
                         f"{float(r['calls_answer']):.1f}", percent(r, "work"),
                         f"{self.seconds(r):.1f}"])
        (speed,) = rows_of(f"{self.out}/speed.csv")
        doubt = f"; doubtful: {speed['doubtful']}" if speed["doubtful"] else ""
        few = int(of["questions"]) < 30
        query = any(r["policy"] == "query" for r in self.ways)
        citer = self.by_citer() if of["aside"] else []
        parts = {
            "title": f"The paper, with {short[0]} and {short[1]}", "style": STYLE,
            "few": f"<p><strong>{of['questions']} questions say next to nothing: the intervals "
                   "tell how little.</strong></p>" if few else "",
            "concepts": ", which share no question_concept with them" if of["aside"] else "",
            "claims": html_table([x[:2] + x[3:] for x in claims]),
            "citer": "<p>Right is what a reader takes for the answer. By the rule of CITER's "
                     "published scores, which finds fewer of them, it\nis {} % of never, {} % of "
                     "always, and at 6 % of the tokens {} % of mlp and {} % of "
                     "mix.</p>".format(*citer) if citer else "",
            "printed": html_table([COLUMNS.split(","), *self.printed]),
            "table": html_table([COLUMNS.split(","), *own]),
            "speed": f"{speed['tokens_s']} tokens per second ({speed['low']} to {speed['high']}; "
                     f"{speed['processor']}; {speed['date']}{doubt})",
            "small": short[0],
            "figures": "\n".join(drawn[x] for x in ("accuracy", "share", "curve")),
            "one": "" if len(self.edges) > 1 else "<p>One pair is one size: name further models, "
                   "EDGE,EDGE, for a sweep.</p>",
            "sizes": html_table(self.sizes()) + drawn.get("sizes", ""), "ways": html_table(ways),
            "query": "" if query else "<p>query is left out: too few answers to learn from.</p>",
            "drawn": drawn["ways"] + drawn["times"],
            "trained": f"{self.repeats} trainings, which resample the texts" if self.repeats > 1
                       else "one training",
            "command": html.escape(of["command"], quote=False),
            **{x: of[x] for x in ("questions", "learned", "calibrated", "version", "edge_ms",
                                  "call_ms")},
            "data": os.path.basename(of["data"]),
        }
        with open(os.path.join(HERE, "paper.html"), encoding="utf-8") as page:
            return re.sub(r"\{(\w+)\}", lambda m: parts[m[1]], page.read())


def report(out, facts):
    page = Page(out, dict(x.split("=", 1) for x in facts))
    claims = page.claims()
    text = page.text(claims)
    with open(f"{out}/claims.csv.new", "w", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(claims)
    with open(f"{out}/report.html.new", "w", encoding="utf-8") as file:
        file.write(text)
    for name in ("claims.csv", "report.html"):
        os.replace(f"{out}/{name}.new", f"{out}/{name}")


def main(args):
    if len(args) == 4 and args[0] == "table":
        rows = table_1(args[3], *map(float, args[1:3]))
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    elif len(args) > 2 and args[0] == "report":
        report(args[1], args[2:])
    else:
        raise Refused(2, "expected table EDGE_MS CALL_MS JOURNAL, or report OUT NAME=VALUE...")


if __name__ == "__main__":
    end(main, sys.argv[1:])
