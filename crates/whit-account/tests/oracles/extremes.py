"""Exact losses of extreme runs, integrated with 60 to 400 digits: `python extremes.py > extremes.json` (needs mpmath).

Nothing here is shared with the crate. Each entry has the ε at δ that some pair of neighbours attains, and no mechanism with
that cost loses more. Inputs are read as the f64 that they are written as.

- shown: users with so many other elements that the coin shows. T steps draw the user j ~ Binomial(T, q) times, and then
  the loss is that of Gaussian noise at distance √j·d/σ, so δ(ε) = Σ P(j)·δ_Gauss(ε; √j·d/σ).
- one: one step of (1−q)N(0) + qN(r) against (1−q)N(0) + qN(r−d), from the point where the densities balance.
- two: two such steps: δ₂(ε) = ∫ p(x)·δ₁(ε − loss(x)) dx.
- pieces: one step of N(j), j ~ Binomial(K, q), against N(0).
- plain: T steps of Gaussian noise at distance d on all units.
"""

import json
from multiprocessing import Pool
from mpmath import mp, mpf, ncdf, exp, log, sqrt, quad, binomial

mp.dps = 60


def gauss(e, mu):
    return ncdf(mu / 2 - e / mu) - exp(e) * ncdf(-mu / 2 - e / mu)


def solve(delta_at, delta, top=mpf(1)):
    """The least ε ≥ 0 with δ(ε) ≤ δ, by bisection."""
    if delta_at(mpf(0)) <= delta:
        return mpf(0)
    while delta_at(top) > delta:
        top *= 2
    low = mpf(0) if top == 1 else top / 2
    for _ in range(90):
        middle = (low + top) / 2
        if delta_at(middle) <= delta:
            top = middle
        else:
            low = middle
    return top


def shown(noise, rate, steps, d, delta):
    q, mu = mpf(rate), mpf(d) / mpf(noise)
    mean = steps * q
    first = max(0, int(mean - 60 * sqrt(mean + 1)))
    last = min(steps, int(mean + 60 * sqrt(mean + 1) + 60))
    weights = {}
    weight = binomial(steps, first) * q**first * (1 - q) ** (steps - first)
    for j in range(first, last + 1):
        weights[j] = weight
        weight = weight * (steps - j) / (j + 1) * q / (1 - q)
    weights = {j: w for j, w in weights.items() if j > 0 and w > mpf(delta) * mpf(10) ** -30}
    return solve(lambda e: sum(w * gauss(e, mu * sqrt(j)) for j, w in weights.items()), mpf(delta))


class Pair:
    """P = (1−q)N(0) + qN(r), Q = (1−q)N(0) + qN(b), one of them possibly swapped."""

    def __init__(self, q, r, b, swapped=False):
        self.q, self.r, self.b, self.swapped = mpf(q), mpf(r), mpf(b), swapped

    def density(self, x, mean):
        return (1 - self.q) * mp.npdf(x) + self.q * mp.npdf(x, mean)

    def p(self, x):
        return self.density(x, self.b if self.swapped else self.r)

    def loss(self, x):
        up = log(self.density(x, self.r) / self.density(x, self.b))
        return -up if self.swapped else up

    def above(self, x, mean):
        return (1 - self.q) * ncdf(-x) + self.q * ncdf(mean - x)

    def below(self, x, mean):
        return (1 - self.q) * ncdf(x) + self.q * ncdf(x - mean)

    def delta(self, e):
        # The loss of r against b rises with x where b ≤ 0; elsewhere only where it is positive, which is all that ε ≥ 0 asks.
        low, high = -60 - abs(self.b), self.r + 60
        if self.b > 0:
            assert e >= 0 and not self.swapped
            low = (self.r + self.b) / 2
        aim = -e if self.swapped else e
        up = lambda x: log(self.density(x, self.r) / self.density(x, self.b))
        if up(low) > aim:
            cut = low
        elif up(high) < aim:
            cut = high
        else:
            for _ in range(200):
                middle = (low + high) / 2
                if up(middle) > aim:
                    high = middle
                else:
                    low = middle
            cut = high
        if self.swapped:
            return max(mpf(0), self.below(cut, self.b) - exp(e) * self.below(cut, self.r))
        return max(mpf(0), self.above(cut, self.r) - exp(e) * self.above(cut, self.b))


def one(noise, rate, r, b, delta, sided):
    pair = Pair(rate, mpf(r) / mpf(noise), mpf(b) / mpf(noise))
    found = solve(pair.delta, mpf(delta))
    if sided:
        other = Pair(rate, mpf(r) / mpf(noise), mpf(b) / mpf(noise), True)
        found = max(found, solve(other.delta, mpf(delta)))
    return found


def two(noise, rate, r, b, delta, sided):
    def found(swapped):
        pair = Pair(rate, mpf(r) / mpf(noise), mpf(b) / mpf(noise), swapped)
        # The mass that is left of −14 or right of r + 14 is below 1e-43.
        ends = [pair.b - 14, pair.b, 0, pair.r, pair.r + 14]
        ends = sorted(set([min(ends)] + [x / 2 for x in range(int(2 * min(ends)) + 1, int(2 * max(ends)))] + [max(ends)]))
        delta_at = lambda e: quad(lambda x: pair.p(x) * pair.delta(e - pair.loss(x)), ends, maxdegree=4)
        low, top = mpf(0), mpf(1)
        while delta_at(top) > delta:
            low, top = top, 2 * top
        for _ in range(34):
            middle = (low + top) / 2
            if delta_at(middle) <= delta:
                top = middle
            else:
                low = middle
        return low
    return max(found(False), found(True)) if sided else found(False)


def pieces(noise, rate, holds, delta):
    q, s = mpf(rate), mpf(noise)
    weights, weight = [], (1 - q) ** holds
    for j in range(holds + 1):
        weights.append((j, weight))
        weight = weight * (holds - j) / (j + 1) * q / (1 - q)
        if j > holds * q + 60 and weight < mpf(10) ** -60:
            break
    ratio = lambda x: log(sum(w * exp(j / s * (x - j / s / 2)) for j, w in weights))

    def at(aim):
        low, high = mpf(-60), mpf(60) + len(weights) / s
        if ratio(low) > aim:
            return None
        for _ in range(120):
            middle = (low + high) / 2
            if ratio(middle) > aim:
                high = middle
            else:
                low = middle
        return high

    def away(e):
        x = at(e)
        return sum(w * ncdf(j / s - x) for j, w in weights) - exp(e) * ncdf(-x)

    def towards(e):
        x = at(-e)
        return mpf(0) if x is None else ncdf(x) - exp(e) * sum(w * ncdf(x - j / s) for j, w in weights)

    return max(solve(away, mpf(delta)), solve(towards, mpf(delta)))


def plain(noise, steps, d, delta):
    return solve(lambda e: gauss(e, mpf(d) / mpf(noise) * sqrt(mpf(steps))), mpf(delta))


asks = []


def ask(integrate, digits, delta, inputs, *arguments):
    asks.append((integrate, digits, delta, inputs, arguments))


def answer(asked):
    integrate, digits, delta, inputs, arguments = asked
    mp.dps = digits
    return {"epsilon": mp.nstr(integrate(*arguments), 17, strip_zeros=False), "delta": delta, **inputs}


def step(noise, rate, draw, change, holds=1, steps=1, difference=2.0):
    return dict(noise=noise, rate=rate, draw=draw, change=change, holds=holds, steps=steps, difference=difference)


near = [1 - 1e-6, 1 - 1e-10, 1 - 1e-13, 1 - 1e-16]
for noise, elements, rate, steps, delta in [
    (1.0, 10**3, 0.01, 1, 1e-5), (1.0, 10**7, 0.01, 100, 1e-5), (1.0, 10**9, 0.01, 100, 1e-5),
    (1.0, 10**18, 0.01, 100, 1e-5), (4.0, 10**7, 0.01, 1000, 1e-6), (4.0, 10**12, 0.5, 3, 1e-12),
    (1e9, 10**18, 0.3, 10, 1e-9), (1.0, 10**5, 1e-7, 10**7, 0.01), (2.0, 10**15, 1e-9, 10**6, 1e-5),
    (1.0, 10**18, near[3], 5, 1e-6), (3.0, 10**9, near[1], 40, 1e-8), (5.0, 10**6, 0.05, 200, 1e-100),
    (0.5, 10**8, 0.001, 50, 1e-4), (30.0, 10**18, near[2], 1000, 1e-10), (1.0, 2**53 + 1, 0.2, 7, 1e-3),
]:
    digits = 60 if delta > 1e-50 else 250
    ask(shown, digits, delta, step(noise, rate, elements, "replace", steps=steps), noise, rate, steps, 2.0, delta)
for noise, rate, delta in [(1.0, q, d) for q in near for d in (1e-5, 1e-20)] + [
    (1e-3, 0.5, 1e-5), (1e3, near[3], 1e-9), (0.05, near[3], 1e-300), (0.05, 0.01, 1e-5), (1e6, 0.5, 1e-9), (1.0, 1e-12, 1e-14), (0.3, 1e-9, 1e-12),
]:
    digits = 60 if delta > 1e-50 else 400
    ask(one, digits, delta, step(noise, rate, None, "add-remove"), noise, rate, 1.0, 0.0, delta, True)
    ask(one, digits, delta, step(noise, rate, None, "replace"), noise, rate, 1.0, -1.0, delta, False)
for noise, elements, rate, delta in [
    (1.0, 30, near[3], 1e-5), (4.0, 30, near[1], 1e-9), (1.0, 79, 0.01, 1e-5), (1.0, 83, 0.01, 1e-5),
    (1.0, 200, 1e-6, 1e-9), (7.0, 500, near[2], 1e-3), (1e5, 10**7, 0.5, 1e-12),
]:
    inputs = step(noise, rate, elements, "replace")
    ask(one, 60, delta, inputs, noise, rate, elements, elements - 2, delta, False)
for noise, elements in [(1.0, 20), (1.0, 60), (3.0, 10**3)]:
    inputs = step(noise, 0.01, elements, "replace", holds=elements)
    ask(one, 60, 1e-5, inputs, noise, 0.01, elements, -elements, 1e-5, False)
for noise, rate in [(1.0, near[0]), (1.0, near[1]), (2.0, near[3]), (0.7, 0.999)]:
    ask(two, 30, 1e-6, step(noise, rate, None, "add-remove", steps=2), noise, rate, 1.0, 0.0, 1e-6, True)
    ask(two, 30, 1e-6, step(noise, rate, None, "replace", steps=2), noise, rate, 1.0, -1.0, 1e-6, False)
for noise, holds, rate, delta in [(4.0, 10**3, 0.01, 1e-5), (10.0, 10**5, 2e-4, 1e-6), (1.0, 5, near[1], 1e-6), (300.0, 10**4, 0.02, 1e-5)]:
    ask(pieces, 60, delta, step(noise, rate, None, "add-remove", holds=holds), noise, rate, holds, delta)
for noise, steps, change, delta in [
    (1e-6, 1, "replace", 1e-5), (1e-6, 10**18, "replace", 1e-300), (1e9, 10**18, "add-remove", 1e-12),
    (1e9, 1, "replace", 1e-9), (3e4, 10**18, "replace", 1e-5), (1e-3, 10**12, "add-remove", 0.3),
]:
    d = 2.0 if change == "replace" else 1.0
    ask(plain, 400, delta, step(noise, 1.0, None, change, steps=steps), noise, steps, d, delta)

if __name__ == "__main__":
    with Pool() as pool:
        entries = pool.map(answer, asks, chunksize=1)
    print("{\"entries\": [\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]}")
