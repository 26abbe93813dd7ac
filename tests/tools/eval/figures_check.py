"""figures_check.py - tests tools/lab/study/figures.py: cases that are worked out by hand, and a
simulation in which the difference at an equal share is known.

Usage: figures_check.py [SIMULATIONS]"""
import sys

import numpy as np

from checks import check, end, near
import figures as f


def of(*numbers):
    return [np.array([[float(x)]]) for x in numbers]


def by_hand():
    """Right answers, tokens and those of the cloud. A quarter of
    own's answers in place of the small model's has 15 of 150 tokens from the cloud, the 10 % of the
    other: 2 + (6 - 2) / 4 = 3 are right, two less. Half of them, by shares, would have 15 %."""
    edge, other, own, large = of(2, 100, 0), of(5, 200, 20), of(6, 300, 60), of(9, 150, 150)
    check(near(f.equal(own, other, edge, large)[0, 0], -2), "brought down")
    # A seventh of the large model's answers: 20 + 130 / 7 of 200 - 50 / 7 tokens are 20 %.
    check(near(f.equal(other, own, edge, large)[0, 0], 5 + 4 / 7 - 6), "lifted")
    check(near(f.equal(own, own, edge, large)[0, 0], 0), "at its own share")
    pair = lambda a, b: [np.concatenate(x, axis=1) for x in zip(a, b)]
    both = f.equal(pair(own, other), pair(other, own), edge, large)
    check(near(both[0, 0], -2) and near(both[0, 1], 4 / 7 - 1), "each draw at its own share")
    for nu, want in ((1, 12.706205), (2, 4.302653), (4, 2.776445), (30, 2.042272), (1000, 1.962339)):
        check(near(f.student(nu), want, 2e-5), f"student({nu})")
    low, high = f.wilson(0.5, 100)
    check(near(low, 0.403832, 1e-6) and near(high, 0.596168, 1e-6), "Wilson")
    variance, t = f.spread(1, {5: 1})  # (1 + 1)^2 / (1 / 4) = 16 degrees of freedom
    check(variance == 2 and near(t, 2.119905, 1e-5) and f.spread(1, {}) == (1, f.Z), "Satterthwaite")
    check(int(f.rand_u64(1, np.zeros(1, dtype=np.uint64))[0]) == 0x5e41ab087439611e, "rand_u64")


def trainings():
    """Of two trainings one has all right and the other none: t with one degree of freedom."""
    q = f.Questions(list(range(8)), list(range(8)), [2])
    value, low, high = q.interval(q.sums(np.repeat([[1.0], [0.0]], 8, axis=1)) / q.items)
    check(near(value, 0.5) and near(high, 0.5 + 0.5 * f.student(1)) and near(low, 1 - high), "two")
    right = np.array([[0.0, 1, 1, 0, 1, 1, 1, 0]])
    same, once = (q.interval(q.sums(x) / q.items) for x in (np.repeat(right, 2, axis=0), right))
    check(np.allclose(same, once), "equal trainings are like a single one")
    one = f.Questions([0, 1], ["a", "a"], [])
    check(np.isnan(one.interval(one.sums(np.ones((1, 2))) / one.items)[1]), "one group")


QUESTIONS, TRAININGS = 300, 5
# Right answers, fewest and most tokens, share of the cloud.
OWN, OTHER = (0.50, 20, 40, 0.067), (0.44, 10, 20, 0.049)
EDGE, LARGE = (0.29, 10, 20, 0), (0.65, 20, 40, 1)
# Standard deviations over trainings: right answers, the share as a part of itself. More right
# answers for a larger share. How questions differ.
RIGHT, SHARE, SLOPE, HARD = 0.06, 0.08, 1.5, 0.2


def answers(random, hard, policy, k):
    """Draw k trainings of a policy that answer the same questions: right, tokens, cloud."""
    right, fewest, most, share = policy
    apart = random.standard_normal((2, k, 1)) * (k > 1)
    shares = share * (1 + SHARE * apart[0])
    right = right + RIGHT * apart[1] + SLOPE * (shares - share) + HARD * hard
    tokens = random.randint(fewest, most + 1, (k, QUESTIONS))
    cloud = random.binomial(tokens, np.clip(shares, 0, 1))
    return [1.0 * (random.random_sample(tokens.shape) < right), 1.0 * tokens, 1.0 * cloud]


def simulate(count):
    """Return the true difference, how far both ways are off on average, and how often the interval
    holds the truth."""
    random, questions, f.DRAWS = np.random.RandomState(1), list(range(QUESTIONS)), 500
    q = f.Questions(questions, questions, [TRAININGS])
    policies = (OWN, TRAININGS), (OTHER, TRAININGS), (EDGE, 1), (LARGE, 1)
    mean = [of(p[0], (p[1] + p[2]) / 2, p[3] * (p[1] + p[2]) / 2) for p, _ in policies]
    truth, off, inside = f.equal(*mean)[0, 0], np.zeros(2), 0
    for _ in range(count):
        hard = random.choice((-1.0, 1.0), QUESTIONS)
        own, other, edge, large = ([q.sums(x) for x in answers(random, hard, *p)] for p in policies)
        value, low, high = q.interval(f.equal(own, other, edge, large) / q.items)
        part = other[2] / other[1] / (own[2] / own[1])  # a fraction from shares, as of equal lengths
        by_answers = (edge[0] + part * (own[0] - edge[0]) - other[0])[0, 0] / QUESTIONS
        off += by_answers - truth, value - truth
        inside += low <= truth <= high
    return truth, *off / count, inside / count


TARGET, LENGTH, SHIFT, OWN_NOISE = 0.06, 40, 0.04, 0.3


def texts(random, n, k):
    """Draw what scores follow from: of n questions, tokens and how hard they are; of k trainings,
    the tokens' scores before anything is routed, which have most in common."""
    hard, lengths = random.gamma(2, 0.5, (n, 1)), random.randint(LENGTH // 2, LENGTH + 1, n)
    both = random.standard_normal((1, n, LENGTH)) + OWN_NOISE * random.standard_normal((k, n, 1))
    return both - hard, lengths


def routed(scores, lengths, threshold):
    """Return how many tokens of each question are routed: each one lifts all later scores."""
    cloud = np.zeros(scores.shape[:2])
    for at in range(LENGTH):
        cloud += (scores[:, :, at] + SHIFT * cloud < threshold[:, None]) & (at < lengths)
    return cloud


def calibrate(scores, lengths):
    """Return each training's threshold for the share TARGET, in the closed loop."""
    low, high = np.full(len(scores), -9.0), np.zeros(len(scores))
    for _ in range(14):
        middle = (low + high) / 2
        below = routed(scores, lengths, middle).sum(axis=1) < TARGET * lengths.sum()
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def as_row(policy, cloud, lengths):
    one = lambda i, run: f.Answer(str(i), 0, 0, lengths[i], run[i], run[i], 0, "", "")
    return f.Row("csqa,chat,pair", policy, "", {
        t + 1: {i: one(i, run) for i in range(len(lengths))} for t, run in enumerate(cloud)})


def shares(count, measured, calibrated, k):
    """Return how often the interval of the share holds the one that is expected of a calibration,
    with and without its questions, and that share."""
    random, inside, without, all_shares = np.random.RandomState(2), [], [], []
    for _ in range(count):
        own, lengths = texts(random, measured + calibrated, k)
        threshold = calibrate(own[:, measured:], lengths[measured:])
        cloud = routed(own, lengths, threshold)
        row = as_row("mlp", cloud[:, :measured], lengths[:measured])
        on = as_row("mlp", cloud[:, measured:], lengths[measured:])
        figures = f.Figures([row], None, [on])
        q = figures.questions(row, row.ids)
        with_them, questions = figures.routed(q, row)
        figures.calibration = None
        check(questions == calibrated and figures.routed(q, row)[1] == 0, "calibrated")
        inside.append(with_them[1:])
        without.append(figures.routed(q, row)[0][1:])
        all_shares.append(with_them[0])
    truth = np.mean(all_shares)
    hold = lambda x: np.mean([low <= truth <= high for low, high in x])
    return hold(inside), hold(without), truth


by_hand()
trainings()
truth, old, new, inside = simulate(int(sys.argv[1]) if len(sys.argv) > 1 else 250)
print(f"true {100 * truth:.2f} points; off by answers {100 * old:+.2f}, by tokens {100 * new:+.2f}; "
      f"intervals hold it in {100 * inside:.1f} %")
for measured, calibrated, k in ((300, 200, 1), (120, 240, 3)):
    inside_too, without, share = shares(250, measured, calibrated, k)
    print(f"share {100 * share:.2f} %; its interval holds it in {100 * inside_too:.1f} %, without "
          f"the calibration questions in {100 * without:.1f} %")
    check(0.93 <= inside_too <= 0.97 and without < inside_too - 0.03 and abs(share - TARGET) < 0.001, "shares")
check(old > 0.01 and abs(new) < 0.005 and 0.93 < inside < 0.98, "the simulation")
end()
