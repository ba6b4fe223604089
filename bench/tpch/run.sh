#!/usr/bin/env bash
# Races whit against DuckDB on TPC-H at scale 1, customers protected, and on a click log at every unit, and times previews as whole processes. `--json` prints everything for
# programs. It is a report, not a test. LAPS (5) is how often each question is asked.
#
# Some 5 minutes beside the release build, and one more and 0.6 GB of disk the first time, for the tables.
set -euo pipefail
cd "$(dirname "$0")"

requirements="$PWD/requirements.txt"
venv="$PWD/.venv"
if ! cmp -s "$requirements" "$venv/installed.txt"; then
    echo "installing DuckDB and the generator of TPC-H into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >&2
    cp "$requirements" "$venv/installed.txt"
fi
root="$(cd ../.. && pwd)"
release="${CARGO_TARGET_DIR:-$root/target}/release"
echo "building whit in release" >&2
(cd "$root" && cargo build --release --quiet -p whit-cli -p whit-query --bins --example laps)
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" race.py "$release/examples/laps" "$release/whit" "$@"
