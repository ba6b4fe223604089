#!/usr/bin/env bash
# Races a private step of whit against its own plain step and against Opacus, in one run, and prints the ratios beside what is required of them;
# then takes the first steps of a large job.
# `--json` prints everything for programs. It is a report, not a test.
#
# About five minutes beside the release build; the first time PyTorch and Opacus are installed into .venv (several GB).
# LAPS (60) is how many steps of each are timed, one right after the other, in each of ROUNDS (3) rounds, for whit and its peers alike; STEPS (500) how many
# of the large job, whose rows need 5.1 GiB in TMPDIR (/var/tmp).
set -euo pipefail
cd "$(dirname "$0")"

venv="$PWD/.venv"
if ! cmp -s requirements.txt "$venv/installed.txt"; then
    echo "installing the peers into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt >&2
    cp requirements.txt "$venv/installed.txt"
fi

root="$(cd ../.. && pwd)"
release="${CARGO_TARGET_DIR:-$root/target}/release"
echo "building whit in release" >&2
(cd "$root" && cargo build --release --quiet -p whit-learn --example step --example softmax)
results="$(mktemp -d)"
trap 'rm -r "$results"' EXIT
laps="${LAPS:-60}" rounds="${ROUNDS:-3}"
echo "whit: a minute" >&2
"$release/examples/step" "$laps" "$rounds" >"$results/whit.json"
echo "a large job: a minute" >&2
TMPDIR="${TMPDIR:-/var/tmp}" "$release/examples/softmax" "${STEPS:-500}" >"$results/softmax.json"
echo "peers: two minutes" >&2
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" peers_learn.py "$laps" "$rounds" >"$results/peers.json"
python3 report.py "$results" "$@"
