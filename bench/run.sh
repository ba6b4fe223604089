#!/usr/bin/env bash
# Races whit against its peers on this machine, in one run, and prints the ratios beside what is required of them.
# `tables` as the first word races queries over tables instead of noise and accounts, `tpch` those of TPC-H against DuckDB, `learn` a step of learning; `--json` prints everything for programs.
# It is a report, not a test: it fails only when something broke.
set -euo pipefail
cd "$(dirname "$0")"

if [ "${1:-}" = tables ]; then
    exec tables/run.sh "${@:2}"
fi
if [ "${1:-}" = tpch ]; then
    exec tpch/run.sh "${@:2}"
fi
if [ "${1:-}" = learn ]; then
    exec learn/run.sh "${@:2}"
fi

source ./venv.sh
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
