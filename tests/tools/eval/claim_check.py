"""claim_check.py - tests tools/lab/study/claim.py: journals that are worked out by hand, and a
simulation in which gain, share and what was rescued are known.

Usage: claim_check.py FOLDER"""
import base64
import json
import os
import sys

import numpy as np

from checks import check, end, near
import claim
import figures as f


def journal(name, policy, runs, scores=None, targets=()):
    """Write a journal: of each training, of each answer, right, tokens and those of the cloud."""
    path = os.path.join(sys.argv[1], name)
    settings = {"task": "csqa", "form": "plain @abc", "edge_fingerprint": "e", "cloud_model": "c",
                "cloud_says": '{"fingerprint":"f"}', "targets": list(targets), "on": {"date": name},
                "policies": [{"policy": policy, "trainings": len(runs), "router_sha256": policy}]}
    with open(path, "w", encoding="utf-8") as out:
        print(json.dumps({"settings": settings}, separators=(",", ":")), file=out)
        for run, answers in enumerate(runs):
            for i, (right, tokens, cloud) in enumerate(answers):
                one = {"policy": policy, "share": None, "point": run, "item": i, "id": f"q{i}",
                       "subject": i // 2 - 1, "left_out": False, "right": bool(right),
                       "citer": False, "tokens": tokens, "cloud": cloud, "calls": cloud,
                       "prefilled": 9, "hash": "00000000000000aa",
                       "trace": "=" * cloud + "." * (tokens - cloud)}
                if scores:
                    one["scores"] = base64.b64encode(np.array(
                        [65535 if s is None else round(s * 65534) for s in scores], ">u2")).decode()
                print(json.dumps(one), file=out)
    return path


def by_hand():
    """Of four questions never gets the first, always the first three."""
    ten = lambda rights, clouds: [(int(r), 10, c) for r, c in zip(rights, clouds)]
    paths = [
        journal("never", "never", [ten("1000", (0, 0, 0, 0))]),
        journal("always", "always", [ten("1110", (10, 10, 10, 10))]),
        journal("gain", "mlp=gain.safetensors",
                [ten("0110", (1, 1, 1, 1)), ten("1100", (1, 2, 0, 1))]),
        journal("none", "combined=gain-none.safetensors", [ten("1010", (0, 0, 1, 1))] * 2),
        journal("ensemble", "mlp=gain-ensemble", [ten("1100", (0, 1, 0, 0))]),
        journal("position", "position", [ten("110", (1, 1, 1))])]  # asked three
    part = claim.Part("measure", "long", paths, [])
    rows = {r["policy"]: r for r in part.rows}
    check(" ".join(rows) == "always gain-none gain gain-ensemble never position", list(rows))
    gain = rows["gain"]
    check((gain["trainings"], gain["questions"]) == (2, 4), "two trainings, four questions")
    for name, want in (("never", 0.25), ("right", 0.5), ("always", 0.75), ("routed", 0.1),
                       ("gain", 1), ("rescued", 37.5), ("spoiled", 12.5), ("wasted", 37.5)):
        check(near(gain[name], want), f"{name}: {gain[name]}, expected {want}")
    # gain-none routes 5 %: half of gain's answers in place of never's, (2 + 1) / 2 less 2 of 4.
    check(near(gain["above_none"], -0.125), gain["above_none"])
    check(all(np.isnan(r["above_none"]) for r in part.rows if r is not gain), "only gain")
    some = rows["position"]
    check(some["questions"] == 3 and near(some["never"], 1 / 3) and some["always"] == 1, "three")
    check(near(some["rescued"], 100 / 3) and near(some["wasted"], 200 / 3), "position")
    text = claim.line(gain).split(",")
    check(text[:5] == ["measure", "long", "gain", "2", "4"] and text[5] == "0.250000" and
          len(text) == len(claim.COLUMNS.split(",")), text)


# Right answers of never; of those wrong, rescued, and of those right, spoiled, on average; what
# concepts and trainings differ by.
NEVER, RESCUE, SPOIL, HARD, APART = 0.33, 0.35, 0.15, 0.15, 0.05
QUESTIONS, EACH, CALIBRATION, TRAININGS, TOKENS, SHARE = 300, 2, 200, 5, 40, 0.06


def as_row(policy, right, cloud):
    one = lambda i, k: f.Answer(str(i // EACH), 0, int(right[k, i]), TOKENS, cloud[k, i],
                                cloud[k, i], 0, "", "")
    return f.Row("csqa,long,pair", policy, "", {
        k + 1: {i: one(i, k) for i in range(right.shape[1])} for k in range(len(right))})


def routed(random, k, rescue, spoil, hard):
    """Draw answers of k trainings to measured and calibration questions, right under never or not;
    what the threshold of each misses by is taken from the calibration questions."""
    n = len(hard)
    before = random.random_sample(n) < NEVER + HARD * hard
    apart = APART * random.standard_normal((k, 1))
    changed = random.random_sample((k, n)) < np.where(before, spoil - apart / 2, rescue + apart)
    level = random.gamma(1, 1, n)  # of a question: how much of it is routed
    cloud = random.poisson(TOKENS * SHARE * level, (k, n))
    missed = cloud[:, QUESTIONS:].mean(axis=1, keepdims=True) / (TOKENS * SHARE)
    cloud[:, :QUESTIONS] = random.poisson(TOKENS * SHARE / missed * level[:QUESTIONS])
    return before, before ^ changed, np.minimum(np.maximum(cloud, changed), TOKENS)


def simulate(count):
    """Return of each figure its mean, and how often the interval holds the truth."""
    random, found, f.DRAWS, read = np.random.RandomState(1), [], 400, f.read
    f.read = lambda rows: rows  # made here
    every = QUESTIONS + CALIBRATION
    for _ in range(count):
        hard = np.repeat(random.choice((-1.0, 1.0), every // EACH), EACH)
        before, right, cloud = routed(random, TRAININGS, RESCUE, SPOIL, hard)
        less = np.where(before, SPOIL, RESCUE - 0.1)
        other = before ^ (random.random_sample((TRAININGS, every)) < less)
        large = before[None] | (random.random_sample((1, every)) < 0.5)
        measured = slice(0, QUESTIONS)
        rows = [as_row("never", before[None, measured], 0 * cloud[:1]),
                as_row("always", large[:, measured], 0 * cloud[:1] + TOKENS),
                as_row("mlp=gain", right[:, measured], cloud),
                as_row("mlp=gain-none", other[:, measured], cloud)]
        on = as_row("mlp=gain", right[:, QUESTIONS:], cloud[:, QUESTIONS:])
        found.append(next(r for r in claim.Part("measure", "long", rows, [on]).rows
                          if r["policy"] == "gain"))
    f.read = read
    now = NEVER * (1 - SPOIL) + (1 - NEVER) * RESCUE
    truth = {"gain": now / NEVER - 1, "rescued": 100 * (1 - NEVER) * RESCUE,
             "spoiled": 100 * NEVER * SPOIL, "right": now, "above_none": 0.1 * (1 - NEVER),
             "routed": np.mean([r["routed"] for r in found])}
    for name, want in truth.items():
        mean = np.mean([r[name] for r in found])
        off = np.std([r[name] for r in found]) / np.sqrt(count)
        check(abs(mean - want) < 3.5 * off + 1e-9, f"{name}: {mean}, expected {want}")
        if name + "_high" in found[0]:
            held = np.mean([r[name + "_low"] <= want <= r[name + "_high"] for r in found])
            print(f"{name}: {mean:.4f}, true {want:.4f}; intervals hold it in {100 * held:.1f} %")
            check(0.92 <= held <= (1 if name == "right" else 0.985), f"{name}: held in {held}")
    low = np.mean([r["above_none_low"] <= truth["above_none"] for r in found])
    check(0.95 <= low <= 1, f"above_none_low: below the truth in {low}")


by_hand()
scored = journal("scored", "mlp=gain.safetensors", [[(1, 5, 1)] * 2], (0.1, 0.2, 0.3, None, 0.9))
claim.thresholds(0.4, [scored])  # of 10 tokens four lie below 0.3
simulate(200)
end()
