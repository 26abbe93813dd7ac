#!/usr/bin/python3
"""table.py - one row for each policy at each share, from journals of `mizzle eval`.

Usage: table.py [--columns NAME,...] [--against LABEL] [--ends JOURNAL] JOURNAL...

Accuracies have Wilson's interval: for as many independent questions as have the variance of these
groups and trainings, at most all. Other intervals are bootstraps over the groups of questions: one
draw takes as many groups as there are, with replacement, for all policies alike, and of T trainings
T - 1 (Rao and Wu 1988). pgr is the performance gap recovered, (right - never) / (always - never);
relative_gain is right / never - 1; apgr7 is the mean pgr over shares from 0 to 7 %, the area under
the lines between the measured points, in the last row of a policy whose shares reach from 0 to 7 %.
never and always may stand in another journal, --ends, whose rows are not printed. --against
compares with the policy of this label at the same share; equal_share is the difference at an equal
share of the tokens (equal in figures.py). Times are those of the journal.
"""
import sys

from need import end, need

need("numpy")
import numpy as np

import figures as f
from answers import Journal, Refused, expect, lines_of, records

COLUMNS = ("task,policy,router,threshold,tie,target,seed,questions,trainings,right,accuracy,"
           "accuracy_low,accuracy_high,gain_low,gain_high,relative_gain,relative_gain_low,"
           "relative_gain_high,pgr,pgr_low,pgr_high,apgr7,apgr7_low,apgr7_high,against,difference,"
           "difference_low,difference_high,equal_share,equal_share_low,equal_share_high,"
           "apgr7_ratio,apgr7_ratio_low,apgr7_ratio_high,routed,"
           "tokens,cloud,fallback,citer,no_answer,truncated,prompt_tokens,calls,prefilled,cached,"
           "decoded,work,calls_answer,cloud_answer,edge_answer,ms,edge_ms,ttft_ms,tbt_ms,"
           "tbt_p95_ms")
COUNTS = ("right", "citer", "tokens", "cloud", "fallback", "truncated", "prompt", "calls",
          "prefilled", "cached", "decoded")
NEEDED = (*COUNTS, "answer", "trace", "ms", "ttft_ms", "edge_ms", "us")
NONE = (np.nan, np.nan)


class Draws(f.Groups):
    """The groups of questions, in the order in which they were asked, and what each draw has."""

    def __init__(self, subjects):
        super().__init__(subjects)
        self.items = self.sums(np.ones((1, self.n)))

    def sums(self, x):
        """Return what each draw has of x [trainings][n]: a mean over the trainings drawn."""
        each = self.grouped(x) @ self.times.T
        if len(x) == 1:
            return each[0]
        at = f.drawn(f.rand_u64(self.keys, 1), len(x) - 1, len(x))
        return each[at, np.arange(f.DRAWS)[:, None]].mean(axis=1)

    def interval(self, draws):
        """Return the interval of draws; none of one group, or if one in twenty has no value."""
        kept = draws[~np.isnan(draws)]
        if self.count < 2 or len(kept) < f.DRAWS - f.DRAWS // 20:
            return NONE
        return tuple(np.quantile(kept, (0.025, 0.975)))


def ratio(a, b):
    return np.divide(a, b, out=np.full(np.shape(a), np.nan), where=np.asarray(b) > 0)


class Row:
    """A policy at one share or threshold."""

    def __init__(self, journal, label, point, share):
        self.journal, self.label, self.point = journal, label, point
        self.target = np.nan if share is None else share
        self.runs, self.threshold, self.tie, self.apgr7 = {}, np.nan, np.nan, None
        self.settings, self.found, self.thresholds = None, {}, {}

    def add(self, place, settings, run, one, found):
        """Add an answer, of which `found` is the line of items. A share has settings of its own."""
        self.settings = self.settings or settings
        if settings != self.settings:
            raise Refused(2, f"{place}: policy {self.label}: expected the settings of the others")
        if self.found.setdefault((run, one["item"]), found[:-1]) != found[:-1]:
            raise Refused(2, f"{place}: policy {self.label}: expected one answer to item "
                             f"{one['item']}, found two")
        self.runs.setdefault(run, {})[one["item"]] = one

    def calibrate(self, path, one):
        before = self.thresholds.setdefault((one["calibrated"], one["point"]), one["threshold"])
        if before != one["threshold"]:
            raise Refused(2, f"{path}: policy {self.label}: expected threshold {before}, "
                             f"found {one['threshold']}")
        self.threshold, self.tie = one["threshold"], one["tie"]

    def finish(self, draws):
        """Make arrays of the lines, each training's in the order of the items."""
        runs = [self.runs[k] for k in sorted(self.runs)]
        self.lines = [run[i] for run in runs for i in sorted(run)]
        ids = sorted(runs[0])
        if any(sorted(run) != ids for run in runs) or sorted(self.runs)[-1] != len(runs):
            raise Refused(2, f"policy {self.label}: expected answers of each training to "
                             f"{len(ids)} questions")
        subjects = tuple(runs[0][i]["subject"] for i in ids)
        if subjects not in draws:
            draws[subjects] = Draws(subjects)
        self.draws, shape = draws[subjects], (len(runs), len(ids))
        self.of = {name: np.array([x[name] for x in self.lines], dtype=float).reshape(shape)
                   for name in COUNTS}
        self.sum = {name: x.sum() for name, x in self.of.items()}
        self.share = self.sum["cloud"] / self.sum["tokens"] if self.sum["tokens"] else 0
        self.right = self.draws.sums(self.of["right"])
        self.accuracy = self.of["right"].mean()
        self.shares = ratio(self.draws.sums(self.of["cloud"]), self.draws.sums(self.of["tokens"]))

    def compare(self, edge, large):
        """Return accuracy beside the models alone: gain, relative gain, pgr."""
        self.pgr, self.pgrs = np.nan, np.full(f.DRAWS, np.nan)
        if not edge:
            return [*NONE, np.nan, *NONE, np.nan, *NONE]
        ends, above = self.draws.interval, self.right - edge.right
        more = self.accuracy / edge.accuracy - 1 if edge.accuracy else np.nan
        if large and large.accuracy > edge.accuracy:
            self.pgr = (self.accuracy - edge.accuracy) / (large.accuracy - edge.accuracy)
            self.pgrs = ratio(above, large.right - edge.right)
        return [*ends(above / self.draws.items), more, *ends(ratio(above, edge.right)), self.pgr,
                *ends(self.pgrs)]

    def statistic(self):
        """Return right answers, tokens and those of the cloud: of the answers, then a draw each."""
        runs = len(self.of["right"])
        return [np.concatenate(([self.sum[x] / runs], self.draws.sums(self.of[x])))
                for x in ("right", "tokens", "cloud")]

    def level(self, other, edge, large):
        """Return how far it is above another one at that one's share, and the interval."""
        if not 0 < other.share < 1 or not (edge if self.share > other.share else large):
            return [np.nan] * 3
        models = [m.statistic() if m else None for m in (edge, large)]
        more = f.equal(self.statistic(), other.statistic(), *models)
        return [more[0] / self.draws.n, *self.draws.interval(more[1:] / self.draws.items)]

    def versus(self, other, edge, large):
        if not other:
            return ["", *[np.nan] * 9]
        ends = self.draws.interval((self.right - other.right) / self.draws.items)
        far, fars = np.nan, NONE
        if self.apgr7 and other.apgr7:
            far = self.apgr7[0] / other.apgr7[0] if other.apgr7[0] > 0 else np.nan
            fars = self.draws.interval(ratio(self.apgr7[1], other.apgr7[1]))
        return [other.label, self.accuracy - other.accuracy, *ends, *self.level(other, edge, large),
                far, *fars]

    def times(self):
        of = lambda name: np.mean([x[name] for x in self.lines])
        next_ms = [us / 1000 for x in self.lines for us in x["us"][1:]] or [0]
        first = np.median([x["ttft_ms"] for x in self.lines])
        return [of("ms"), of("edge_ms"), first, *np.quantile(next_ms, (0.5, 0.95))]


def apgr7(shares, pgrs, most=0.07):
    """Return the mean pgr up to `most` of each column of points [n][draws]."""
    order = np.lexsort((pgrs, shares), axis=0)
    x, y = (np.take_along_axis(v, order, axis=0) for v in (shares, pgrs))
    last_x, last_y, area = np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for next_x, next_y in zip(x, y):
        goes = last_x < most
        part = np.divide(most - last_x, next_x - last_x, out=np.ones_like(last_x),
                         where=next_x > most)
        end_x, end_y = np.minimum(next_x, most), last_y + (next_y - last_y) * np.minimum(part, 1)
        end_y = np.where(next_x > most, end_y, next_y)
        area += np.where(goes, (end_x - last_x) * (last_y + end_y) / 2, 0)
        last_x, last_y = np.where(goes, end_x, last_x), np.where(goes, end_y, last_y)
    return (area + (most - last_x) * last_y) / most


def average(rows):
    """Set apgr7 of the last of the rows of one policy, if they reach from 0 to 7 %."""
    rows = sorted(rows, key=lambda r: r.target)
    if len(rows) < 2 or not (rows[0].target <= 0 and rows[-1].target >= 0.07) or \
            any(np.isnan(r.pgr) for r in rows):
        return
    each = apgr7(np.stack([r.shares for r in rows]), np.stack([r.pgrs for r in rows]))
    mean = apgr7(np.array([[r.share] for r in rows]), np.array([[r.pgr] for r in rows]))[0]
    rows[-1].apgr7 = mean, each


def read(paths):
    """Return the rows of journals, in the order of their answers."""
    rows, draws = {}, {}
    for path in paths:
        journal = None
        for number, one, found in lines_of(path):
            if one is None:
                raise Refused(3, f"{path}: expected a journal, found items")
            expect(path, number, one, NEEDED)
            journal = journal or Journal(next(records(path, "settings"))["settings"])
            name, run, router = journal.policies.get(one["policy"], (one["policy"], 0, ""))
            point = one["point"] % journal.points
            key = name, point, one["share"]
            row = rows.setdefault(key, Row(journal, name, point, one["share"]))
            run = run or one["point"] // journal.points + 1
            row.add(f"{path}: line {number}", (journal.run, router), run, one, found)
        for one in records(path, "calibrated"):
            if not journal:
                break
            name = journal.policies.get(one["calibrated"], (one["calibrated"],))[0]
            row = rows.get((name, one["point"] % journal.points, one["share"]))
            if row:
                row.calibrate(path, one)
    if not rows:
        raise Refused(3, f"{paths[0]}: expected answers, found none")
    for row in rows.values():
        row.finish(draws)
    return list(rows.values())


def router(row):
    """Return the file of the router, without folder and number, or nothing."""
    name, _, file = row.label.partition("=")
    for one in row.journal.settings["policies"]:
        if not file and one["policy"] == row.label:
            return name, one.get("router", "")
    return name, file


def line(row, edge, large, other):
    """Return the fields of a row, by name."""
    s, n, several = row.sum, row.of["right"].size, len(row.of["right"]) > 1
    milli = row.journal.settings["task"] == "milli"
    policy, file = router(row)
    mean, each = row.apgr7 or (np.nan, np.full(f.DRAWS, np.nan))
    empty = sum(not x["answer"] for x in row.lines)
    ids = s["prefilled"] + s["decoded"] - s["calls"]
    threshold = np.nan if several else row.threshold
    texts = [row.journal.settings["task"], policy, file, "" if np.isnan(threshold) else
             f"{threshold:.9g}"]
    numbers = [np.nan if np.isnan(threshold) else row.tie, row.target]
    counts = [row.journal.settings["seed"], str(row.draws.n), str(len(row.of["right"])),
              f"{s['right']:.0f}"]
    accuracy = [row.accuracy, *row.draws.accuracy(row.of["right"], not milli)]
    against, *versus = row.versus(other, edge, large)
    whole = lambda *names: [f"{s[x]:.0f}" for x in names]
    out = [*texts, *f.fields(numbers), *counts,
           *f.fields([*accuracy, *row.beside, mean, *row.draws.interval(each)]), against,
           *f.fields([*versus, row.share]), *whole("tokens", "cloud", "fallback"),
           *f.fields([np.nan if milli else s["citer"] / n]), str(empty),
           *whole("truncated", "prompt", "calls", "prefilled", "cached", "decoded"),
           *f.fields([ids / (s["prompt"] + s["tokens"]), s["calls"] / n, s["cloud"] / n,
                      (s["tokens"] - s["cloud"]) / n]),
           *(f"{x:.3f}" for x in row.times())]
    return dict(zip(COLUMNS.split(","), out))


def table(paths, ends=(), against=None):
    """Return the rows of journals as dictionaries of texts."""
    rows = read(paths)
    alone = {r.label: r for r in (read(ends) if ends else rows) if r.label in ("never", "always")}
    edge, large = alone.get("never"), alone.get("always")
    for row in rows:
        row.beside = row.compare(edge, large)
    for label in dict.fromkeys(r.label for r in rows):
        average([r for r in rows if r.label == label])
    if against and not any(r.label == against for r in rows):
        raise Refused(2, f"--against: expected one of the policies, found {against}")
    # eval up to 0.5.1 asked each model alone, whether it was named or not.
    named = [name for r in rows for name, _, _ in r.journal.policies.values()]
    shown = sorted((r for r in rows if r.label in named), key=lambda r: named.index(r.label))
    out = []
    for row in shown:
        other = [r for r in rows if r.label == against and r is not row and
                 (np.isnan(r.target) or r.target == row.target) and r.point == row.point]
        other = other[0] if other and row.label != against else None
        out.append(line(row, edge, large, other))
    return out


def main(args):
    options = {"--columns": COLUMNS, "--against": None, "--ends": None}
    while args and args[0] in options and len(args) > 1:
        options[args[0]], args = args[1], args[2:]
    if not args or args[0].startswith("-"):
        raise Refused(2, f"expected {', '.join(options)} and journals, found {' '.join(args)}")
    rows = table(args, [options["--ends"]] if options["--ends"] else (), options["--against"])
    names = options["--columns"].split(",")
    print(*names, sep=",")
    for row in rows:
        missing = [x for x in names if x not in row and "=" not in x]
        if missing:
            raise Refused(2, f"--columns: no column {missing[0]}")
        print(*(x.partition("=")[2] if "=" in x else row[x] for x in names), sep=",")


if __name__ == "__main__":
    end(main, sys.argv[1:])
