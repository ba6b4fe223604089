"""Makes the Delta tables of this folder, and writes down what the package itself reads from them.

    pip install deltalake==1.6.6 pyarrow==26.0.1
    python make.py

Each table is small. `expected.json` has, for every table and version that is asked for, how many rows there are, the sum of `x`, and rows by `land`, so that
another reader can be compared with the package that wrote them.
"""

import datetime
import json
import pathlib
import shutil

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.table import TableFeatures

here = pathlib.Path(__file__).parent
plain = WriterProperties(compression="SNAPPY")
expected = {}


def rows(first, many, land=None):
    """Rows of users `first` and following."""
    lands = ["at", "de", None]
    users = range(first, first + many)
    return pa.table({
        "user_id": pa.array(users, pa.int64()),
        "x": pa.array([10 * user for user in users], pa.int32()),
        "land": pa.array([land or lands[user % 3] for user in users], pa.string()),
        "at": pa.array([datetime.datetime(2024, 1, 1 + user % 28, 12) for user in users], pa.timestamp("us", tz="UTC")),
    })


def place(name):
    folder = here / name
    shutil.rmtree(folder, ignore_errors=True)
    return str(folder)


def note(name, version=None):
    table = DeltaTable(str(here / name), version=version).to_pyarrow_table()
    lands = {}
    for land in table["land"].to_pylist():
        lands[land or ""] = lands.get(land or "", 0) + 1
    read = {"rows": table.num_rows, "x": sum(x or 0 for x in table["x"].to_pylist()), "lands": dict(sorted(lands.items()))}
    expected.setdefault(name, {})["newest" if version is None else str(version)] = read


def write(path, table, **more):
    write_deltalake(path, table, writer_properties=plain, **more)


# Two appends, of which the second brings a column that the first has not, and a delete that rewrites a file.
path = place("appended")
write(path, rows(1, 4))
write(path, rows(5, 3).append_column("more", pa.array([1.5, 2.5, None])), mode="append", schema_mode="merge")
DeltaTable(path).delete("user_id = 2", writer_properties=plain)
for version in [None, 0, 1]:
    note("appended", version)

# An overwrite: the first files are still in the folder.
path = place("overwritten")
write(path, rows(1, 5))
write(path, rows(20, 2), mode="overwrite")
for version in [None, 0]:
    note("overwritten", version)

# Partitions by a text with signs that no folder may have, and by a day; one of them is missing.
path = place("partitioned")
days = pa.array([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), None], pa.date32())
table = rows(1, 3).set_column(2, "land", pa.array(["at/de 50%", "a=b:c", None])).append_column("day", days)
write(path, table, partition_by=["land", "day"])
table = rows(4, 3, "at/de 50%").append_column("day", days)
write(path, table, mode="append")
note("partitioned")

# More than ten commits, a checkpoint at the eighth, and a delete behind it; commits before the checkpoint are gone, as a clean-up leaves it.
path = place("checkpointed")
for number in range(14):
    write(path, rows(10 * number, 2), mode="append" if number else "error")
    if number == 8:
        DeltaTable(path).create_checkpoint()
DeltaTable(path).delete("user_id = 11", writer_properties=plain)
for version in [None, 8, 10]:
    note("checkpointed", version)
for number in range(8):
    (here / "checkpointed" / "_delta_log" / f"{number:020}.json").unlink()

# Nothing is left of it.
path = place("emptied")
write(path, rows(1, 2))
DeltaTable(path).delete()
note("emptied")

# Its protocol allows deletion vectors.
path = place("vectors")
write(path, rows(1, 2))
DeltaTable(path).alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)

for log in here.glob("*/_delta_log/*.crc"):
    log.unlink()
(here / "expected.json").write_text(json.dumps(expected, indent=2, sort_keys=True) + "\n")
