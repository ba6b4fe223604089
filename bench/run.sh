#!/usr/bin/env bash
# Races whit against its peers on this machine, in one run, and prints the ratios beside what is required of them.
# `--json` prints everything for programs. It is a report, not a test: it fails only when something broke.
set -euo pipefail
cd "$(dirname "$0")"

venv=.venv
if ! cmp -s requirements.txt "$venv/installed.txt"; then
    echo "installing the peers into bench/$venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt >&2
    cp requirements.txt "$venv/installed.txt"
fi
cargo build --release --quiet
bench="${CARGO_TARGET_DIR:-target}/release/whit-bench"

results="$(mktemp -d)"
trap 'rm -r "$results"' EXIT
echo "noise: about a minute" >&2
"$bench" noise --json >"$results/noise.json"
echo "accounts: about a minute" >&2
"$bench" account --json >"$results/account.json"
echo "peers: about a minute" >&2
"$venv/bin/python" peers.py "$results/noise.json" "$results/account.json" "$@"
