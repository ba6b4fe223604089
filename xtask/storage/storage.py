"""Tries `whit` against a real S3 server: moto's, which computes every signature again and looks up who may read what.

    cargo xtask storage                      # makes a virtual environment, builds `whit` and calls this
    python storage.py path/to/whit           # by hand: pip install 'moto[server]' boto3 deltalake pyarrow

Each table is declared twice, once in a folder and once in a bucket, over plain and over encrypted connections, and what the owner is shown of both has to be the same.
"""

import gzip
import json
import logging
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

import boto3
import moto.settings
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
whit = sys.argv[1]
here = pathlib.Path(tempfile.mkdtemp(prefix="whit-storage-"))
tried = 0


def check(true, what):
    global tried
    tried += 1
    if not true:
        sys.exit(f"error: {what}")


def run(folder, *arguments, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env |= {"WHIT_STATE": "", "WHIT_CACHE": str(here / "cache")} | variables
    return subprocess.run([whit, *arguments], cwd=folder, env=env, capture_output=True, text=True)


def tables():
    """Files of every format, some of them packed, in folders that are named after values, and a Delta table."""
    import deltalake
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = [f"{user},{land},{10 * user}" for user in range(200) for land in ("at", "de ü")]
    text = "user_id,land,x\n" + "\n".join(lines) + "\n"
    data = here / "local" / "data"
    for name in ["csv", "packed", "ndjson", "days/day=2024-01-01", "days/day=2024-01-02 10:00", "parquet"]:
        (data / name).mkdir(parents=True)
    (data / "csv/a b+ü%.csv").write_text(text)
    (data / "csv/_not.csv").write_text("not,a,table\n")
    (data / "packed/a.csv.gz").write_bytes(gzip.compress(text.encode()))
    rows = [json.dumps({"user_id": user, "land": "at", "x": user}) for user in range(300)]
    (data / "ndjson/a.ndjson").write_text("\n".join(rows))
    for day in ["2024-01-01", "2024-01-02 10:00"]:
        (data / f"days/day={day}/part-0.csv").write_text(text)
    table = pa.table({"user_id": range(1000), "land": ["at"] * 1000, "x": range(1000)})
    for number in range(7):
        pq.write_table(table.slice(100 * number, 100), data / f"parquet/part-{number}.parquet")
    deltalake.write_deltalake(str(data / "delta"), table, partition_by=["land"])
    deltalake.DeltaTable(str(data / "delta")).delete("x < 10")
    return data


DECLARED = {
    "csv": ("csv/", ""),
    "one": ("csv/a b+ü%.csv", ""),
    "packed": ("packed/*.gz", ""),
    "ndjson": ("ndjson/", ""),
    "days": ("days/", "partitioned_by = ['day']\ncolumns.day = 'date'\n"),
    "parquet": ("parquet/part-[1-5].parquet", ""),
    "delta": ("delta/", ""),
    "first": ("delta/", "version = 0\n"),
}


def declaration(before):
    one = "[dataset.{}]\nsource = {}\n{}unit.user = 'user_id'\nunit.protect = 'user'\ncolumns.user_id = 'int'\ncolumns.land = 'text'\ncolumns.x = 'int'\n"
    return "\n".join(one.format(name, json.dumps(before + path), more) for name, (path, more) in DECLARED.items())


def encrypted(port):
    """The same server behind TLS, under a certificate that nobody knows."""
    key, certificate = here / "key.pem", here / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source, target):
        try:
            while piece := source.recv(65536):
                target.sendall(piece)
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve(plain):
        try:
            client = context.wrap_socket(plain, server_side=True)
        except (ssl.SSLError, OSError):
            return
        server = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=pump, args=(client, server), daemon=True).start()
        pump(server, client)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1], certificate


def main():
    data = tables()
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    address = f"http://localhost:{port}"
    root = {"endpoint_url": address, "region_name": "eu-central-1", "aws_access_key_id": "root", "aws_secret_access_key": "root"}
    store, people = boto3.client("s3", **root), boto3.client("iam", **root)
    store.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    for path in data.rglob("*"):
        if path.is_file():
            store.upload_file(str(path), "lake", f"tables/{path.relative_to(data)}")
    may = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetObject"], "Resource": "*"}]}
    keys = {}
    for name, policy in [("reader", may), ("stranger", None)]:
        people.create_user(UserName=name)
        keys[name] = people.create_access_key(UserName=name)["AccessKey"]
        if policy:
            people.put_user_policy(UserName=name, PolicyName="may", PolicyDocument=json.dumps(policy))
    # From here on every request is checked.
    moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0

    remote = here / "remote"
    remote.mkdir()
    (here / "local/whit.toml").write_text(declaration("data/"))
    (remote / "whit.toml").write_text(declaration("s3://lake/tables/"))

    def who(name, **more):
        key = keys[name]
        return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
                "AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": address} | more

    def seen(text):
        told = [{**own, "name": own["name"]} for own in json.loads(text)["owner"]] if "owner" in json.loads(text) else json.loads(text)
        return json.dumps(told, sort_keys=True).replace("s3://lake/tables/", "data/")

    local = run(here / "local", "check", "--owner", "--json")
    check(local.returncode == 0, f"the tables of the folder are not read: {local.stderr}")
    check('"rows":990' in local.stdout.replace(" ", ""), f"the Delta table has other rows: {local.stdout}")
    bucket = run(remote, "check", "--owner", "--json", **who("reader"))
    check(bucket.returncode == 0, f"the tables of the bucket are not read: {bucket.stderr}")
    check(seen(bucket.stdout) == seen(local.stdout), f"they are other tables:\n{local.stdout}\n{bucket.stdout}")
    copies = sorted(path for path in (here / "cache").rglob("*") if path.is_file())
    check(all(path.stat().st_mode & 0o077 == 0 for path in (here / "cache").rglob("*")), "others may read the copies")

    tls, certificate = encrypted(port)
    secure = {"AWS_ENDPOINT_URL": f"https://localhost:{tls}", "WHIT_CACHE": str(here / "other")}
    bucket = run(remote, "check", "--owner", "--json", **who("reader", AWS_CA_BUNDLE=str(certificate), **secure))
    check(bucket.returncode == 0, f"encrypted connections: {bucket.stderr}")
    check(seen(bucket.stdout) == seen(local.stdout), "they are other tables where connections are encrypted")

    # What goes wrong is said before anything is charged, without a name of an object or a secret.
    for variables, expected in [
        (who("stranger"), "may not be read by whoever AWS_ACCESS_KEY_ID names"),
        (who("reader", AWS_SECRET_ACCESS_KEY="wrong"), "may not be read by whoever AWS_ACCESS_KEY_ID names"),
        (who("reader", AWS_ENDPOINT_URL="http://localhost:1"), "cannot be asked"),
        (who("reader", **secure), "its certificate is not trusted"),
        ({}, "nothing says who asks for the bucket `lake`"),
    ]:
        found = run(remote, "check", **{"WHIT_CACHE": str(here / "third")} | variables)
        check(found.returncode != 0 and expected in found.stderr, f"{expected}: {found.stdout} {found.stderr}")
        check("part-" not in found.stderr and keys["reader"]["SecretAccessKey"] not in found.stderr, found.stderr)

    # A draft, and what was written into the bucket meanwhile.
    drafted = run(remote, "init", "s3://lake/tables/csv/", "--user", "user_id", "--output", "drafted.toml", **who("reader"))
    text = (remote / "drafted.toml").read_text() if drafted.returncode == 0 else drafted.stderr
    check('source = "s3://lake/tables/csv/"' in text, text)
    drafted = run(remote, "init", "s3://lake/tables/delta/", "--output", "delta.toml", **who("reader"))
    check("it is a Delta table" in drafted.stderr + drafted.stdout, drafted.stderr)
    check(run(remote, "check", "--config", "drafted.toml", **who("reader")).returncode == 0, "the draft is not read")
    before = {path for path in copies}
    again = run(remote, "check", **who("reader"))
    check(again.returncode == 0 and before <= set((here / "cache").rglob("*")), "copies were not kept")
    server.stop()
    print(f"storage: {tried} checks against moto's S3, {len(copies)} objects copied: as in folders")


main()
