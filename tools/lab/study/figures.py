#!/usr/bin/python3
"""figures.py - compute what policies achieved from answers that `mizzle eval` has kept.

Usage: figures.py [--against POLICY|all] [--calibration ANSWERS]... [--csv FILE] ANSWERS...

ANSWERS are lines of items (answers.py) or journals of `eval --jsonl`. A row is a policy at its target
in one form of a task, by CITER's rule and as a reader takes the answer. --against adds the
comparison with one policy; all adds a row for each other policy behind each one with a router.
--calibration names answers to the questions that set the thresholds, at these thresholds. It adds
the interval of the share, which then contains theirs, and their number, or "none".
tools/lab/eval/README.md has the method.
"""
import sys

from need import end, need

need("numpy")
import numpy as np

from answers import Answer, Refused, Row, find, lines_of, read  # what claim.py uses, too

COLUMNS = ("task,form,pair,policy,share,score,questions,runs,accuracy,accuracy_low,accuracy_high,"
           "routed,tokens,cloud,calls,read,pgr,pgr_low,pgr_high,gain,gain_low,gain_high,"
           "relative_gain,against,against_routed,difference,difference_low,difference_high,equal,"
           "equal_low,equal_high")
CALIBRATED = ",routed_low,routed_high,calibrated"
ROUTERS = ("mlp", "context", "combined", "query", "takeover", "price")  # policies that read one
NO_THRESHOLD = ("never", "always", "position", "slot", "verify", "call", "random")
DRAWS, SEED = 2000, 1
Z = 1.959963984540054  # quantile 0.975 of the normal distribution
ROUNDING = 1e-20  # the variance of answers is 0, or far above


def mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return x ^ (x >> np.uint64(31))


def rand_u64(seed, counter):
    """rand_u64 of kernels/math.h, of arrays: the program's own intervals have the same draws."""
    gamma = np.uint64(0x9e3779b97f4a7c15)
    with np.errstate(over="ignore"):
        return mix(mix(np.asarray(seed, dtype=np.uint64) + gamma) + (np.uint64(counter) + np.uint64(1)) * gamma)


def drawn(keys, draws, n):
    """Return [len(keys)][draws]: which of n was taken in each draw, with replacement."""
    u = rand_u64(keys[:, None], np.arange(draws, dtype=np.uint64))
    half = np.uint64(32)
    at = ((u >> half) * np.uint64(n) + ((u & np.uint64(0xffffffff)) * np.uint64(n) >> half)) >> half
    return at.astype(np.int64)


def drawn_counts(keys, draws, n):
    """Return [len(keys)][n]: how often each of n was taken in so many draws, with replacement."""
    at = drawn(keys, draws, n) + n * np.arange(len(keys))[:, None]
    return np.bincount(at.ravel(), minlength=n * len(keys)).reshape(len(keys), n).astype(float)


def student(nu):
    """Return quantile 0.975 of Student's t with nu degrees of freedom, nu >= 1."""
    if nu > 100:
        return Z + (Z ** 3 + Z) / (4 * nu) + (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * nu ** 2)
    angle = np.linspace(0, np.pi / 2, 4001)  # t = sqrt(nu) tan(angle)
    density = np.cos(angle) ** (nu - 1)
    area = np.concatenate(([0], np.cumsum(density[1:] + density[:-1])))
    return float(np.sqrt(nu) * np.tan(np.interp(0.95 * area[-1], area, angle)))


def spread(questions, trainings):
    """Return the variance of a mean over questions and trainings, and the quantile 0.975 of its
    distribution. trainings has, of each number of trainings, the variance from them. Degrees of
    freedom are Satterthwaite's (1946); the questions' variance counts as known."""
    variance = questions + sum(trainings.values())
    squares = sum(part ** 2 / (k - 1) for k, part in trainings.items())
    return variance, student(max(variance ** 2 / squares, 1)) if squares > ROUNDING ** 2 else Z


def wilson(p, m, z=Z):
    """Return Wilson's interval of a share p of m."""
    middle = (p + z * z / (2 * m)) / (1 + z * z / m)
    half = z * np.sqrt(p * (1 - p) / m + z * z / (4 * m * m)) / (1 + z * z / m)
    return max(middle - half, 0), min(middle + half, 1)


class Groups:
    """Questions in groups, and how often each draw takes each group."""

    def __init__(self, groups, seed=SEED):
        number = {}
        self.group = np.array([number.setdefault(g, len(number)) for g in groups])
        self.n, self.count = len(groups), len(number)
        self.keys = rand_u64(seed, np.arange(DRAWS, dtype=np.uint64))
        self.times = drawn_counts(self.keys, self.count, self.count)

    def grouped(self, x):
        """Return the sums of x [trainings][n] over each group."""
        return np.stack([np.bincount(self.group, weights=run, minlength=self.count) for run in x])

    def accuracy(self, x, grouped, student=False):
        """Return Wilson's interval of the mean of x [trainings][n]: for as many independent questions
        as have the variance of these groups (or of single questions) and trainings, at most n."""
        k, p = len(x), x.mean()
        if k == 1 and (not grouped or self.count == self.n):
            return wilson(p, self.n)
        if grouped and self.count < 2:
            return 0, 1
        above = self.grouped((x - p) / self.n) if grouped else (x - p) / self.n
        few = self.count / (self.count - 1) if grouped else 1
        questions = (above.mean(axis=0) ** 2).sum() * few
        trainings = {k: (above.sum(axis=1) ** 2).sum() / (k * (k - 1))} if k > 1 else {}
        variance, t = spread(questions, trainings)
        most = self.count if grouped and variance < ROUNDING else self.n
        return wilson(p, p * (1 - p) / variance if variance > p * (1 - p) / most else most,
                      t if student else Z)


class Questions(Groups):
    """A set of questions, and what is computed on it. A statistic is an array [1 + k][1 + DRAWS]: in
    the first row what all trainings give, then without each training (jackknife); in the first
    column what the answers give, then what each draw of the questions' groups gives. k is 0 where
    nothing is trained."""

    def __init__(self, ids, groups, trainings, seed=SEED):
        super().__init__(groups, seed)
        self.ids, self.trainings, self.kept = ids, trainings, {}
        self.times = np.concatenate((np.ones((1, self.count)), self.times)).T
        self.items = self.sums(np.ones((1, self.n)))

    def has(self, row):
        return row is not None and all(i in row.at for i in self.ids)

    def numbers(self, row, name):
        return row.numbers[name][:, [row.at[i] for i in self.ids]]

    def sums(self, x):
        """Return the statistic of a sum over the questions; a mean over trainings. Of policies with
        as many trainings the same one is left out together."""
        t, of_each = len(x), self.grouped(x) @ self.times
        if t == 1:
            return of_each
        weights = [np.ones((1, t))]
        for k in self.trainings:
            weights.append(1 - np.eye(t) if k == t else np.ones((k, t)))
        weights = np.concatenate(weights)
        return weights @ of_each / weights.sum(axis=1, keepdims=True)  # of integers: exact sums

    def of(self, row, score):
        """Return the statistics right, tokens and cloud of a row."""
        key = id(row), score
        if key not in self.kept:
            self.kept[key] = [self.sums(self.numbers(row, x)) for x in (score, "tokens", "cloud")]
        return self.kept[key]

    def interval(self, x):
        """Return a statistic's value with its 95 % interval: quantiles of the draws of questions,
        wider by what trainings differ; NaN if it has no value in more than one draw of twenty."""
        kept = x[0, 1:][~np.isnan(x[0, 1:])]
        if self.count < 2 or len(kept) < DRAWS - DRAWS // 20:
            return x[0, 0], np.nan, np.nan
        ends = np.quantile(kept, (0.025, 0.975)) - x[0, 0]
        trainings, at = {}, 1
        for k in self.trainings if len(x) > 1 else ():
            without, at = x[at:at + k, 0], at + k
            trainings[k] = ((without - without.mean()) ** 2).sum() * (k - 1) / k
        known = kept.var()
        variance, t = spread(known, trainings)
        if variance > known > ROUNDING:
            ends = ends * np.sqrt(variance / known) * t / Z
        elif variance > known:
            ends = np.array((-1, 1)) * np.sqrt(variance) * t
        return x[0, 0], *(x[0, 0] + ends)


def equal(own, other, edge, large):
    """Return right answers of `own` less those of `other`, at the share of the tokens that `other`
    routes. A part of own's answers is given to a model alone: to the small one where own routes
    more, to the large one where it routes less. The part is that at which the mixture's tokens have
    other's share, in each draw. Each is right, tokens, cloud; edge or large may be None."""
    share = other[2] / other[1]
    beyond = own[2] - share * own[1]  # tokens of the cloud above the share
    right = own[0]
    for model, there in ((edge, beyond > 0), (large, beyond < 0)):
        if model is None:
            continue
        short = model[2] - share * model[1]
        part = np.divide(beyond, beyond - short, out=np.zeros_like(beyond), where=there)
        right = right + part * (model[0] - own[0])
    return right - other[0]


def fields(values):
    text = ["" if np.isnan(v) else f"{v:.6f}" for v in values]
    return [t if t.strip("-0.") else t.lstrip("-") for t in text]


NO_INTERVAL = (np.nan,) * 3


class Figures:
    def __init__(self, rows, against, calibration=None):
        self.rows, self.against, self.calibration, self.sets = rows, against, calibration, {}

    def questions(self, row, ids, seed=SEED):
        key = row.of, tuple(ids), seed
        if key not in self.sets:
            groups = [row.groups[row.at[i]] for i in ids]
            trainings = {r.trainings for r in self.rows if r.of == row.of} - {1}
            self.sets[key] = Questions(ids, groups, sorted(trainings), seed)
        return self.sets[key]

    def routed(self, q, row):
        """Return the share with its interval, and how many calibration questions it contains.

        Each draw draws these questions, too, and would move the threshold until they have the
        target again. Answers at that threshold are not there. To first order the drawn questions
        are d above the target at the old threshold, the new one lowers their share by d, and with
        it that of all questions alike: the slope of the share over the threshold cancels. So d is
        taken off. It means nothing where a score has many tokens and no tie is broken."""
        _, tokens, cloud = q.of(row, "answer")
        share, on = cloud / tokens, find(self.calibration or [], row, row.policy)
        if row.policy in NO_THRESHOLD or not on or on.trainings != row.trainings:
            return q.interval(share), 0
        _, tokens, cloud = self.questions(on, on.ids, SEED + 1).of(on, "answer")
        return q.interval(share - (cloud / tokens - (cloud / tokens)[:, :1])), len(on.ids)

    def own(self, q, row, score):
        """Return what a row has achieved by one score, and what each model alone has."""
        models = [find(self.rows, row, name) for name in ("never", "always")]
        edge, large = (q.of(m, score) if q.has(m) else None for m in models)
        right = q.of(row, score)
        sums = {x: q.numbers(row, x).sum() for x in ("tokens", "cloud", "calls", "read")}
        answers = q.n * row.trainings
        x = q.numbers(row, score)
        values = [x.mean(), *q.accuracy(x, not row.of.startswith("milli,"), student=True),
                  sums["cloud"] / sums["tokens"] if sums["tokens"] else 0,
                  *(sums[x] / answers for x in ("tokens", "cloud", "calls", "read"))]
        pgr, gain, relative = NO_INTERVAL, NO_INTERVAL, np.nan
        if edge:
            gain = q.interval((right[0] - edge[0]) / q.items)
            relative = right[0][0, 0] / edge[0][0, 0] - 1 if edge[0][0, 0] > 0 else np.nan
        if edge and large and large[0][0, 0] > edge[0][0, 0]:
            gap = np.where(large[0] > edge[0], large[0] - edge[0], np.nan)
            pgr = q.interval((right[0] - edge[0]) / gap)
        return values + [*pgr, *gain, relative], right, edge, large

    def compared(self, q, score, own, other):
        """Return the columns of a comparison with another row, which answered the same questions.
        An equal share means nothing where one model does all."""
        _, right, edge, large = own
        its = q.of(other, score)
        share = its[2][0, 0] / its[1][0, 0] if its[1][0, 0] else 0
        more = right[2][0, 0] > share * right[1][0, 0]
        level = NO_INTERVAL
        if 0 < share < 1 and (edge if more else large):
            level = q.interval(equal(right, its, edge, large) / q.items)
        return share, *q.interval((right[0] - its[0]) / q.items), *level

    def line(self, q, row, score, other=None, own=None):
        own = own or self.own(q, row, score)
        compares = other is not None and other is not row and q.has(other)
        versus = self.compared(q, score, own, other) if compares else (np.nan,) * 7
        routed = []
        if self.calibration is not None:
            (_, *ends), questions = self.routed(q, row)
            routed = [*fields(ends), str(questions or "none")]
        return ",".join([row.of, row.policy, row.share, score, str(q.n), str(row.trainings),
                         *fields(own[0]), other.policy if compares else "", *fields(versus),
                         *routed])

    def lines(self, row, score):
        q = self.questions(row, row.ids)
        own = self.own(q, row, score)
        every = self.against == "all"
        one = find(self.rows, row, self.against) if self.against and not every else None
        yield self.line(q, row, score, one, own)
        if not every or row.policy.split("=")[0] not in ROUTERS:
            return
        for other in self.rows:
            if other.policy == row.policy or not row.beside(other):
                continue
            ids = [i for i in row.ids if i in other.at]
            if len(ids) == len(row.ids):
                yield self.line(q, row, score, other, own)
            elif ids:
                yield self.line(self.questions(row, ids), row, score, other)

    def all(self):
        yield COLUMNS + (CALIBRATED if self.calibration is not None else "")
        for row in self.rows:
            for score in ("citer", "answer"):
                if score == "answer" or not row.of.startswith("milli,"):  # milli has one rule
                    yield from self.lines(row, score)


def main(args):
    options, calibration = {"--against": None, "--csv": None, "--calibration": None}, []
    while args and args[0].startswith("-"):
        if args[0] not in options or len(args) < 2:
            raise Refused(2, f"expected {' or '.join(options)} with a value, found {args[0]}")
        options[args[0]] = args[1]
        calibration += [args[1]] * (args[0] == "--calibration")
        args = args[2:]
    if not args:
        raise Refused(2, "expected files of answers after the options, found none")
    rows, against = read(args), options["--against"]
    if against not in (None, "all") and not any(r.policy == against for r in rows):
        raise Refused(2, f"--against: expected one of the policies, found {against}")
    figures = Figures(rows, against, read(calibration) if calibration else None)
    text = "".join(line + "\n" for line in figures.all())
    try:
        with open(options["--csv"] or 1, "w", encoding="utf-8", errors="surrogateescape") as out:
            out.write(text)
    except OSError as e:
        raise Refused(1, f"{options['--csv'] or 'the output'}: {e.strerror}")


if __name__ == "__main__":
    end(main, sys.argv[1:])
