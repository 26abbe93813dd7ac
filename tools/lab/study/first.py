"""first.py - a researcher's first file: ask, load, draw, train a router, ask again.

Usage: /usr/bin/python3 tools/lab/study/first.py FOLDER [QUESTIONS]

It asks the demo pair, draws FOLDER/first.svg and prints policy, right and routed in percent. $MIZZLE
is the program (build/mizzle).

The router is a logistic regression of a token's label on the small model's hidden state, found by
Newton's method with a ridge of 1 (iteratively reweighted least squares; Bishop 2006, section 4.3.3).
Its score is the probability that the small model's token may stand. A router's file holds
sigmoid(w2 relu(w1 x + b1) + b2), so z = relu(z) - relu(-z) makes it linear (router/README.md).
"""
import glob
import os
import subprocess
import sys

from need import need

need("numpy", "matplotlib")
import numpy as np

import answers
import plots

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import import_router

known = sys.argv[1:] and not sys.argv[1].startswith("-")
folder, questions = (sys.argv[1:] + ["100"])[:2] if known else sys.exit(__doc__)


def mizzle(*args):
    program = os.environ.get("MIZZLE", "build/mizzle")
    try:
        subprocess.run([program, *args], check=True, stdout=subprocess.DEVNULL)
    except subprocess.CalledProcessError as e:
        sys.exit(e.returncode)  # the program has said why
    except OSError as e:
        sys.exit(f"first.py: {e}")


def ask(policies, share):
    """Ask questions, and return the file of the answers; --jsonl goes on where it stopped."""
    journal = f"{folder}/{policies.partition('=')[0]}-{share}.jsonl"
    mizzle("eval", "-q", "--questions", questions, "--policy", policies, "--target-routed", share,
           "--jsonl", journal)
    return journal


# 1. Ask, load, and draw: an answers.Row has numbers[NAME], arrays of trainings x questions.
os.makedirs(folder, exist_ok=True)
journals = [ask("never,always,mlp,max-prob", "0.02")]
journals += [ask("mlp,max-prob", share) for share in ("0.05", "0.1")]

# 2. Train on the hidden states and labels of other questions.
mizzle("router", "collect", "-q", "--questions", str(4 * int(questions)), "--labels", "divergent",
       "-o", f"{folder}/samples")
shards, about = zip(*map(import_router.read, sorted(glob.glob(f"{folder}/samples/*.safetensors"))))
x, y = (np.concatenate([s[name] for s in shards]) for name in ("hidden", "label"))
x, w = np.column_stack([x, np.ones(len(x))]).astype(float), np.zeros(x.shape[1] + 1)
for _ in range(20):
    p = 1 / (1 + np.exp(-x @ w))
    w += np.linalg.solve((x.T * (p * (1 - p))) @ x + np.eye(len(w)), x.T @ (y - p) - w)

# 3. Write the router, ask again, and draw all policies.
router, ends = f"{folder}/linear.safetensors", np.array([1, -1])
tensors = import_router.network(np.outer(ends, w[:-1]), ends * w[-1], ends[None], np.zeros(1))
about = {"tap": "final", "threshold": "0.5", "model": about[0]["model"]}
import_router.write(router, tensors, about)
journals += [ask(f"mlp={router}", share) for share in ("0.02", "0.05", "0.1")]
rows = [{"policy": r.policy, "right": f"{100 * r.numbers['answer'].mean():.2f}",
         "routed": f"{100 * r.numbers['cloud'].sum() / r.numbers['tokens'].sum():.4f}"}
        for r in answers.read(journals)]
alone = [r for r in rows if r["policy"] in ("never", "always")]
text = plots.Axes("Right answers over the share of the large model's tokens",
                  f"{questions} questions of the demo", "tokens from the large model (%)",
                  "right answers (%)")
lines = plots.series([r for r in rows if r not in alone], "policy", "routed", "right")
plots.draw(f"{folder}/first.svg", text, lines,
           guides=[(float(r["right"]), r["policy"]) for r in alone])
print("policy,right,routed", *(",".join(r.values()) for r in rows), sep="\n")
