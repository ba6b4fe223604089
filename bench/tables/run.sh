#!/usr/bin/env bash
# Races whit's queries over tables against the engine they stand on and against its peers, in one run, and prints the ratios
# beside what is required of them. `--json` prints everything for programs. It is a report, not a test.
#
# Some 10 minutes beside the release build, and two more and 1.2 GB of disk the first time, for the tables.
# LAPS (5) is how often each question is raced.
set -euo pipefail
cd "$(dirname "$0")"

source ../venv.sh
export PYTHONDONTWRITEBYTECODE=1
python="$venv/bin/python"
"$python" make.py

results="$(mktemp -d)"
trap 'rm -r "$results"' EXIT

root="$(cd ../.. && pwd)"
release="${CARGO_TARGET_DIR:-$root/target}/release"
if [ -f "$root/crates/whit-query/examples/race.rs" ]; then
    echo "building whit in release" >&2
    (cd "$root" && cargo build --release --quiet -p whit-cli -p whit-query --bins --example race)
    echo "race against the plain engine: about five minutes" >&2
    mkdir "$results/race"
    cp race.toml "$results/race/whit.toml"
    ln -s "$PWD/data" "$results/race/data"
    "$release/examples/race" "$results/race" "${LAPS:-5}" >"$results/race.json"
fi
echo "peers: about two minutes" >&2
"$python" peers_tables.py >"$results/peers.json"
if [ -x "$release/whit" ] && "$release/whit" query --help >/dev/null 2>&1; then
    echo "whole commands: a few minutes" >&2
    "$python" commands.py "$release/whit" >"$results/commands.json"
fi
"$python" report.py "$results" "$@"
