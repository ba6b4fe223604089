"""Runs the `whit` command itself where a whole process is the question: does it stay within its memory, is it done in seconds?

    python commands.py path/to/whit            everything, as JSON

Each command runs in an empty folder of its own with a `whit.toml`, `data/` and no ledger; it is timed from outside, and its
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

# What is asked: a name that report.py knows, the declaration, and the command's words. TODO: the options of `hitters`, `histogram` and
# `partition` are guesses until those commands stand.
PAGES = "SELECT page, COUNT(*) AS n, SUM(value) AS total FROM wide GROUP BY page"
SMALL = "SELECT key, COUNT(*) AS n FROM small_user GROUP BY key"
COMMANDS = {
    "wide": ("wide.toml", ["query", PAGES, "--memory", LIMIT, "--json"]),
    "small": ("race.toml", ["query", SMALL, "--json"]),
    "small-again": ("race.toml", ["query", SMALL, "--json"]),
    "hitters": ("tokens.toml", ["hitters", "words", "--item", "word", "--json"]),
    "histogram": ("tokens.toml", ["histogram", "tokens", "--item", "word", "--json"]),
    "partition": ("tokens.toml", ["partition", "data/vectors.parquet", "--clusters", "10000", "--output", "words.partition"]),
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
    rows, folders = {}, {}
    with tempfile.TemporaryDirectory() as root:
        for name, (declaration, words) in COMMANDS.items():
            # A question that is asked again finds the ledger, and in it what the files are: one folder for both.
            folder = folders.setdefault(name.removesuffix("-again"), Path(root) / name)
            if not folder.exists():
                folder.mkdir()
                (folder / "whit.toml").write_text((HERE / declaration).read_text())
                (folder / "data").symlink_to(HERE / "data")
            rows[name] = run(whit, folder, words)
            said = "".join(f"; {line}" for line in rows[name].get("talk", []))
            print(f"  whit {words[0]}: {rows[name]['seconds']:.1f} s, exit code {rows[name]['code']}{said}", file=sys.stderr)
    print(json.dumps({"rows": rows, "limit": LIMIT}))


if __name__ == "__main__":
    main()
