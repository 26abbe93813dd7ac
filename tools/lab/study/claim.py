#!/usr/bin/python3
"""claim.py - what policies gain over the small model alone, and which answers they change.

Usage: claim.py [--csv FILE] [--above FILE] {--of PART,FORM [--calibration] ANSWERS...}...
       claim.py --threshold SHARE JOURNAL...

ANSWERS are journals of `eval --jsonl` or files of items (answers.py) with never, always and policies,
all of one pair in one form of a task. PART and FORM are words for the rows. Behind --calibration
stand answers to the questions that set the thresholds (figures.py). A row is a policy at a target,
named by its router's file, on the questions that it, never and always have answered. An ensemble is
one file, so one training. Intervals (95 %) draw concepts, the same for all policies, and trainings.

  never, right, always  part of the answers that a reader takes for right: of the small model, the
                        policy, the large model
  routed                share of the tokens from the large model; its interval draws the calibration
                        questions, too, where they are given
  gain                  right / never - 1
  rescued, spoiled      of a hundred answers, those wrong under never and right here; the reverse
  wasted                of a hundred answers, those with the large model's tokens and never's verdict
  above_none            of gain and gain-*: right less that of gain-none and gain-none-*, of as many
                        trainings, at an equal share of the tokens (figures.py, equal)

--above writes how far gain and gain-* are above each other policy at its share, with the interval.
--threshold prints, of each policy with scores, the threshold below which this share of the tokens
lies. These texts were written at another one, so eval must write them at the new one.
"""
import base64
import itertools
import re
import sys

from need import end, need

need("numpy")
import numpy as np

import figures as f

COLUMNS = ("part,form,policy,trainings,questions,never,right,always,routed,routed_low,routed_high,"
           "gain,gain_low,gain_high,rescued,spoiled,wasted,above_none,above_none_low")
ENDINGS = "", "_low", "_high"
GAIN = re.compile("gain(?!-none)(-.*)?$")


class Part:
    """The answers of one form to the questions of one part; rows are dictionaries."""

    def __init__(self, name, form, paths, calibration):
        self.name, self.form = name, form
        self.all = f.read(paths)
        self.figures = f.Figures(self.all, None, f.read(calibration) if calibration else None)
        if self.all[0].of != self.all[-1].of:  # they are sorted
            raise f.Refused(2, f"--of {name},{form}: expected one form and pair, "
                               f"{self.all[0].of}, found {self.all[-1].of}")
        self.never, self.always = (f.find(self.all, self.all[0], x) for x in ("never", "always"))
        if not self.never:
            raise f.Refused(2, f"--of {name},{form}: expected answers of never, found none")
        self.rows = [self.row(r) for r in self.all]
        for one in self.rows:
            one["above_none"], one["above_none_low"] = self.above_none(one)

    def questions(self, *rows):
        """Return the questions that all of these and the models alone have answered."""
        every = [r for r in (*rows, self.never, self.always) if r]
        ids = [i for i in rows[0].ids if all(i in r.at for r in every)]
        if not ids:
            raise f.Refused(2, f"policy {rows[0].policy}: expected questions of never, found none")
        return self.figures.questions(rows[0], ids)

    def row(self, row):
        q = self.questions(row)
        right, edge = q.of(row, "answer"), q.of(self.never, "answer")
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(edge[0] > 0, right[0] / edge[0] - 1, np.nan)
        now, before = q.numbers(row, "answer"), q.numbers(self.never, "answer")
        asked = q.numbers(row, "cloud") > 0
        large = q.numbers(self.always, "answer").mean() if self.always else np.nan
        one = {"row": row, "part": self.name, "form": self.form, "questions": q.n,
               "policy": row.policy.split("=")[-1], "trainings": row.trainings,
               "never": before.mean(), "always": large}
        for name, values in (("gain", q.interval(gain)), ("routed", self.figures.routed(q, row)[0]),
                             ("right", (now.mean(), *q.accuracy(now, True, student=True)))):
            one.update((name + ending, value) for ending, value in zip(ENDINGS, values))
        one["rescued"], one["spoiled"] = 100 * (now > before).mean(), 100 * (now < before).mean()
        one["wasted"] = 100 * (asked & (now == before)).mean()
        return one

    def above(self, one, other):
        """Return how far a row is above another one at its share, and the interval."""
        q = self.questions(one["row"], other["row"])
        models = [q.of(m, "answer") if m else None for m in (self.never, self.always)]
        level = f.equal(q.of(one["row"], "answer"), q.of(other["row"], "answer"), *models)
        return q.interval(level / q.items)

    def above_none(self, one):
        """Return how far a gain router is above the one without hidden states, and the low end."""
        other = one["policy"].replace("gain", "gain-none", 1)
        others = [r for r in self.rows if GAIN.match(one["policy"]) and r["policy"] == other and
                  r["row"].beside(one["row"]) and r["trainings"] == one["trainings"]]
        nearest = min(others, key=lambda r: abs(r["routed"] - one["routed"]), default=None)
        return self.above(one, nearest)[:2] if nearest else (np.nan, np.nan)

    def lines_above(self):
        gains = [r for r in self.rows if GAIN.match(r["policy"])]
        for one, other in itertools.product(gains, self.rows):
            if one is not other and 0 < other["routed"] < 1 and one["row"].beside(other["row"]):
                names = self.name, self.form, one["policy"], other["policy"]
                yield ",".join([*names, *f.fields(self.above(one, other))])


def line(one):
    names = COLUMNS.split(",")
    return ",".join([*(str(one[x]) for x in names[:5]), *f.fields(one[x] for x in names[5:])])


def thresholds(share, paths):
    """Print the threshold for a share of each policy and training with scores."""
    scores, tokens = {}, {}
    for _, one, found in itertools.chain(*map(f.lines_of, paths)):
        if one and "scores" in one:
            try:
                raw = np.frombuffer(base64.b64decode(one["scores"], validate=True), ">u2")
            except (TypeError, ValueError):
                raw = []
            if len(raw) != one["tokens"]:
                raise f.Refused(3, f"{' '.join(paths)}: scores: expected {one['tokens']}, found "
                                   f"{len(raw)} or no base64")
            scores.setdefault(found[3:6], []).append(raw[raw < 65535] / 65534)
            tokens[found[3:6]] = tokens.get(found[3:6], 0) + len(raw)
    if not scores:
        raise f.Refused(3, f"{paths[0]}: expected a journal with scores, found none")
    print("policy,share,run,tokens,threshold")
    for key, every in sorted(scores.items()):
        every = np.append(np.sort(np.concatenate(every)), 1)
        at = min(round(share * tokens[key]), len(every) - 1)
        print(*key, tokens[key], f"{every[at]:.6f}", sep=",")


def main(args):
    options, groups, words = dict.fromkeys(("--csv", "--above", "--threshold")), [], iter(args)
    loose = into = []
    for word in words:
        if word == "--of":
            groups.append((next(words, ""), [], []))
            into = groups[-1][1]
        elif word == "--calibration" and groups:
            into = groups[-1][2]
        elif word in options:
            options[word] = next(words, "")
        elif word.startswith("-"):
            raise f.Refused(2, f"expected {', '.join(options)} or --of PART,FORM, found {word}")
        else:
            into.append(word)
    if options["--threshold"] and loose and not groups:
        if not re.fullmatch(r"0?[.]\d+|[01]", options["--threshold"]):
            raise f.Refused(2, f"--threshold: expected 0 to 1, found {options['--threshold']}")
        return thresholds(float(options["--threshold"]), loose)
    for name, files, _ in groups or [("", [], [])]:
        if loose or not re.fullmatch("[^,]+,[^,]+", name) or not files:
            raise f.Refused(2, "expected --of PART,FORM and files of answers, found "
                               f"{' '.join(loose) or name or 'none'}")
    parts = [Part(*name.split(","), *files) for name, *files in groups]
    write(options["--csv"] or 1, COLUMNS, (line(r) for part in parts for r in part.rows))
    if options["--above"]:
        write(options["--above"], "part,form,policy,other,above,above_low,above_high",
              (x for part in parts for x in part.lines_above()))


def write(path, header, lines):
    """Write a table; a row that is there twice, as never of two groups of a part is, once."""
    try:
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(x + "\n" for x in dict.fromkeys((header, *lines)))
    except OSError as e:
        raise f.Refused(1, f"{e.filename}: {e.strerror}")


if __name__ == "__main__":
    end(main, sys.argv[1:])
