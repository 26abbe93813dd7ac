#!/usr/bin/python3
"""answers.py - the answers that `mizzle eval` has written, as arrays and as lines of items.

Usage: answers.py items JOURNAL...
       answers.py begin JOURNAL FIRST COUNT VERSION CLOUD POLICIES

A journal (`eval --jsonl`, or .gz) has the settings of a run in its first line, then a line for each
threshold and for each answer; README.md beside this file has the fields. The parts of a run may be
several journals: an answer that two of them have counts once. Lines of items are answers without
their texts; router/results keeps them. Trainings of one router, FILE.1 to FILE.N in one run, are
runs 1 to N of one policy, FILE.

`items` prints the lines of items of journals. `begin` prints the first lines of a journal, its
settings and thresholds, for a part of the run with these POLICIES (--policy); where it has several
trainings under one name, as eval up to 0.5.1 wrote them, each gets its own. Neither takes numpy.
"""
import contextlib
import gzip
import hashlib
import itertools
import json
import os
import re
import sys
import zlib
from collections import namedtuple

from need import Refused, end

HEADER = ("task,form,pair,id,group,policy,share,run,right_citer,right_answer,tokens,cloud,calls,"
          "read,hash,settings")
LINE = re.compile(r"([^,]+,[^,]+,[^,]+),([^,]+),([0-9a-f]{1,16}),([^,]+),([^,]*),(\d+),([01]),"
                  r"([01]),(\d+),(\d+),(\d+),(\d+),((?:[0-9a-f]{16})?),([0-9a-f]{16})")
JOURNAL = '{"settings":{'
# What of the settings does not change an answer. The others' hash tells answers of one policy that
# were made differently from each other.
NO_SETTINGS = ("on", "first", "count", "questions", "policies", "baselines", "version",
               "edge_model", "cloud_model", "cloud_url")
MOST_TRAININGS = 64

Answer = namedtuple("Answer", "group citer answer tokens cloud calls read hash settings")
Place = namedtuple("Place", "path line")


class Row:
    """A policy at a share in one form of a task. numbers[NAME] is [trainings][questions]."""

    def __init__(self, of, policy, share, runs):
        import numpy as np
        self.of, self.policy, self.share = of, policy, share
        self.ids = sorted(runs[1])
        self.at = {name: i for i, name in enumerate(self.ids)}
        self.trainings = len(runs)
        self.groups = [runs[1][i].group for i in self.ids]
        self.numbers = {
            name: np.array([[getattr(runs[k + 1][i], name) for i in self.ids]
                            for k in range(self.trainings)], dtype=float)
            for name in ("citer", "answer", "tokens", "cloud", "calls", "read")}

    def beside(self, other):
        """True if both are of one form and pair, and at one share if both have one."""
        return self.of == other.of and (not self.share or other.share in ("", self.share))


def field(text, most=63):
    """Return a text as a field of items."""
    return re.sub(r'[,"\r\n]', "_", text)[:most]


def short(policy, listed):
    """Return a policy's label without the ending of a file, and of a file that is named as it."""
    name, equals, file = policy.partition("=")
    stem, ending, rest = file.partition(".safetensors")
    if ending and stem + rest == name and name not in listed:
        return name
    return field(name + equals + stem + rest)


def dumped(value):
    """Return JSON text as eval writes it (jansson, sorted keys, nine digits), which is hashed."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dumped(k)}:{dumped(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dumped, value)) + "]"
    if isinstance(value, float):
        text = re.sub(r"e([+-]?)0*", lambda m: "e" + m[1].strip("+"), f"{value:.9g}")
        return text if re.search("[.e]", text) else text + ".0"
    return json.dumps(value, ensure_ascii=False)


def sha256(text):
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def trainings(settings):
    """Return for each label of a policy its name, without the number of a training, this number (0:
    a journal of 0.5.1 has it in `point`), and the hash of its router or routers."""
    listed = {p["policy"]: p.get("router_sha256", "") for p in settings["policies"]}
    out = {label: (label, 0, digest) for label, digest in listed.items()}
    for label in listed:
        if not label.endswith(".1") or label[:-1] + "2" not in listed:
            continue
        of, k = label[:-2], 1
        while f"{of}.{k}" in listed:
            k += 1
        every = [listed[f"{of}.{i}"] for i in range(1, k)]
        for i in range(1, k):
            out[f"{of}.{i}"] = of, i, sha256("".join(d + "\0" for d in every))
    return out


class Journal:
    """What the lines of one journal share."""

    def __init__(self, settings):
        large = json.loads(settings["cloud_says"] or "{}").get("fingerprint")
        pair = f"{settings['edge_fingerprint']}+{field(large or settings['cloud_model'], 40)}"
        self.of = f"{settings['task']},{field(settings['form'], 24)},{pair}"
        self.settings, self.policies = settings, trainings(settings)
        self.listed = {name for name, _, _ in self.policies.values()}
        self.points = len(settings["targets"]) or (8 if settings.get("threshold") == "paper" else 1)
        kept = {k: v for k, v in settings.items() if k not in NO_SETTINGS}
        self.digest = sha256(dumped(kept))
        self.run = {k: v for k, v in kept.items() if k != "targets"}

    def fields(self, one):
        """Return the fields of a line of items."""
        name, number, digest = self.policies.get(one["policy"], (one["policy"], 0, ""))
        share = "" if one["share"] is None else f"{one['share']:.6g}"
        paper = self.settings.get("threshold") == "paper"
        return (self.of, field(one["id"]) or str(one["item"]),
                f"{one['subject'] & (1 << 64) - 1:016x}", short(name, self.listed), share,
                number or (1 if paper else one["point"] // self.points + 1), int(one["citer"]),
                int(one["right"]), one["tokens"], one["cloud"], one["calls"], one["prefilled"],
                one.get("hash", ""), sha256(f"{self.digest} {digest}")[:16])


def from_journal(path, text):
    """Yield of each answer of a journal the number of its line, the line, and the fields of a line
    of items. An answer that lacks tokens is none."""
    journal = None
    for number, line in enumerate(text, 1):
        try:
            one = json.loads(line) if line.endswith("\n") else {}  # torn
            if "settings" in one:
                journal = Journal(one["settings"]) if one["settings"] else None
            if "policy" in one and not one.get("missing") and not one["left_out"]:
                yield number, one, journal.fields(one)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise Refused(3, f"{path}: line {number}: expected an answer of --jsonl, found {e}")


def expect(path, number, one, names):
    """Refuse a line of a journal that lacks one of these fields."""
    for name in names:
        if name not in one:
            raise Refused(3, f"{path}: line {number}: expected field {name} of an answer, found none")


def in_full(text):
    """Yield the fields of a pack's lines (router/results): a name first, `=` for the field above."""
    above = [""] * 17
    for line in text:
        above = [a if x == "=" else x for x, a in zip(line.rstrip("\n").split(","), above)]
        yield above


def from_items(path, text):
    """Yield of each line of items its number, None, and its fields."""
    first = text.readline()
    packed = first == f"name,{HEADER}\n"
    lines = (",".join(fields[1:]) for fields in in_full(text)) if packed else text
    for number, line in enumerate(itertools.chain([first[5 * packed:]], lines), 1):
        line = line.rstrip("\n")
        found = LINE.fullmatch(line)
        if number == 1 and line == HEADER:
            continue
        if number == 1 or not found:
            raise Refused(3, f'{path}: line {number}: expected {HEADER}, found "{line}"')
        yield number, None, found.groups()


@contextlib.contextmanager
def opened(path):
    """Open a file, which may be compressed, for its text, and refuse one that cannot be read."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8", errors="surrogateescape",
                                             newline="\n") as text:
            yield text
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise Refused(3, f"{path}: expected a whole .gz file, found a damaged one")
    except OSError as e:
        raise Refused(1, f"{e.filename or path}: {e.strerror}")


def records(path, kind):
    """Yield the whole lines of a journal that begin with this key."""
    with opened(path) as text:
        for line in text:
            if line.startswith(f'{{"{kind}":') and line.endswith("\n"):
                yield json.loads(line)


def lines_of(path):
    """Yield the lines of one file, as its form has them."""
    with opened(path) as text:
        journal = text.read(len(JOURNAL)) == JOURNAL
        text.seek(0)
        yield from (from_journal if journal else from_items)(path, text)


def read_lines(path, answers, places):
    """Add the lines of one file to answers[row][run][id]. What several lines have counts once."""
    for number, _, found in lines_of(path):
        of, name, group, policy, share, run, *rest = found
        one = Answer(group, *map(int, rest[:6]), *rest[6:])
        if not 1 <= int(run) <= MOST_TRAININGS or max(one.cloud, one.calls) > one.tokens:
            raise Refused(3, f'{path}: line {number}: expected {HEADER}, found '
                             f'"{",".join(map(str, found))}"')
        key = f"{of},{policy},{share}", int(run), name
        run = answers.setdefault(key[0], {}).setdefault(key[1], {})
        before = run.setdefault(name, one)
        at = places.setdefault(key, Place(path, number))
        if before != one:
            raise Refused(2, f"{path}: line {number}: expected the answer of {at.path}: line "
                             f"{at.line}, hash {before.hash}, found another, hash {one.hash}")


def read(paths):
    """Return the rows of all files, sorted by name. In a row every run has the same questions."""
    answers, places, rows = {}, {}, []
    for path in paths:
        read_lines(path, answers, places)
    if not answers:
        raise Refused(3, f"{paths[0]}: expected answers, found none")
    for key, runs in sorted(answers.items()):
        of, policy, share = key.rsplit(",", 2)
        first = places[key, min(runs), min(runs[min(runs)])]
        like = runs[min(runs)][min(runs[min(runs)])].settings
        questions = set().union(*runs.values())
        for run in range(1, max(runs) + 1):
            for name in sorted(questions):
                if name not in runs.get(run, {}):
                    raise Refused(2, f"{first.path}: line {first.line}: policy {policy}: expected "
                                     f"its answer to {name} in run {run}, found none")
                if runs[run][name].settings != like:
                    at = places[key, run, name]
                    raise Refused(2, f"{at.path}: line {at.line}: policy {policy}: expected "
                                     f"settings {like}, as in {first.path}: line {first.line}, found "
                                     f"{runs[run][name].settings}")
        rows.append(Row(of, policy, share, runs))
    return rows


def find(rows, beside, policy):
    """Return the one row of this policy beside another row, or None."""
    found = [r for r in rows if r.policy == policy and r.beside(beside)]
    return found[0] if len(found) == 1 else None


def items(paths):
    """Print the lines of items of journals: policy after policy, each answer once."""
    print(HEADER)
    order, lines = {}, {}
    for path in paths:
        for number, one, found in lines_of(path):
            if one is None:
                raise Refused(3, f"{path}: expected a journal, found items")
            policy, run = found[3:5], found[5]
            at = order.setdefault(policy, len(order)), run, one["item"]
            line = ",".join(map(str, found))
            if lines.setdefault(at, line) != line:
                raise Refused(2, f"{path}: line {number}: expected {lines[at]}, found {line}")
    for at in sorted(lines):
        print(lines[at])


def begin(path, first, count, version, cloud, asked):
    """Print settings and thresholds for a part, of which `version` and the model `cloud` are now
    called so. Fingerprints and digests decide; names are no other setting."""
    files = {}
    for name, equals, file in (p.partition("=") for p in asked.split(",")):
        files[f"{name}{equals}{os.path.basename(file)}"] = file
    lines = [*records(path, "settings"), *records(path, "calibrated")]
    if not lines or "settings" not in lines[0]:
        raise Refused(3, f"{path}: line 1: expected {JOURNAL}, found none")
    settings = lines[0]["settings"]
    settings.update(first=int(first), count=int(count), version=version, cloud_model=cloud)
    several, policies = set(), []
    for one in settings["policies"]:
        if one["trainings"] == 1:
            policies.append(one)
            continue
        several.add(one["policy"])
        for k in range(1, one["trainings"] + 1):
            label = f"{one['policy']}.{k}"
            if label not in files:
                raise Refused(2, f"{path}: expected {label} among the policies, found {asked}")
            with open(files[label], "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            policies.append({**one, "policy": label, "trainings": 1,
                             "router": f"{one['router']}.{k}", "router_sha256": digest})
    settings["policies"] = policies
    print(json.dumps({"settings": settings}, separators=(",", ":"), ensure_ascii=False))
    points = len(settings["targets"]) or 1
    for one in lines[1:]:
        if one.get("calibrated") in several:
            one["calibrated"] += f".{one['point'] // points + 1}"
            one["point"] %= points
        print(json.dumps(one, separators=(",", ":"), ensure_ascii=False))


def main(args):
    commands = {"items": (items, 1, 9999), "begin": (begin, 6, 6)}
    command, least, most = commands.get(args[0] if args else "", (None, 0, 0))
    if not command or not least <= len(args) - 1 <= most:
        raise Refused(2, f"expected {' or '.join(commands)} with its arguments, see --help")
    command(args[1:]) if command is items else command(*args[1:])


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        sys.exit(print(__doc__))
    end(main, sys.argv[1:])
