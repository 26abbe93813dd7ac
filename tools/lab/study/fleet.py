#!/usr/bin/python3
"""fleet.py - how many devices a server carries and what they wait: a simulation of events.

Usage: fleet.py [options]     prints CSV (fleet.py --help lists the options)

Device. It rests (an exponential time), writes an answer of some tokens after a prompt, and rests
again. A token is routed with a probability, independently of others. While its call is in flight,
the text continues after the small model's guess, as router/decode/step.c does. The cloud agrees
with a probability; otherwise what came after the guess is dropped when the step in progress ends.
The device waits at the next routed token and at the end. With share 1 the cloud writes each answer
alone, in one call.

Server. It computes in passes (continuous batching). A pass admits calls in their order, reads their
new tokens, writes one token of each call that has been read, and takes

    max(step, tokens read / prefill + tokens written / decode)

A text takes one place per token. With the cache it stays after its call, and the next call of the
same answer reads what is new; the texts that were unused longest make room. Half of the latency is
spent each way. A device whose call is late asks less: the system is closed, so with few calls of
each device, one at a time, it is the queue M/D/1 (Pollaczek and Khinchine; tests/lab/t_fleet.py).

Counting begins after max(10,000, 4 n) answers and as many calls, and ends after as many more.
Quantiles are those of bins 0.1 % wide: the larger one of first tokens of calls and of later ones.
"""
import argparse
import math
import sys
from array import array
from collections import deque, namedtuple
from heapq import heappop, heappush

from need import need

need("numpy")
import numpy as np

from figures import rand_u64

SEED, LEAST, LEAST_EACH, MOST = 1, 10000, 4, 1000000
BLOCK = 64  # draws of a device that are made at once
BIN_SHIFT = 42  # a bin is a double without so many bits
LN2_HI, LN2_LO = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")

Options = namedtuple("Options", "idle routed agree edge prefill decode step prompt tokens latency "
                     "parallel chunk kv cache")  # s; ms; tokens/s; tokens; 0: no limit
Times = namedtuple("Times", "ms of")  # of tokens; how many took so long


def log(x):
    """log_f64 of kernels/math.h, to the last bit: ln(m) = 2 atanh((m - 1) / (m + 1))."""
    m, e = np.frexp(x)
    below = m <= float.fromhex("0x1.6a09e667f3bcdp-1")
    m, e = np.where(below, 2 * m, m), np.where(below, e - 1, e)
    s = (m - 1) / (m + 1)
    y = np.full_like(s, 1 / 23)
    for k in range(21, 0, -2):
        y = y * (s * s) + 1 / k
    return e * LN2_HI + (e * LN2_LO + 2 * s * y)


class Fleet:
    """n devices and their server. A list has an entry for each device."""

    def __init__(self, o, n):
        self.o, self.n, self.now = o, n, 0.0
        self.keys = rand_u64(SEED, np.arange(n, dtype=np.uint64))
        self.units, self.logs, self.drawn = [None] * n, [None] * n, [0] * n
        self.log_other = float(log(np.float64(1 - o.routed))) if o.routed < 1 else 0.0
        self.answer = [0] * n  # number of the present one, from 1
        self.start, self.asked = [0.0] * n, [0.0] * n  # its begin; when its present call is made
        self.token = [0] * n  # that the call is for, from 0
        self.text, self.held, self.read, self.left = [0] * n, [0] * n, [0] * n, [0] * n
        self.kept = {}  # texts that may be dropped, the one unused longest first
        self.calls = []  # heap of those not admitted, soonest first
        self.readers, self.writers, self.ends = deque(), 0, {}  # {number of a pass: devices}
        self.used = self.unread = self.passed = 0
        self.count()
        for device in range(n):
            self.begin(device, 0.0)
            heappush(self.calls, (self.asked[device], device))

    def count(self):
        self.since, self.answers, self.answered, self.read_ids = self.now, 0, 0, 0
        self.answers_ms = self.work = self.busy = 0.0
        self.passes = self.joined = 0
        self.times = Times(array("d"), array("q")), Times(array("d"), array("q"))

    def draw(self, device):
        """Return where in the device's block the next number is, in (0, 1]."""
        i = self.drawn[device]
        self.drawn[device] = i + 1
        if i % BLOCK == 0:
            u = rand_u64(self.keys[device], np.arange(i, i + BLOCK, dtype=np.uint64))
            unit = 1 - (u >> np.uint64(11)) / 2.0 ** 53
            self.units[device] = array("d", unit.tobytes())
            self.logs[device] = array("d", log(unit).tobytes())
        return i % BLOCK

    def gap(self, device):
        """Return the tokens before the next routed one, or those of an answer if there are more."""
        if self.o.routed >= 1:
            return 0
        i = self.draw(device)
        gap = self.logs[device][i] / self.log_other
        return int(gap) if gap < self.o.tokens else self.o.tokens

    def begin(self, device, now):
        """End the present answer, and begin answers until one makes a call."""
        o = self.o
        while True:
            if self.answer[device]:
                self.answers += 1
                self.answers_ms += now - self.start[device]
            self.answer[device] += 1
            i = self.draw(device)
            self.start[device] = start = now - 1000 * o.idle * self.logs[device][i]
            self.token[device] = token = self.gap(device)
            if token < o.tokens:
                break
            now = start + o.edge * o.tokens
        self.asked[device] = start + (o.edge * (token + 1) if o.routed < 1 else 0)

    def hear(self, device, now):
        """Take the last token of a call, and go to the next call, which is not made before now."""
        o = self.o
        if o.routed >= 1:
            return self.begin(device, now)
        token, asked, last = self.token[device], self.asked[device], o.tokens - 1
        next_, begun = token + 1 + self.gap(device), asked
        i = self.draw(device)
        if self.units[device][i] > o.agree:
            # A wrong guess is noticed after the step in progress, or at once while waiting.
            waits = asked + o.edge * ((next_ if next_ < last else last) - token)
            step = asked + o.edge * (math.floor((now - asked) / o.edge) + 1)
            begun = now if now >= waits else step if step < waits else waits
            next_ = token + 1 + self.gap(device)
        at = begun + o.edge * ((next_ if next_ < last else last) - token)
        at = at if at > now else now
        if next_ >= o.tokens:
            return self.begin(device, at)
        self.asked[device], self.token[device] = at, next_

    def drop(self, device):
        self.kept.pop(device, None)
        self.used -= self.held[device]
        self.held[device] = self.read[device] = 0

    def admit(self):
        """Admit the soonest call. False: there is no room."""
        o, device = self.o, self.calls[0][1]
        text, wants = o.prompt + self.token[device], 1 if o.routed < 1 else o.tokens
        self.kept.pop(device, None)
        if self.text[device] != self.answer[device]:
            self.drop(device)
        more = text + wants - 1 - self.held[device]
        while o.kv and self.used + more > o.kv:
            if not self.kept:
                return False
            self.drop(next(iter(self.kept)))
        self.used += more
        self.held[device] += more
        self.text[device] = self.answer[device]
        self.left[device] = left = text - self.read[device]
        self.unread += left
        self.read_ids += left
        self.readers.append(device)
        heappop(self.calls)
        return True

    def run_pass(self):
        """Run one pass over the admitted calls; devices whose calls end go on."""
        o, n = self.o, len(self.readers) + self.writers
        read, written, first = 0, self.writers, []
        while self.readers:
            device = self.readers[0]
            take = min(self.left[device], o.chunk - read) if o.chunk else self.left[device]
            self.left[device] -= take
            read += take
            if self.left[device]:
                break
            first.append(self.readers.popleft())
        work = 1000 * (read / o.prefill + written / o.decode)
        ms = work if work > o.step else o.step
        before, self.now = self.now + o.latency / 2, self.now + ms
        self.work += work
        self.busy += ms
        self.passes += 1
        self.joined += n
        self.passed += 1
        self.unread -= read
        now, told, later = self.now + o.latency / 2, *self.times
        for device in first:
            told.ms.append(now - self.asked[device])
            told.of.append(1)
        if written:
            later.ms.append(now - before)
            later.of.append(written)
        done = first
        if o.routed >= 1 and o.tokens > 1:
            self.ends[self.passed + o.tokens - 1] = first
            done = self.ends.pop(self.passed, ())
            self.writers += len(first) - len(done)
        for device in done:
            self.kept[device] = None
            self.read[device] = self.held[device]
            if not o.cache:
                self.drop(device)
            self.answered += 1
            self.hear(device, now)
            heappush(self.calls, (self.asked[device], device))

    def run(self):
        """Simulate the steady state."""
        o, calls, way = self.o, self.calls, self.o.latency / 2
        enough = max(LEAST, LEAST_EACH * self.n)
        for part in range(2):
            if part:
                self.count()
            while self.answers < enough or self.answered < enough:
                active = len(self.readers) + self.writers
                if not active and self.now < calls[0][0] + way:
                    self.now = calls[0][0] + way
                while (calls and calls[0][0] + way <= self.now and
                       (not o.parallel or len(self.readers) + self.writers < o.parallel) and
                       (not o.chunk or self.unread < o.chunk) and self.admit()):
                    pass
                self.run_pass()
        return self

    def quantile(self, share):
        """Return the ms below which this share of the times lies, to 0.1 %; 0: there are none."""
        most = 0.0
        for told in self.times:
            if told.ms:
                bins = np.frombuffer(told.ms, dtype=np.uint64) >> np.uint64(BIN_SHIFT)
                order = np.argsort(bins, kind="stable")
                below = np.cumsum(np.frombuffer(told.of, dtype=np.int64)[order])
                at = bins[order][np.searchsorted(below, share * below[-1])]
                middle = (at << np.uint64(BIN_SHIFT)) + np.uint64(1 << (BIN_SHIFT - 1))
                most = max(most, float(middle.view(np.float64)))
        return most


def carries(o, p95):
    """Return the largest fleet, to 1 %, of which 95 % of the tokens arrive within p95 ms; 0 if one
    device is too many, MOST if so many are not."""
    low = high = 0  # low carries; high does not, and is 0 until that is found
    while low < MOST and (not high or high - low > 1 + low // 100):
        n = low + (high - low) // 2 if high else min(2 * low, MOST) if low else 1
        if Fleet(o, n).run().quantile(0.95) <= p95:
            low = n
        else:
            high = n
    return low


COLUMNS = ("devices,routed,cache,load,busy,calls_per_s,calls_per_pass,read_per_call,p50_ms,p95_ms,"
           "answer_s,answers_per_s,carries")


def row(f, carried):
    s, o = (f.now - f.since) / 1000, f.o
    values = ((f.n, 0), (o.routed, 3), (o.cache, 0), (f.work / (1000 * s), 4),
              (f.busy / (1000 * s), 4), (f.answered / s, 2), (f.joined / f.passes, 2),
              (f.read_ids / f.answered, 1), (f.quantile(0.5), 1), (f.quantile(0.95), 1),
              (f.answers_ms / f.answers / 1000 if f.answers else 0, 3), (f.answers / s, 3),
              (carried, 0))
    return ",".join(f"{value:.{digits}f}" for value, digits in values)


def main():
    parser = argparse.ArgumentParser(description="Simulate many devices that share one server.")

    def add(name, default, least, most, what):
        def number(text):
            value = type(default)(text)
            if not least <= value <= most:
                raise argparse.ArgumentTypeError(f"expected {least:g} to {most:g}, found {text}")
            return value if isinstance(default, int) else float(np.float32(value))
        parser.add_argument(f"--{name}", type=number, default=number(default), metavar="N",
                            help=f"{what} (default: {default})")
    add("idle", 60.0, 1e-9, 1e9, "mean rest between two answers, s")
    add("n-prompt", 150, 1, 1 << 16, "tokens before an answer")
    add("n-predict", 100, 1, 1 << 16, "tokens of an answer")
    add("share", 0.07, 0.001, 1, "share of tokens routed; 1: the cloud writes each answer alone")
    add("agree", 0.7, 0, 1, "share of the routed tokens that the edge has guessed")
    add("edge-ms", 40.0, 1e-9, 1e9, "ms of a step of the edge")
    add("latency", 50, 0, 60000, "ms of a round trip")
    add("prefill", 11146.0, 1e-9, 1e12, "tokens/s that the server reads")
    add("decode", 1443.0, 1e-9, 1e12, "tokens/s that it writes, of many answers at once")
    add("cloud-ms", 11.3, 1e-9, 1e9, "least ms of a pass")
    add("parallel", 0, 0, MOST, "most calls at a time; 0: no limit")
    add("chunk", 8192, 0, 10 ** 9, "most tokens read in a pass; 0: no limit")
    add("kv", 224000, 0, 10 ** 9, "tokens whose keys and values fit; 0: no limit")
    add("cloud-timeout", 250.0, 1e-9, 1e9, "ms within which 95 %% of the tokens must arrive")
    parser.add_argument("--no-cache", action="store_true", help="read the whole text for each call")
    parser.add_argument("--devices", default="1,10,100,1000,10000,100000", metavar="LIST",
                        help="sizes of fleets (default: %(default)s)")
    a = parser.parse_args()
    sizes = [int(n) for n in a.devices.split(",")]
    if not all(1 <= n <= MOST for n in sizes) or 0 < a.kv < a.n_prompt + a.n_predict:
        parser.error(f"expected 1 to {MOST} devices, and --kv for the tokens of an answer")
    o = Options(a.idle, a.share, a.agree, a.edge_ms, a.prefill, a.decode, a.cloud_ms, a.n_prompt,
                a.n_predict, a.latency, a.parallel, a.chunk, a.kv, not a.no_cache)
    carried = carries(o, a.cloud_timeout)
    print(COLUMNS)
    for n in sizes:
        print(row(Fleet(o, n).run(), carried), flush=True)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, KeyboardInterrupt) as e:
        sys.exit(f"fleet.py: {e or 'interrupted'}")
