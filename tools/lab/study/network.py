#!/usr/bin/python3
"""network.py - how long the answers of journals take on another device and network.

Usage: network.py [options] JOURNAL...   (network.py --help lists them)

A journal (`mizzle eval --jsonl`) says of each token whose it is and whether the small model would
have written the same. Times follow from it, without waiting. A table row is a policy on one
network; times are in ms.

Method. A step of the small model takes T ms, a prompt of n ids n P ms, at least a step. A call
takes the round trip, C ms in the cloud, and its bytes over the rate of each way. Each packet of
1,448 bytes is lost with a probability; a lost one costs a retransmission timeout (RFC 6298: 200 ms,
the usual minimum, and the round trip), doubled when it is lost again. What is lost depends on the
seed and the ids before the token alone (splitmix64, Steele, Lea, Flood 2014), so it is the same in
step and ahead. In step, the text waits for each call. Ahead, it continues after the small model's
guess up to the next routed token (router/decode/step.c); another answer drops what came after it.
Without an answer's ids its own hash takes their place; sizes are means where a line has no others.
"""
import argparse
import itertools
import sys
from collections import namedtuple

from need import end, need

need("numpy")
import numpy as np

from answers import Refused, expect, lines_of
from figures import mix, wilson

PACKET, PACKETS, AGAIN, TIMEOUT, FIRST = 1448, 256, 6, 200, 1 << 20
NEEDED = "trace", "calls", "bytes_up", "bytes_down", "prompt", "tokens", "cloud", "right"
GAMMA = np.uint64(0x9e3779b97f4a7c15)

Device = namedtuple("Device", "edge prefill cloud")  # ms of a step, a prompt's id, a cloud token
Network = namedtuple("Network", "latency up down loss")  # ms; bytes/s or 0; share of packets
Call = namedtuple("Call", "key header up down")  # of random events; bytes: request's, reply's body


def splitmix(x):
    with np.errstate(over="ignore"):
        return mix(np.uint64(x) + GAMMA)


def key_of(seed, ids):
    """Return what random events of a call depend on: the ids before its token, and the seed."""
    hashed = np.uint64(len(ids))
    for i in ids:
        hashed = splitmix(hashed ^ np.uint64(i))
    return splitmix(splitmix(np.uint64(seed) ^ hashed))


def unit(key, purposes):
    """Return numbers in [0, 1), uniform, functions of the key and the purposes."""
    return (splitmix(np.uint64(key) ^ splitmix(purposes)) >> np.uint64(11)) / 2.0 ** 53


def transit(net, call):
    """Return the ms in transit: the round trip and the timeouts of lost packets."""
    if not net.loss:
        return float(net.latency)
    n = sum(min(int(size) // PACKET + 1, PACKETS) for size in (call.up, call.down))
    drawn = unit(call.key, np.arange(FIRST, FIRST + n * AGAIN, dtype=np.uint64)).reshape(n, AGAIN)
    lost = np.logical_and.accumulate(drawn < np.float32(net.loss), axis=1)  # as an option is read
    return net.latency + (lost * (TIMEOUT + net.latency) * 2.0 ** np.arange(AGAIN)).sum()


def call_ms(device, net, call):
    """Return the ms between a request and its answer."""
    sent = [1000 * size / rate if rate else 0.0
            for size, rate in ((call.header + call.up, net.up), (call.down, net.down))]
    return transit(net, call) + device.cloud + sum(sent)


def decided(routed, agrees, calls, step, ahead):
    """Return when each token is decided, in ms after the first step. calls: ms of a routed token.
    Over long texts with a share r routed, a of them guessed right, and calls of L ms the mean is
    step + r L in step, and at least step + r (1 - a) L ahead."""
    n, at, now, sure, next_ = len(routed), [0.0] * len(routed), 0.0, 0, 0
    asked, due = None, 0.0  # the token whose call is in flight, and when it is answered

    def go_on(token):
        """Continue after a token; the next one needs it evaluated, except after the last."""
        nonlocal next_, now, sure
        next_ = token + 1
        if asked is None:
            at[sure:next_] = [now] * (next_ - sure)
            sure = max(sure, next_)
        now += step if next_ < n else 0

    while next_ < n or asked is not None:
        asks = next_ < n and routed[next_]
        waits = asked is not None and (next_ == n or asks)
        now = max(now, due) if waits else now
        # An answer that comes just as a step ends is seen after the next: a real call is slower.
        if asked is not None and (due <= now if waits else due < now):
            token, asked = asked, None
            if agrees[token]:
                at[sure:next_] = [now] * (next_ - sure)
                sure = max(sure, next_)
            else:
                go_on(token)
            continue
        if asks and ahead:
            asked, due = next_, now + calls[next_]
        elif asks:
            now += calls[next_]
        go_on(next_)
    return np.array(at)


def calls_of(line, seed=0):
    """Return {token: Call} of a line. Its `ids` are those of prompt and answer; `header`, `up` and
    `down` have a size for each call."""
    at = [i for i, mark in enumerate(line["trace"]) if mark in "=#?"]
    n, ids = max(line["calls"], 1), line.get("ids")
    sizes = zip(*(line.get(name, [mean] * len(at)) for name, mean in
                  (("header", 0), ("up", line["bytes_up"] / n), ("down", line["bytes_down"] / n))))
    before = ((lambda i: ids[:line["prompt"] + i]) if ids else
              (lambda i: [int(line["hash"], 16), i]))
    return {i: Call(key_of(seed, before(i)), *size) for i, size in zip(at, sizes)}


def times(line, device, net, ahead):
    """Return the ms of each token of an answer: since the one before it, the first since the start.
    The line keeps its calls, for other networks."""
    routed = [mark in "=#?" for mark in line["trace"]]
    if "sent" not in line:
        line["sent"] = calls_of(line)
    sent = line["sent"]
    ms = [call_ms(device, net, sent[i]) if i in sent else 0.0 for i in range(len(routed))]
    at = decided(routed, [mark == "=" for mark in line["trace"]], ms, device.edge, ahead)
    return np.diff(at, prepend=-max(device.prefill * line["prompt"], device.edge))


def answers(paths):
    """Yield the lines of journals that hold an answer."""
    found = None
    for path in paths:
        for number, found, _ in lines_of(path):
            if found is None:
                raise Refused(3, f"{path}: expected a journal, found items")
            expect(path, number, found, NEEDED if "ids" in found else (*NEEDED, "hash"))
            if found["trace"]:
                yield found
    if not found:
        raise Refused(3, f"{paths[0]}: expected answers, found none")


def row(lines, device, net, ahead):
    """Return the figures of a policy's answers: their number, tokens, those of the cloud, accuracy
    with Wilson's interval, ms of an answer (mean), its first token and the next (median, 95 %)."""
    each = [times(line, device, net, ahead) for line in lines]
    sums = [sum(line[name] for line in lines) for name in ("tokens", "cloud", "right")]
    next_ = np.concatenate([one[1:] for one in each] + [np.zeros(0 if sums[0] > len(each) else 1)])
    p, ms = sums[2] / len(each), sum(one.sum() for one in each) / len(each)
    return (len(each), *sums[:2], p, *wilson(p, len(each)), ms,
            np.median([one[0] for one in each]), *np.quantile(next_, (0.5, 0.95)))


def numbers(text):
    """Return a list of numbers as they are written."""
    return [x for x in text.split(",") if float(x) >= 0]


def main():
    parser = argparse.ArgumentParser(
        description="Time the answers of journals on other networks. Values of the network may be "
                    "lists: a row for each combination.")
    for name, what in (("edge-ms", "of a step"), ("prefill-ms", "of an id of the prompt"),
                       ("cloud-ms", "that the cloud computes for a token")):
        parser.add_argument(f"--{name}", type=float, default=50 if name == "edge-ms" else 0,
                            help=f"ms {what} (default: %(default)s)")
    for name, default, what in (("latency", "0", "ms of a round trip"),
                                ("kbit-s", "0", "rate of each way, 0: no limit"),
                                ("loss", "0", "share of packets lost"),
                                ("ahead", "0,1", "1: decode ahead, 0: in step")):
        parser.add_argument(f"--{name}", type=numbers, default=default, help=f"{what} (default: {default})")
    parser.add_argument("journals", nargs="+", metavar="JOURNAL")
    o = parser.parse_args()
    device, policies = Device(o.edge_ms, o.prefill_ms, o.cloud_ms), {}
    for line in answers(o.journals):
        policies.setdefault((line["policy"], line["share"], line.get("point")), []).append(line)
    print("policy,share,latency_ms,kbit_s,loss,ahead,questions,tokens,cloud,accuracy,accuracy_low,"
          "accuracy_high,ms,ttft_ms,tbt_ms,tbt_p95_ms")
    for latency, rate, loss, ahead in itertools.product(o.latency, o.kbit_s, o.loss, o.ahead):
        net = Network(float(latency), 125 * float(rate), 125 * float(rate), float(loss))
        for (policy, share, _), lines in policies.items():
            n, tokens, cloud, *rest = row(lines, device, net, int(ahead))
            print(policy, "" if share is None else f"{share:.6f}", latency, rate, loss, ahead, n,
                  tokens, cloud, *(f"{v:.6f}" for v in rest[:3]), *(f"{v:.3f}" for v in rest[3:]),
                  sep=",")


if __name__ == "__main__":
    end(main)
