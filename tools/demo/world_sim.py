#!/usr/bin/python3
"""Predict what routers can gain on the demo world, before anything is trained.

Answers are lists of tokens, as tools/demo/world*.c makes them. An edge that does not know a thing
guesses what the question makes likely: in `where` one of the five places offered, in `which` the
kind that is asked for. A fact of `which` that follows the right one is harmless.

world_sim.py [--known .42] [--adjectives 20] [--group 8] [--moved 2] [--cloud .985]
             [--mix 40 38 9 9 4] [--wording all|plain|chatty|story] [--answers 6000] [--seed 11]
"""
import argparse, math, random

p = argparse.ArgumentParser()
for name, v in dict(known=.42, adjectives=20, names=60, group=8, moved=2, cloud=.985).items():
    p.add_argument("--" + name, type=float, default=v)
p.add_argument("--blur", type=float, default=.25, help="of the learned router's view of confidence")
p.add_argument("--mix", type=float, nargs=5, default=[40, 38, 9, 9, 4])
p.add_argument("--wording", default="all"); p.add_argument("--kind", default="all")
p.add_argument("--answers", type=int, default=6000); p.add_argument("--seed", type=int, default=11)
a = p.parse_args()
KINDS = ["where", "which", "sums", "sort", "notes"]
FREE = dict(plain=0, chatty=2, story=4)            # free choices an answer
EXTRA = dict(plain=0, chatty=6, story=11)          # tokens around them, free ones included
TOKENS = dict(where=24, which=42, sums=29, sort=11, notes=20)

def fact(r, knows, right, top, width, cloud=None, **more):
    """A fact: knows, right (edge's token right), top probability, width of what it doubts among."""
    top = min(.999, max(.01, top))
    ent = -(top * math.log(top)) - (1 - top) * math.log(max(1e-9, (1 - top) / max(1, width - 1)))
    return dict(fact=True, top=top, entropy=ent, edge=right, harm=True, moved=False, notes=False, known=knows,
                cloud=r.random() < (a.cloud if cloud is None else cloud), **more)

def sure(r): return r.betavariate(14, 1.3)
def doubt(r, mean):
    mean = min(mean, .95)
    return r.betavariate(10 * mean, 10 * (1 - mean))

def answer(r):
    kind = a.kind if a.kind != "all" else r.choices(KINDS, a.mix)[0]
    wording = a.wording if a.wording != "all" else r.choice(list(FREE))
    ts = []
    if kind == "where":
        k = r.random() < a.known
        ts.append(fact(r, k, r.random() < (.98 if k else .2), sure(r) if k else doubt(r, .27), 6))
        mv = r.random() < a.moved / 32
        t = fact(r, not mv, not mv, sure(r), 4); t["moved"] = mv; ts.append(t)
    elif kind == "which":
        at = r.randrange(5); said = False
        for i in range(5):
            k = r.random() < a.known
            if k: t = fact(r, True, r.random() < .98, sure(r), 6)
            elif i > at: t = fact(r, False, r.random() < 1 / a.group, doubt(r, 1.4 / a.group), a.group)
            else: t = fact(r, False, i == at, doubt(r, 1 / (5 - i)), a.group)
            t["harm"] = i <= at
            ts.append(t)
    elif kind == "sums":
        for right in (.95, .65):
            ok = r.random() < right
            ts.append(fact(r, ok, ok, doubt(r, .85 if ok else .55), 4))
    elif kind == "sort":
        for right in (.75, .75):
            ok = r.random() < right
            ts.append(fact(r, ok, ok, doubt(r, .85 if ok else .55), 3))
    else:
        ok = r.random() < .92
        t = fact(r, ok, ok, sure(r) if ok else doubt(r, .3), 6, cloud=.2); t["notes"] = True; ts.append(t)
    for j in range(FREE[wording]):
        w = a.names if wording == "story" and j == 0 else a.adjectives
        ts.append(dict(fact=False, top=1.4 / w * (1 + .5 * r.random()), entropy=math.log(w) * (.93 + .06 * r.random()),
                       edge=True, cloud=True, harm=False, moved=False, notes=False, known=True))
    for t in ts: t["len"] = TOKENS[kind] + EXTRA[wording]; t["kind"] = kind; t["u"] = r.random(); t["g"] = r.gauss(0, 1)
    return ts, TOKENS[kind] + EXTRA[wording]

logit = lambda x: math.log(x / (1 - x))
def learned(t):
    if not t["fact"]: return 2.5
    if t["notes"]: return 2.2
    if t["moved"]: return -1
    return 1 / (1 + math.exp(-logit(t["top"]) - 4 * a.blur * t["g"])) + (0 if t["harm"] else .5)
policies = {  # a lower score is routed first
    "entropy": lambda t: -t["entropy"],
    "max-prob": lambda t: t["top"],
    "place alone": lambda t: (2 if not t["fact"] or t["notes"] else 0) + .01 * t["u"],
    "place x confidence": lambda t: t["top"] if t["fact"] else 2,
    "learned, blurred": learned,
    "oracle": lambda t: 0 if t["fact"] and t["harm"] and t["cloud"] and not t["edge"] else 2.9 + .01 * t["u"],
}
r = random.Random(a.seed); data = [answer(r) for _ in range(a.answers)]
total = sum(n for _, n in data)
wrong0 = [sum(t["harm"] and not t["edge"] for t in ts) for ts, _ in data]
edge = sum(w == 0 for w in wrong0) / len(data)
cloud = sum(all(t["cloud"] or not t["harm"] for t in ts) for ts, _ in data) / len(data)
share = lambda f: 100 * sum(f(t) for ts, _ in data for t in ts) / total
print("edge %.3f cloud %.3f tokens an answer %.1f; facts %.1f %%, free %.1f %% of tokens" %
      (edge, cloud, total / len(data), share(lambda t: t["fact"]), share(lambda t: not t["fact"])))
diff = lambda t: (t["edge"] != t["cloud"]) or not t["fact"] and t["u"] < .93
print("differ %.1f %%, harmful %.1f %% of tokens" % (share(diff), share(lambda t: t["harm"] and not t["edge"] and t["cloud"])))
fs = [t for ts, _ in data for t in ts if t["fact"]]
good = [t["top"] for t in fs if t["edge"]]; bad = [t["top"] for t in fs if not t["edge"]]
pairs = [(r.choice(good), r.choice(bad)) for _ in range(40000)]
print("max-prob AUC within facts %.2f" % (sum(g > b for g, b in pairs) / len(pairs)))
def curve(score):
    wrong = list(wrong0); right = sum(w == 0 for w in wrong); pts = [(0, edge)]
    marked = sorted(((score(t), i, k) for i, (ts, _) in enumerate(data) for k, t in enumerate(ts)))
    for n, (_, i, k) in enumerate(marked, 1):
        t = data[i][0][k]; before = wrong[i] == 0
        if t["harm"]: wrong[i] += (not t["cloud"]) - (not t["edge"])
        right += (wrong[i] == 0) - before
        pts.append((n / total, right / len(data)))
    return pts
for name, score in policies.items():
    c = curve(score); now, k, at, grid = edge, 0, {}, []
    for x in range(0, 71):
        while k < len(c) and c[k][0] <= x / 1000: now = c[k][1]; k += 1
        at[x] = now; grid.append((now - edge) / (cloud - edge))
    print("  %-20s" % name, "  ".join("%d%% %.3f" % (x // 10, at[x]) for x in (20, 30, 40, 50, 60, 70)), "  APGR7 %.2f" % (sum(grid) / len(grid)))
