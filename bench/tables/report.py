"""Prints what the races over tables measured beside what is required of whit.

    python report.py <folder of results> [--json]

The folder holds peers.json (peers_tables.py), and, where whit could be built, race.json (the example `race` of whit-query) and
commands.json (commands.py). What was not measured is left out, and said.
"""

import json
import platform
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sheet import Report  # noqa: E402  (the same table as for noise and accounts)

FASTER = {"opendp": 20, "pipeline-dp": 100}
MINUTES, SECONDS = 600, 10  # what "in minutes" and "in seconds" are taken to mean, in seconds


def seconds(value):
    return f"{value * 1e3:,.0f} ms" if value < 1 else f"{value:,.2f} s"


def mebibytes(value):
    return f"{value:,.0f} MiB"


def race_rows(report, race):
    for row in race["rows"]:
        if row["name"].startswith("small"):
            continue  # told beside the peers
        peer = row[row["against"]]
        ratio = row[f"over_{row['against']}"]["fastest"]
        other = {"plain": "the plain query", "by_hand": "two levels by hand"}[row["against"]]
        question = f"{row['name']}: time over {other}"
        limit = row["limit"]
        report.add(question, seconds(row["whit"]["fastest"]), seconds(peer["fastest"]), ratio, f"≤ {limit}", ratio <= limit)
        if row["against"] == "by_hand":
            report.add("  over the plain query", "", seconds(row["plain"]["fastest"]), row["over_plain"]["fastest"])


def peer_rows(report, peers, race):
    ours = {row["name"]: row["whit"] for row in race["rows"]} if race else {}
    for row in peers["rows"]:
        peer, question = row["peer"], row["question"]
        whit = ours.get(f"small: {question}")
        name = f"1 million rows, {question} by 1,000 private keys: speed over {peer}"
        if peer not in FASTER:
            name = f"  without privacy: {peer}"
        ratio = row["seconds"] / whit["fastest"] if whit else None
        required = f"≥ {FASTER[peer]}" if peer in FASTER else ""
        met = ratio >= FASTER[peer] if whit and peer in FASTER else None
        report.add(name, seconds(whit["fastest"]) if whit else "", seconds(row["seconds"]), ratio, required, met)
        if peer in FASTER:
            report.add("  keys that were released", f"{whit['groups']:,}" if whit else "", f"{row['keys']:,}")


def command_rows(report, commands):
    rows = commands["rows"]

    def add(name, question, limit=None, memory=None):
        row = rows[name]
        if row["code"] != 0:
            return report.add(question, f"exit code {row['code']}", "", None, "finishes", False)
        required, met = (f"< {limit} s", row["seconds"] < limit) if limit else ("finishes", row["output_bytes"] > 0)
        report.add(question, seconds(row["seconds"]), "", None, required, met)
        required, met = (f"< {memory:,} MiB", row["mebibytes"] < memory) if memory else ("", None)
        report.add("  memory at its peak", mebibytes(row["mebibytes"]), "", None, required, met)

    made_of = json.loads((HERE / "data" / "wide.json").read_text())
    table = f"{made_of['rows'] // 10**6} million rows, {made_of['decoded_bytes'] / 2**30:.1f} GiB"
    add("wide", f"{table} with --memory {commands['limit']}: count and sum by page")
    add("hitters", "2,000 users × 4,000 tokens × 400,000 words: hitters", SECONDS, 2048)
    add("histogram", "2,000 users × 4,000 tokens × 400,000 words: histogram", SECONDS, 2048)
    add("partition", "400,000 words × 100 dimensions into 10,000 clusters", MINUTES)
    for name, words in {"small": "the whole command, first time", "small-again": "the whole command, asked again"}.items():
        if rows[name]["code"] == 0:
            report.add(f"1 million rows, count by key: {words}", seconds(rows[name]["seconds"]))


def main():
    folder = Path(next(word for word in sys.argv[1:] if word != "--json"))
    results = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    report = Report()
    race = results.get("race")
    if race:
        race_rows(report, race)
    peer_rows(report, results["peers"], race)
    if "commands" in results:
        command_rows(report, results["commands"])
    missing = [name for name in ("race", "commands") if name not in results]
    if "--json" in sys.argv:
        return print(json.dumps({"rows": report.rows, **results}, ensure_ascii=False))
    versions = ", ".join(f"{name} {version}" for name, version in results["peers"]["versions"].items())
    print(f"{platform.machine()}, Python {platform.python_version()}, {versions}; fastest laps, in this one run\n")
    report.write(sys.stdout)
    met = [row["met"] for row in report.rows]
    print(f"\n{met.count(True)} requirements met, {met.count(False)} missed")
    if missing:
        print(f"not measured: {', '.join(missing)}")


if __name__ == "__main__":
    main()
