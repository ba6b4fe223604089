"""Writes down what DuckDB answers to a suite's statements: python answers.py FOLDER SUITE.sql > SUITE.json

FOLDER holds the tables as CSV files; the tests leave it in target/tmp.
"""

import datetime
import decimal
import json
import pathlib
import re
import sys

import duckdb

folder, suite = map(pathlib.Path, sys.argv[1:])
database = duckdb.connect()
for table in sorted(folder.glob("*.csv")):
    database.execute(f"CREATE VIEW {table.stem} AS SELECT * FROM read_csv('{table}')")


def plain(value):
    if isinstance(value, decimal.Decimal):
        return float(value)
    return str(value) if isinstance(value, datetime.date) else value


answers = {}
for statement in re.split(r"(?m)^-- (?=\d+: )", suite.read_text())[1:]:
    title, sql = statement.split("\n", 1)
    rows = database.sql(sql.strip().rstrip(";")).fetchall()
    answers[title.split(":")[0]] = [[plain(value) for value in row] for row in rows]
print("{")
print(",\n".join(f' "{number}": {json.dumps(rows)}' for number, rows in answers.items()))
print("}")
