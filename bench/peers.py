"""Asks the peers that live in Python what whit was asked, and prints both side by side with what whit promises.

    python peers.py noise.json account.json [--json]

The two files are what `whit-bench noise --json` and `whit-bench account --json` wrote a moment ago on the same machine.
"""

import json
import logging
import platform
import statistics
import sys
import time
from importlib.metadata import version

import dp_accounting as dp
import opendp.prelude as odp
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution

from sheet import Report

DELTA, RATE, STEPS, NOISE = 1e-5, 0.01, 40_000, 4.0
RELATIONS = {
    "add-remove": dp.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace": dp.NeighboringRelation.REPLACE_ONE,
}


def timed(call, repeats=1):
    """What a call gives, and the median of the seconds that it takes."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        given = call()
        times.append(time.perf_counter() - start)
    return given, statistics.median(times)


def step(noise):
    return dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(noise))


def steps_epsilon(relation):
    """40,000 steps, with the package's own discretisation (1e-4)."""
    return PLDAccountant(relation).compose(step(NOISE), STEPS).get_epsilon(DELTA)


def steps_lower(relation):
    """A lower bound to the same; only a hundred times finer does it come within 1 % of the upper one."""
    step_loss = privacy_loss_distribution.from_gaussian_mechanism(
        NOISE,
        pessimistic_estimate=False,
        use_connect_dots=False,
        value_discretization_interval=1e-6,
        sampling_prob=RATE,
        neighboring_relation=relation,
    )
    return step_loss.self_compose(STEPS).get_epsilon_for_delta(DELTA)


def different():
    accountant = PLDAccountant(RELATIONS["add-remove"])
    for i in range(50):
        accountant.compose(step(1 + 0.02 * i), 100)
    return accountant.get_epsilon(DELTA)


def calibration():
    """To four digits, as whit does, from the package's own bracket."""
    return dp.calibrate_dp_mechanism(
        lambda: PLDAccountant(RELATIONS["replace"]),
        lambda noise: dp.SelfComposedDpEvent(step(noise), STEPS),
        3.0,
        DELTA,
        tol=1e-4,
    )


def filtered(charges):
    """Seconds for pure charges one after another. The measurements are made beforehand; each draws one number."""
    odp.enable_features("contrib", "honest-but-curious")
    space = odp.atom_domain(T=int), odp.absolute_distance(T=int)
    odometer = odp.c.make_fully_adaptive_composition(*space, odp.max_divergence())
    queryable = odp.c.make_privacy_filter(odometer, d_in=1, d_out=1e9)(0)
    laplace = [space >> odp.m.then_laplace(scale=10.0 + i / charges) for i in range(charges)]
    return timed(lambda: [queryable(measurement) for measurement in laplace])[1]


def milliseconds(seconds):
    return f"{seconds * 1e3:,.1f} ms"


def noise_rows(report, noise):
    def nanoseconds(sampler, threads, at):
        rows = (row for row in noise["times"] if (row["sampler"], row["threads"]) == (sampler, threads))
        return f"{next(rows)['nanoseconds'][at]:,.1f} ns"

    ours = {"rounded": "rounded Gaussian", "laplace": "discrete Laplace", "discrete": "discrete Gaussian"}
    inexact = "rand_distr, normal in f64 (inexact)"
    exact = {"rounded": "discrete Gaussian", "laplace": "discrete Laplace", "discrete": "discrete Gaussian"}
    faster = {"rounded": 150, "laplace": 60}
    for ratios in noise["ratios"]:
        sampler, against = ratios["id"].split("/")
        asked = sampler in faster  # the discrete Gaussian is told, but nothing is asked of it against these
        for at, (scale, ratio) in enumerate(zip(noise["scales"], ratios["times"])):
            whit, name = nanoseconds(ours[sampler], 1, at), f"{ours[sampler]}, scale {scale:,}"
            if against == "opendp":
                required, met = (f"≥ {faster[sampler]}", ratio >= faster[sampler]) if asked else ("", None)
                peer = nanoseconds(f"opendp, {exact[sampler]}", 1, at)
                report.add(f"{name}: speed over opendp", whit, peer, ratio, required, met)
            elif against == "rand_distr":
                required, met = ("≤ 4", ratio <= 4) if asked else ("", None)
                peer = nanoseconds(inexact, 1, at)
                report.add(f"{name}: time over rand_distr", whit, peer, ratio, required, met)
            else:
                whit = f"{whit} → {nanoseconds(ours[sampler], 2, at)}"
                report.add(f"{name}: speed of two threads over one", whit, "", ratio, "≥ 1.8", ratio >= 1.8)
    few, many = noise["memory"]
    used = f"{few['mebibytes']:.2f} → {many['mebibytes']:.2f} MiB"
    constant = many["mebibytes"] < few["mebibytes"] + 1
    question = f"memory beyond the output, {few['draws']:,} → {many['draws']:,} draws"
    report.add(question, used, "", None, "constant", constant)


def account_rows(report, account):
    row = {row["id"]: row for row in account["rows"]}

    def against(question, ours, seconds, limit, faster=None):
        ratio = seconds / ours
        report.add(question, milliseconds(ours), milliseconds(seconds), None, f"< {limit * 1e3:,.0f} ms", ours < limit)
        required, met = (f"≥ {faster}", ratio >= faster) if faster else ("", None)
        report.add("  speed over dp-accounting", "", "", ratio, required, met)

    for change, relation in RELATIONS.items():
        ours = row[change]
        upper, seconds = timed(lambda relation=relation: steps_epsilon(relation), 9)
        against(f"ε of {STEPS:,} steps, {change}", ours["seconds"], seconds, 0.1, 10)
        gap = (ours["upper"] - ours["lower"]) / ours["upper"]
        answer = f"{ours['lower']:.4f} … {ours['upper']:.4f}"
        report.add("  its answer; (upper − lower) / upper", answer, f"≤ {upper:.4f}", gap, "< 0.01", gap < 0.01)
        lower, more = timed(lambda relation=relation: steps_lower(relation))
        report.add("  with a lower bound too: peer's answer", answer, f"{lower:.4f} … {upper:.4f}")
        both, times = milliseconds(seconds + more), (seconds + more) / ours["seconds"]
        report.add("  with a lower bound too: speed over dp-accounting", milliseconds(ours["seconds"]), both, times)

    epsilon, seconds = timed(different)
    ours = row["different"]
    against("ε of 50 different steps, 100 of each", ours["seconds"], seconds, 0.5)
    report.add("  its answer", f"{ours['lower']:.4f} … {ours['upper']:.4f}", f"≤ {epsilon:.4f}")
    found, seconds = timed(calibration)
    ours = row["calibration"]
    against(f"noise for ε = 3, {STEPS:,} steps, replace", ours["seconds"], seconds, 1.0)
    report.add("  its answer", f"{ours['upper']:.4f}", f"{found:.4f}")

    half, whole = filtered(1_000), filtered(2_000)
    ours = row["pure-2000"]["seconds"]
    report.add("filter, 2,000 charges, pure: speed over opendp", milliseconds(ours), milliseconds(whole), whole / ours)
    growth = f"{milliseconds(half)} → {milliseconds(whole)}"
    report.add("  opendp: 2,000 over 1,000 charges (linear is 2)", "", growth, whole / half)
    kinds = {
        "pure": "pure",
        "gaussian": "Gaussian",
        "sampled-some": "subsampled, 64 kinds",
        "sampled": "subsampled, no two alike",
    }
    for kind, words in kinds.items():
        ten, twenty = row[f"{kind}-10000"]["seconds"], row[f"{kind}-20000"]["seconds"]
        report.add(f"filter, 10,000 charges, {words}", milliseconds(ten), "", None, "< 1,000 ms", ten < 1)
        growth = twenty / ten
        question = "  20,000 over 10,000 charges (linear is 2)"
        report.add(question, milliseconds(twenty), "", growth, "≤ 2.5", growth <= 2.5)
    for peak in account["memory"]:
        used = peak["mebibytes"]
        report.add(f"peak memory at {peak['question']}", f"{used:,.1f} MiB", "", None, "< 500 MiB", used < 500)


def main():
    logging.disable(logging.WARNING)
    paths = [word for word in sys.argv[1:] if word != "--json"]
    noise, account = (json.load(open(path, encoding="utf-8")) for path in paths)
    report = Report()
    noise_rows(report, noise)
    account_rows(report, account)
    if "--json" in sys.argv:
        return print(json.dumps({"rows": report.rows, "noise": noise, "account": account}, ensure_ascii=False))
    peers = ", ".join(f"{name} {version(name)}" for name in ("dp-accounting", "opendp"))
    print(f"{platform.machine()}, Python {platform.python_version()}, {peers}; fastest laps of noise and median answers of accounts, in this one run\n")
    report.write(sys.stdout)
    missed = sum(row["met"] is False for row in report.rows)
    print(f"\n{sum(row['met'] is True for row in report.rows)} requirements met, {missed} missed")


if __name__ == "__main__":
    main()
