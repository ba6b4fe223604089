"""Exact losses of extreme runs, integrated with 60 to 400 digits: `python extremes.py > extremes.json` (needs mpmath).

Nothing here is shared with the crate. Each entry has the ε at δ that some pair of neighbours attains, and no mechanism with
that cost loses more. Inputs are read as the f64 that they are written as.

- shown: users with so many other elements that the coin shows. T steps draw the user j ~ Binomial(T, q) times, and then
  the loss is that of Gaussian noise at distance √j·d/σ, so δ(ε) = Σ P(j)·δ_Gauss(ε; √j·d/σ).
- one: one step of (1−q)N(0) + qN(r) against (1−q)N(0) + qN(r−d), from the point where the densities balance.
- nearly: T steps at a rate near 1, between two numbers: `epsilon` is attained, and no more than `most` can be lost.
- pieces: one step of N(j), j ~ Binomial(K, q), against N(0).
- plain: T steps of Gaussian noise at distance d on all units.
"""

import json
from multiprocessing import Pool
from mpmath import mp, mpf, ncdf, exp, log, sqrt, binomial

mp.dps = 60


def gauss(e, mu):
    return ncdf(mu / 2 - e / mu) - exp(e) * ncdf(-mu / 2 - e / mu)


def crossing(rising, low, high):
    """Where a rising function is 0 between two ends: regula falsi with the Illinois rule, then bisection."""
    a, b = rising(low), rising(high)
    for turn in range(400):
        middle = (low + high) / 2 if turn % 4 == 3 else (low * b - high * a) / (b - a)
        if high - low <= mpf(10) ** -28 * (mpf(10) ** -15 + abs(middle)):
            break
        c = rising(middle)
        if c > 0:
            high, b = middle, c
            a = a / 2 if turn % 4 != 3 else rising(low)
        else:
            low, a = middle, c
            b = b / 2 if turn % 4 != 3 else rising(high)
    return (low + high) / 2


def solve(delta_at, delta, top=mpf(1)):
    """The least ε ≥ 0 with δ(ε) ≤ δ."""
    if delta_at(mpf(0)) <= delta:
        return mpf(0)
    low = mpf(0)
    while delta_at(top) > delta:
        low, top = top, 2 * top
    excess = lambda e: log(delta / max(delta_at(e), mpf(10) ** (-3 * mp.dps)))
    return crossing(excess, low, top)


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
            cut = crossing(lambda x: up(x) - aim, low, high)
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


def nearly(noise, rate, steps, d, delta, change):
    """A bracket: a rate near 1 moves each law of T steps by at most T·(1−q) from those where all are drawn, which dominate."""
    mu = mpf(d) / mpf(noise) * sqrt(mpf(steps))
    most = solve(lambda e: gauss(e, mu), mpf(delta))
    moved = steps * (1 - mpf(rate)) * (1 + exp(most) if change == "replace" else 1)
    return solve(lambda e: gauss(e, mu), mpf(delta) + moved), most


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
        return crossing(lambda x: ratio(x) - aim, low, high)

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
    found = integrate(*arguments)
    low, high = found if isinstance(found, tuple) else (found, found)
    text = lambda number: mp.nstr(number, 17, strip_zeros=False)
    return {"epsilon": text(low), "most": text(high), "delta": delta, **inputs}


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
for noise, rate, steps, change, delta in [
    (1.0, near[3], 2, "add-remove", 1e-6), (1.0, near[3], 2, "replace", 1e-6), (2.0, near[3], 30, "replace", 1e-5),
    (10.0, near[3], 1000, "add-remove", 1e-8), (40.0, near[3], 1000, "replace", 1e-6), (1.0, near[2], 4, "add-remove", 1e-5),
    (20.0, near[2], 100, "replace", 1e-3), (100.0, near[1], 10, "replace", 1e-4), (3.0, near[1], 5, "add-remove", 0.01),
]:
    d = 2.0 if change == "replace" else 1.0
    ask(nearly, 60, delta, step(noise, rate, None, change, steps=steps), noise, rate, steps, d, delta, change)
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
        for i, entry in enumerate(pool.imap(answer, asks)):
            print("{\"entries\": [" if i == 0 else ",", json.dumps(entry), flush=True)
    print("]}")
