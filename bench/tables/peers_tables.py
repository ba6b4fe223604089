"""Asks the peers what whit is asked of tables: a count and a sum by 1,000 private keys, with users protected.

    python peers_tables.py                         everything, as JSON
    python peers_tables.py opendp count            one peer and one question, in this process

Each runs in a process of its own, so that none finds another's memory or threads, up to three times in a row, and fewer
once that has taken a minute. The fastest lap counts, since what else runs on the machine can only add time.
"""

import json
import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

SMALL = Path(__file__).parent / "data" / "visits-1m.parquet"
# The same for everybody, and in whit.toml.
EPSILON, DELTA = 1.0, 1e-6
GROUPS, ROWS_PER_GROUP = 10, 5
LOW, HIGH = 0, 100


def opendp(question):
    """OpenDP with Polars: user level, unknown keys, calibrated to (ε, δ) by its context.

    Its `keep="sample"` for groups fails ("multiple fields with name 'key' found", 0.16.0 on the Polars that it asks for), so each user
    keeps the first groups by key; and it keeps one less than asked, since it takes the ranks below 10 and ranks start at 1.
    Both leave it less work, and fewer keys to release. A sum of private keys needs a count beside it.
    """
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")

    def ask():
        context = dp.Context.compositor(
            data=pl.scan_parquet(SMALL).select("user_id", "key", "value"),
            privacy_unit=dp.unit_of(contributions=1, identifier="user_id"),
            privacy_loss=dp.loss_of(epsilon=EPSILON, delta=DELTA),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=["key"], max_length=1_000_000)],
        )
        statistics = [dp.len(signed=True)]
        if question == "sum":
            statistics.append(pl.col("value").dp.sum((LOW, HIGH)))
        query = context.query().truncate_per_group(ROWS_PER_GROUP, by=["key"])
        query = query.truncate_num_groups(GROUPS, by=["key"], keep="first")
        return len(query.group_by("key").agg(*statistics).release().collect())

    return ask


def pipeline_dp(question):
    """PipelineDP's local backend. The rows are Python's own before the clock starts, which is to the peer's advantage."""
    import pipeline_dp
    import polars as pl

    rows = pl.read_parquet(SMALL, columns=["user_id", "key", "value"]).rows()
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )

    def ask():
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        clamp = {"min_value": LOW, "max_value": HIGH} if question == "sum" else {}
        parameters = pipeline_dp.AggregateParams(
            metrics=[pipeline_dp.Metrics.SUM if question == "sum" else pipeline_dp.Metrics.COUNT],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=GROUPS,
            max_contributions_per_partition=ROWS_PER_GROUP,
            **clamp,
        )
        released = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend()).aggregate(rows, parameters, extractors)
        accountant.compute_budgets()
        return len(list(released))

    return ask


def polars(question):
    """The plain query: no privacy, no bounds."""
    import polars as pl

    statistic = pl.col("value").clip(LOW, HIGH).sum() if question == "sum" else pl.len()
    return lambda: len(pl.scan_parquet(SMALL).group_by("key").agg(statistic).collect())


def duckdb(question):
    """The plain query: no privacy, no bounds."""
    import duckdb

    statistic = f"sum(least(greatest(value, {LOW}), {HIGH}))" if question == "sum" else "count(*)"
    return lambda: len(duckdb.sql(f"SELECT key, {statistic} FROM '{SMALL}' GROUP BY key").fetchall())


def duckdb_two_level(question):
    """Each user's share of each key bounded, then summed by key: no privacy yet, and users in as many keys as they like."""
    import duckdb

    value, most = (f"sum(least(greatest(value, {LOW}), {HIGH}))", HIGH * ROWS_PER_GROUP)
    if question == "count":
        value, most = "count(*)", ROWS_PER_GROUP
    inner = f"SELECT user_id, key, {value} AS share FROM '{SMALL}' GROUP BY user_id, key"
    return lambda: len(duckdb.sql(f"SELECT key, sum(least(share, {most})) FROM ({inner}) GROUP BY key").fetchall())


PEERS = {
    "opendp": opendp,
    "pipeline-dp": pipeline_dp,
    "polars": polars,
    "duckdb": duckdb,
    "duckdb-two-level": duckdb_two_level,
}
PACKAGES = ["opendp", "polars", "pipeline-dp", "python-dp", "duckdb"]


def laps(ask):
    """Seconds of each lap, and how many keys the last one released."""
    times = []
    while len(times) < 3 and sum(times) < 60:
        start = time.perf_counter()
        keys = ask()
        times.append(time.perf_counter() - start)
    return times, keys


def child(peer, question):
    """What a process of its own says of a peer, and the memory that it took at its peak."""
    script = subprocess.Popen([sys.executable, __file__, peer, question], stdout=subprocess.PIPE)
    answer = script.stdout.read()
    _, status, used = os.wait4(script.pid, 0)
    if status:
        raise SystemExit(f"{peer} could not answer `{question}`: see above")
    return json.loads(answer) | {"mebibytes": used.ru_maxrss / 1024}


def main():
    if len(sys.argv) == 3:
        peer, question = sys.argv[1:]
        times, keys = laps(PEERS[peer](question))
        return print(json.dumps({"peer": peer, "question": question, "seconds": min(times), "laps": times, "keys": keys}))
    rows = []
    for question in ("count", "sum"):
        for peer in PEERS:
            rows.append(child(peer, question))
            print(f"  {peer}, {question}: {rows[-1]['seconds']:.3f} s", file=sys.stderr)
    print(json.dumps({"rows": rows, "versions": {name: version(name) for name in PACKAGES}}))


if __name__ == "__main__":
    main()
