"""Makes the tables that the races read, always the same ones.

    python make.py [visits] [visits-1m] [wide] [tokens] [vectors]      all of them, where none is named

Each goes to data/ as Parquet with row groups of a million rows, and beside it what it was made of; a table that is there
already and was made of the same is left alone. Seeds are fixed, and so is numpy's version (requirements.txt).
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).parent / "data"
GROUP = 1_000_000  # rows of a row group, so that two threads always find work

# What each table is made of. Whoever changes a maker raises its version, so that old files are made again.
RECIPES = {
    # Visits to sites: what the race against the plain engine reads.
    "visits": {"version": 1, "seed": 20_250_101, "rows": 20_000_000, "users": 200_000, "keys": 1_000},
    # The same in small, for the peers. More users for its rows, so that 10 groups of each fill 1,000 keys.
    "visits-1m": {"version": 2, "seed": 20_250_102, "rows": 1_000_000, "users": 50_000, "keys": 1_000},
    # More than memory: nearly every row is a (user, page) of its own, so the two-level aggregate keeps nearly all rows.
    "wide": {"version": 1, "seed": 20_250_103, "rows": 80_000_000, "users": 8_000_000, "pages": 100_000},
    # Words of authors, one row a token, for heavy hitters and the clustered histogram.
    "tokens": {"version": 1, "seed": 20_250_104, "users": 2_000, "tokens": 4_000, "words": 400_000, "clusters": 10_000},
    # A vector for each of the words, in as many heaps, for the partition.
    "vectors": {"version": 1, "seed": 20_250_105, "words": 400_000, "clusters": 10_000, "dimensions": 100},
}


def zipf(count, exponent, offset=0.0):
    """Shares of ranks 1 … count, each (rank + offset) to the power of −exponent."""
    shares = (np.arange(1, count + 1) + offset) ** -exponent
    return shares / shares.sum()


def draw(random, shares, size):
    """Ranks from 0, drawn by their shares."""
    return np.searchsorted(np.cumsum(shares)[:-1], random.random(size), side="right")


def sizes(shares, total):
    """Whole numbers in proportion to the shares: each at least 1, and `total` together."""
    spare = total - len(shares)
    return 1 + np.diff(np.floor(np.cumsum(shares) / shares.sum() * spare + 0.5), prepend=0).astype(np.int64)


def text(ranks, names):
    """Names by number. Written without the hint that they were a dictionary, they are read as text."""
    return pa.DictionaryArray.from_arrays(pa.array(ranks, pa.int32()), pa.array(names)).cast(pa.string())


def visits(seed, rows, users, keys):
    """Rows in order of time, as a log is: the rows of a user, and those of a key, lie all over the file.

    The busiest user has about 2 % of the rows, the median one 0.4 times the mean; the busiest key 2 %, the rarest 0.03 %.
    12 million different (user, key) in 20 million rows.
    """
    random = np.random.default_rng(seed)
    user = np.repeat(random.permutation(users), sizes(zipf(users, 0.8), rows))
    random.shuffle(user)
    rank_to_key = random.permutation(keys)
    day = np.sort(random.integers(0, 365, rows, dtype=np.int32)) + np.int32(20_089)  # from 2025-01-01
    names = [f"site-{key:04}.example" for key in range(keys)]
    for start in range(0, rows, GROUP):
        part = slice(start, min(start + GROUP, rows))
        size = part.stop - part.start
        key = rank_to_key[draw(random, zipf(keys, 0.8, 5.0), size)].astype(np.int32)
        yield pa.table(
            {
                "user_id": user[part],
                "key": key,
                "site": text(key, names),
                "day": pa.array(day[part], pa.date32()),
                "seconds": np.round(random.exponential(60.0, size), 3),
                "value": random.lognormal(3.0, 1.0, size).astype(np.int64),  # 5 % of them above 100
            }
        )


def wide(seed, rows, users, pages):
    random = np.random.default_rng(seed)
    names = np.array([f"https://site-{page % 1000:04}.example/{page:06}/article.html" for page in range(pages)])
    for start in range(0, rows, GROUP):
        size = min(GROUP, rows - start)
        page = draw(random, zipf(pages, 0.5), size)
        yield pa.table(
            {
                "user_id": random.integers(0, users, size),
                "page": text(page, names),
                "value": random.lognormal(3.0, 1.0, size).astype(np.int64),
            }
        )


def word_names(words):
    return [f"word{word:06}" for word in range(words)]


def word_clusters(words, clusters):
    """The heap of each word, the same for tokens and vectors. Heaps are about equal, frequent words spread over them."""
    return np.random.default_rng(20_250_106).permutation(np.arange(words) % clusters).astype(np.int32)


def tokens(seed, users, tokens, words, clusters):
    """Zipf's law itself, 1 / rank: some 2,260 different words among a user's 4,000, in 2,030 heaps."""
    random = np.random.default_rng(seed)
    names, cluster, shares = word_names(words), word_clusters(words, clusters), zipf(words, 1.0)
    step = GROUP // tokens
    for start in range(0, users, step):
        user = np.repeat(np.arange(start, min(start + step, users), dtype=np.int32), tokens)
        word = draw(random, shares, len(user)).astype(np.int32)
        yield pa.table({"user_id": user, "word": text(word, names), "cluster": cluster[word]})


def vectors(seed, words, clusters, dimensions):
    random = np.random.default_rng(seed)
    centres = random.standard_normal((clusters, dimensions), dtype=np.float32)
    place = centres[word_clusters(words, clusters)]
    place += 0.5 * random.standard_normal(place.shape, dtype=np.float32)
    names = pa.array(word_names(words))
    for start in range(0, words, 100_000):
        part = slice(start, start + 100_000)
        vector = pa.FixedSizeListArray.from_arrays(pa.array(place[part].ravel()), dimensions)
        yield pa.table({"word": names[part], "vector": vector})


MAKERS = {"visits": visits, "visits-1m": visits, "wide": wide, "tokens": tokens, "vectors": vectors}


def make(name):
    """Writes one table, unless it is there. The file takes its name only once it is whole."""
    path, made_of = DATA / f"{name}.parquet", DATA / f"{name}.json"
    recipe = RECIPES[name]
    if path.exists() and made_of.exists() and json.loads(made_of.read_text())["recipe"] == recipe:
        return
    DATA.mkdir(exist_ok=True)
    started, rows, decoded, unfinished = time.perf_counter(), 0, 0, path.with_suffix(".unfinished")
    writer = None
    for table in MAKERS[name](**{key: value for key, value in recipe.items() if key != "version"}):
        if writer is None:
            # As most tools write: snappy, and dictionaries up to 1 MiB. Only the wide table must not fill the disk.
            options = {"compression": "snappy", "use_dictionary": name != "vectors"}
            if name == "wide":
                options = {"compression": "zstd", "dictionary_pagesize_limit": 16 << 20}
            writer = pq.ParquetWriter(unfinished, table.schema, store_schema=name == "vectors", **options)
        # The small table is cut finer, else one thread reads it alone.
        writer.write_table(table, row_group_size=GROUP // 8 if name == "visits-1m" else GROUP)
        rows, decoded = rows + table.num_rows, decoded + table.nbytes
    writer.close()
    unfinished.rename(path)
    made_of.write_text(json.dumps({"recipe": recipe, "rows": rows, "decoded_bytes": decoded}))
    took = f"{time.perf_counter() - started:.0f} s"
    sizes = f"{path.stat().st_size / 2**20:,.0f} MiB on disk, {decoded / 2**20:,.0f} MiB decoded"
    print(f"{path.name}: {rows:,} rows, {sizes}, made in {took}", file=sys.stderr)


if __name__ == "__main__":
    for name in sys.argv[1:] or RECIPES:
        make(name)
