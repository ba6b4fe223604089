"""Runs the `whit` command itself where a whole process is the question: does it stay within its memory, is it done in seconds?

    python commands.py path/to/whit            everything, as JSON

Each command runs in a folder with a `whit.toml` and `data/`, at first without a ledger; it is timed from outside, and its
peak of resident memory is what the system says once it has ended.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = "1GiB"

# What is asked: a name that report.py knows, the declaration, and the command's words.
PAGES = "SELECT page, COUNT(*) AS n, SUM(value) AS total FROM wide GROUP BY page"
SMALL = "SELECT key, COUNT(*) AS n FROM small_user GROUP BY key"
# Those of one folder come one after the other: a question that is asked again finds the ledger, and the others the partition.
COMMANDS = {
    "wide": ("wide", ["query", PAGES, "--memory", LIMIT, "--json"]),
    "small": ("race", ["query", SMALL, "--json"]),
    "small-again": ("race", ["query", SMALL, "--json"]),
    "partition": ("tokens", ["partition", "kmeans", "data/vectors.parquet", "--vector", "vector", "--clusters", "10000",
                             "--output", "words.partition"]),
    "hitters": ("tokens", ["hitters", "words", "--item", "word", "--items", "words.partition", "--json"]),
    "histogram": ("tokens", ["histogram", "tokens", "--item", "word", "--partition", "words.partition", "--json"]),
}


def run(whit, folder, words):
    """Seconds, peak memory and exit code of one command; the first line of its talk where it failed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as talk:
        start = time.perf_counter()
        process = subprocess.Popen([whit, *words], cwd=folder, stdout=out, stderr=talk)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        code = process.returncode = os.waitstatus_to_exitcode(status)
        out_size = os.fstat(out.fileno()).st_size
        talk.seek(0)
        lines = talk.read().decode(errors="replace").strip().splitlines()
    row = {"seconds": seconds, "mebibytes": used.ru_maxrss / 1024, "code": code, "output_bytes": out_size}
    return row if code == 0 else row | {"talk": lines[:1]}


def main():
    whit = Path(sys.argv[1]).resolve()
    rows = {}
    with tempfile.TemporaryDirectory() as root:
        for name, (place, words) in COMMANDS.items():
            folder = Path(root) / place
            if not folder.exists():
                folder.mkdir()
                (folder / "whit.toml").write_text((HERE / f"{place}.toml").read_text())
                (folder / "data").symlink_to(HERE / "data")
            rows[name] = run(whit, folder, words)
            said = "".join(f"; {line}" for line in rows[name].get("talk", []))
            print(f"  whit {words[0]}: {rows[name]['seconds']:.1f} s, exit code {rows[name]['code']}{said}", file=sys.stderr)
    print(json.dumps({"rows": rows, "limit": LIMIT}))


if __name__ == "__main__":
    main()
