"""Races whit against DuckDB on TPC-H at scale 1 and on a click log, with the same threads, in one run and lap by lap in turns, and prints the ratios beside what is required of them.

    python race.py path/to/laps path/to/whit [--json]      `laps` is the example of whit-query, `whit` the command

It is a report, not a test. LAPS (5) is how often each question is asked after a first time that does not count; the fastest counts, since what else runs on the machine can only
add time (medians are in the JSON). QUESTIONS names some of TPC-H's by their numbers, where not all are wanted.
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
SUITE = HERE.parent.parent / "crates/whit-query/tests/tables/suites"
sys.path.insert(0, str(HERE.parent))

from sheet import Report  # noqa: E402  (the same table as for the other races)

THREADS, LAPS = 2, int(os.environ.get("LAPS", "5"))
TIMES, BESIDES = 1.5, 0.05  # at most so many times the two levels by hand, and so many seconds besides
ROWS, USERS, PAGES = 3_300_000, 30_000, 500


def statements(path):
    """The statements of a file by their numbers, with their titles."""
    found = {}
    for part in re.split(r"(?m)^-- (?=\d+: )", path.read_text())[1:]:
        title, sql = part.split("\n", 1)
        number, words = title.split(": ", 1)
        found[number] = (words, " ".join(sql.strip().rstrip(";").split()))
    return found


def make():
    """The tables, where they are missing: always the same ones."""
    if not (DATA / "lineitem.parquet").exists():
        tool = Path(sys.executable).parent / "tpchgen-cli"
        subprocess.run([tool, "parquet", "-s", "1", "--output-dir", DATA, "-q"], check=True)
    if (DATA / "clicks.parquet").exists():
        return
    dice = np.random.default_rng(20_260_401)
    # Some have ten times as many as others.
    users = dice.choice(USERS, ROWS, p=(often := dice.lognormal(0, 1, USERS)) / often.sum())
    page = dice.choice(PAGES, ROWS, p=(often := dice.lognormal(0, 1, PAGES)) / often.sum())
    texts = lambda words: pa.DictionaryArray.from_arrays(pa.array(words[1], pa.int32()), words[0]).cast(pa.string())
    pq.write_table(
        pa.table({
            "user_id": pa.array(users, pa.int64()),
            "at": pa.array(1_700_000_000_000 + np.sort(dice.integers(0, 90 * 86_400_000, ROWS)), pa.timestamp("ms")),
            "page": texts(([f"/section/{i % 17}/page-{i}" for i in range(PAGES)], page)),
            "country": texts((["CH", "DE", "FR", "IT", "JP", "US"], dice.integers(0, 6, ROWS))),
            "seconds": pa.array(np.round(dice.exponential(30, ROWS), 1), pa.float64()),
        }),
        DATA / "clicks.parquet",
        row_group_size=500_000,
    )


def declaration():
    """The suite's, over Parquet files."""
    text = (SUITE / "orders.toml").read_text().replace(".csv", ".parquet")
    # The types of Parquet files are theirs; bounds and keys are declared.
    text = re.sub(r'(?m)^columns\.\w+ = "\w+"\n', "", text)
    return re.sub(r'type = "\w+", ', "", text) + (HERE / "clicks.toml").read_text()


class Whit:
    """whit's library in a process of its own, which answers one line for each."""

    def __init__(self, program, folder):
        words = [program, folder, str(THREADS)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, sql):
        print(sql, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def timed(database, sql):
    start = time.perf_counter()
    database.execute(sql).fetchall()
    return time.perf_counter() - start


def seconds(value):
    return f"{value * 1e3:,.0f} ms" if value < 1 else f"{value:,.2f} s"


def best(laps):
    return {"fastest": min(laps), "median": statistics.median(laps), "laps": laps}


def tpch(report, whit, database):
    rows, asked, by_hand = {}, statements(SUITE / "orders.sql"), statements(HERE / "by_hand.sql")
    wanted = os.environ.get("QUESTIONS", " ".join(by_hand)).split()
    for number in wanted:
        words, sql = asked[number]
        laps = {"whit": [], "plain": [], "by_hand": []}
        for lap in range(LAPS + 1):
            said = whit.ask(sql)
            if "refused" in said:
                break
            plain, hand = timed(database, sql), timed(database, by_hand[number][1])
            if lap:
                for name, value in (("whit", said["seconds"]), ("plain", plain), ("by_hand", hand)):
                    laps[name].append(value)
        if "refused" in said:
            report.add(f"TPC-H {number}, {words}", "refused", "", None, "an answer", False)
            rows[number] = said
            continue
        rows[number] = {name: best(times) for name, times in laps.items()}
        ours, hand, plain = (rows[number][name]["fastest"] for name in ("whit", "by_hand", "plain"))
        limit = TIMES * hand + BESIDES
        report.add(f"TPC-H {number}, {words}: time over two levels by hand", seconds(ours), seconds(hand), ours / hand,
                   f"≤ {limit * 1e3:,.0f} ms", ours <= limit)
        report.add("  over plain SQL", "", seconds(plain), ours / plain)
        print(f"  TPC-H {number}: {seconds(ours)} of {seconds(limit)}", file=sys.stderr)
    return rows


CLICKS = "SELECT country, COUNT(*) AS n, SUM(seconds) AS s FROM {table} GROUP BY country"


def clicks(report, program, database, folder):
    """One question at each unit, each in a process of its own, so that its peak of memory is its own."""
    units = {"user": "clicks_user", "element": "clicks_element", "event, with caps": "clicks_event", "event": "clicks_plain"}
    open_ones = {name: Whit(program, folder / name) for name in units}
    laps, peaks = {name: [] for name in (*units, "plain")}, {}
    for lap in range(LAPS + 1):
        times = {"plain": timed(database, CLICKS.format(table="clicks"))}
        for name, table in units.items():
            said = open_ones[name].ask(CLICKS.format(table=table))
            if "refused" in said:
                raise SystemExit(f"{name}: {said['refused']}")
            times[name], peaks[name] = said["seconds"], said["peak_kib"] / 1024
        if lap:
            for name, value in times.items():
                laps[name].append(value)
    for process in open_ones.values():
        process.end()
    rows = {name: best(times) | {"peak_mib": peaks.get(name)} for name, times in laps.items()}
    user = rows["user"]["fastest"]
    for name in units:
        own = rows[name]["fastest"]
        limit = 1.2 if name == "event, with caps" else None
        report.add(f"{ROWS / 1e6:.1f} million clicks, {name}: time over user level", seconds(own), seconds(user), own / user,
                   f"≤ {limit}" if limit else "", own <= limit * user if limit else None)
        report.add("  memory at its peak", f"{peaks[name]:,.0f} MiB")
    report.add("  without privacy: DuckDB", "", seconds(rows["plain"]["fastest"]))
    return rows


def previews(report, program, folder):
    """Whole processes: from the command to its end."""
    asked, rows = statements(SUITE / "orders.sql"), {}
    cases = {f"TPC-H {number}, Parquet": asked[number][1] for number in ("1", "6", "12")}
    cases |= {"clicks, Parquet": CLICKS.format(table="clicks_user"), "clicks, CSV": CLICKS.format(table="clicks_csv")}
    for name, sql in cases.items():
        laps = []
        for lap in range(LAPS + 1):
            start = time.perf_counter()
            words = [program, "preview", sql, "--epsilon", "1", "--delta", "1e-6"]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"preview of {name}: {done.stderr}")
            if lap:
                laps.append(time.perf_counter() - start)
        rows[name] = best(laps)
        report.add(f"preview as a process: {name}", seconds(min(laps)), "", None, "≤ 50 ms", min(laps) <= 0.05)
    return rows


def main():
    laps, program = (Path(word).resolve() for word in sys.argv[1:3])
    make()
    database = duckdb.connect(config={"threads": THREADS})
    for table in DATA.glob("*.parquet"):
        database.execute(f"CREATE VIEW {table.stem} AS SELECT * FROM '{table}'")
    csv = DATA / "clicks.csv"
    if not csv.exists():
        database.execute(f"COPY (SELECT * FROM clicks) TO '{csv}' (HEADER)")
    report, results = Report(), {}
    with tempfile.TemporaryDirectory() as room:
        room = Path(room)
        for name in ("tpch", "user", "element", "event, with caps", "event"):
            (room / name).mkdir()
            (room / name / "whit.toml").write_text(declaration())
            for table in DATA.iterdir():
                (room / name / table.name).symlink_to(table)
        whit = Whit(laps, room / "tpch")
        results["tpch"] = tpch(report, whit, database)
        whit.end()
        results["clicks"] = clicks(report, laps, database, room)
        results["previews"] = previews(report, program, room / "tpch")
    if "--json" in sys.argv:
        return print(json.dumps({"rows": report.rows, **results}, ensure_ascii=False))
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, DuckDB {duckdb.__version__}, {THREADS} threads, load {load:.1f}; fastest of {LAPS} laps, in this one run\n")
    report.write(sys.stdout)
    met = [row["met"] for row in report.rows]
    print(f"\n{met.count(True)} requirements met, {met.count(False)} missed")


if __name__ == "__main__":
    main()
