#!/usr/bin/env bash
# Files on S3-compatible storage, against a real server: moto's, in a virtual environment of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=target/storage-venv
if [ ! -x "$venv/bin/moto_server" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'moto[server]==5.2.5' boto3 deltalake==1.6.6 pyarrow==26.0.1
fi
cargo build --quiet -p whit-cli
exec "$venv/bin/python" xtask/storage/storage.py "$PWD/target/debug/whit"
