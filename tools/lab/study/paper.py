#!/usr/bin/python3
"""paper.py - the columns of the paper's Table 1 from a journal of `mizzle eval --as-paper`.

Usage: paper.py EDGE_MS CALL_MS JOURNAL

Source: She et al., arXiv 2504.07878. A token of an answer takes EDGE_MS in the small model, a routed
one CALL_MS more, each call awaited. A row is a threshold; seconds are for 100 tokens; TTFT is the
median; TBT is the small model's time by the tokens that it contributed, as in the printed rows.
"""
import sys

import numpy as np

from answers import Refused
from table import read

CLOUD = "=#?"  # marks of a trace


def line(row, edge, call):
    tokens, cloud = row.sum["tokens"], row.sum["cloud"]
    first = np.median([edge + call * (x["trace"][:1] in CLOUD) for x in row.lines if x["trace"]])
    own, calls = edge / 10, call / 10 * cloud / tokens  # seconds of 100 tokens
    between = f"{edge / 1000 * tokens / (tokens - cloud):.3f}" if tokens > cloud else "-"
    return (f"{row.threshold:.4f}", f"{100 * cloud / tokens:.2f}", f"{own:.3f}",
            f"{first / 1000:.3f}", between, f"{calls:.3f}", f"{own + calls:.3f}")


def main(args):
    if len(args) != 3:
        raise Refused(2, f"expected EDGE_MS CALL_MS JOURNAL, found {' '.join(args)}")
    print("threshold,routed,edge_s,ttft_s,tbt_s,cloud_s,overall_s")
    for row in read(args[2:]):
        if not np.isnan(row.threshold):
            print(*line(row, *map(float, args[:2])), sep=",")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Refused as e:
        print(f"paper.py: {e}", file=sys.stderr)
        sys.exit(e.code)
