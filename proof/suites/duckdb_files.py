#!/usr/bin/env python3
"""What DuckDB does with files, by DuckDB itself: one test a function, each in a directory of its own."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import traceback

import duckdb

PATH = "main.duckdb"


def rows(path=PATH, table="t"):
    with duckdb.connect(path, read_only=True) as database:
        return database.sql(f"select count(*), sum(a) from {table}").fetchone()


def fill(count=1000, path=PATH, table="t"):
    with duckdb.connect(path) as database:
        database.execute(f"create table {table} as select range as a, 'x' || range as b from range({count})")


def create():
    fill()
    assert rows() == (1000, 499500), rows()
    assert os.listdir(".") == [PATH], os.listdir(".")


def write_ahead_log():
    with duckdb.connect(PATH) as database:
        database.execute("set checkpoint_threshold = '1GB'; create table t (a bigint)")
        for a in range(50):
            database.execute("insert into t values (?)", [a])
        assert os.path.exists(PATH + ".wal")
        database.execute("checkpoint")
        assert os.path.getsize(PATH) > 12288
    assert rows() == (50, 1225)


def killed():
    script = (
        "import duckdb, os, signal; d = duckdb.connect('%s'); d.execute(\"set checkpoint_threshold = '1GB'\");"
        "d.execute('create table t (a bigint)');"
        "[d.execute('insert into t values (?)', [a]) for a in range(200)]; os.kill(os.getpid(), signal.SIGKILL)" % PATH
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script])
        assert done.returncode == -signal.SIGKILL, done
        assert os.path.exists(PATH + ".wal")
        assert rows() == (200, 19900), rows()
        with duckdb.connect(PATH) as database:
            database.execute("drop table t")


def rolled_back():
    fill()
    with duckdb.connect(PATH) as database:
        database.execute("begin; delete from t; create table u as select * from range(100000); rollback")
    assert rows() == (1000, 499500)


def renamed():
    fill()
    for path in ["other.duckdb", "d/main.duckdb"]:
        os.makedirs("d", exist_ok=True)
        os.rename(PATH, path)
        assert rows(path) == (1000, 499500)
        os.rename(path, PATH)


def directory_renamed():
    os.mkdir("new")
    fill(path="new/" + PATH)
    os.rename("new", "db")
    with duckdb.connect("db/" + PATH) as database:
        database.execute("insert into t values (1, 'y')")
    assert rows("db/" + PATH) == (1001, 499501)
    shutil.rmtree("db")
    assert os.listdir(".") == []


def copied():
    fill()
    shutil.copy(PATH, "copy.duckdb")
    shutil.copytree(".", "tree")
    assert rows("copy.duckdb") == rows("tree/" + PATH) == (1000, 499500)


def copied_by_itself():
    fill()
    with duckdb.connect() as database:
        database.execute(f"attach '{PATH}' as one; attach 'two.duckdb' as two; copy from database one to two")
    assert rows("two.duckdb") == (1000, 499500)


def removed():
    for _ in range(5):
        fill(100)
        os.remove(PATH)
        assert os.listdir(".") == []


def exported():
    fill()
    for form in ["csv", "parquet"]:
        with duckdb.connect(PATH) as database:
            database.execute(f"export database '{form}' (format {form})")
        with duckdb.connect(form + ".duckdb") as database:
            database.execute(f"import database '{form}'")
        assert rows(form + ".duckdb") == (1000, 499500)


def many_attached():
    with duckdb.connect() as database:
        for i in range(20):
            database.execute(f"attach 'd{i}.duckdb'; create table d{i}.t as select range as a from range(100)")
        for i in range(20):
            database.execute(f"detach d{i}")
    for i in range(20):
        assert rows(f"d{i}.duckdb") == (100, 4950)


def spilled():
    with duckdb.connect(PATH) as database:
        database.execute("set memory_limit = '120MB'; set threads = 1; set temp_directory = 'spill'")
        database.execute("create table t as select range as a, hash(range)::varchar || repeat('x', 100) as b from range(600000)")
        assert database.sql("select count(*) from (select b from t order by b)").fetchone() == (600000,)
    assert rows()[0] == 600000


def locked():
    fill()
    with duckdb.connect(PATH):
        script = f"import duckdb; duckdb.connect('{PATH}')"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 1 and "lock" in done.stderr, done
    assert rows() == (1000, 499500)


def read(path):
    return rows(path)


def readers():
    fill()
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(read, [PATH] * 16) == [(1000, 499500)] * 16


def changed():
    fill(20000)
    with duckdb.connect(PATH) as database:
        database.execute("alter table t add column c bigint default 7; create index i on t (a)")
        database.execute("update t set b = 'z' where a % 3 = 0; delete from t where a % 2 = 0; vacuum; checkpoint")
        assert database.sql("select count(*), sum(c) from t").fetchone() == (10000, 70000)
    assert rows() == (10000, 100000000)


def damaged():
    fill()
    with open(PATH, "r+b") as file:
        file.seek(8)
        file.write(b"????")
    try:
        duckdb.connect(PATH)
    except duckdb.Error:
        return
    raise AssertionError("opened")


TESTS = [
    create, write_ahead_log, killed, rolled_back, renamed, directory_renamed, copied, copied_by_itself, removed, exported,
    many_attached, spilled, locked, readers, changed, damaged,
]


def main(data, outputs):
    for test in TESTS:
        name = test.__name__
        place = os.path.join(data, name)
        os.mkdir(place)
        os.chdir(place)
        result = "pass"
        with open(os.path.join(outputs, name), "w") as output:
            try:
                test()
                os.chdir(data)
                shutil.rmtree(place)
            except BaseException:
                result = "fail"
                traceback.print_exc(file=output)
        print(f"{result}\t{name}\t{name}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
