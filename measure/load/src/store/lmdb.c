/* LMDB. One thread: writers take turns in LMDB anyway. With `writemap` it writes through its mapping. */
#include "store.h"

#include <lmdb.h>

const int store_threads = 1;

static MDB_env *environment;
static MDB_dbi db;

static void check(const char *doing, int result)
{
    if (result)
        fail(doing, mdb_strerror(result));
}

void store_open(const char *directory, int sync)
{
    MDB_txn *transaction;
    unsigned flags = (sync ? 0 : MDB_NOSYNC) | (store_has("writemap") ? MDB_WRITEMAP : 0);
    check("create", mdb_env_create(&environment));
    check("size", mdb_env_set_mapsize(environment, (size_t)1 << 30));
    check("open", mdb_env_open(environment, directory, flags, 0644));
    check("begin", mdb_txn_begin(environment, NULL, 0, &transaction));
    check("table", mdb_dbi_open(transaction, NULL, 0, &db));
    check("commit", mdb_txn_commit(transaction));
}

void store_put(const char key[KEY_BYTES], const char value[VALUE_BYTES])
{
    MDB_txn *transaction;
    MDB_val k = {KEY_BYTES, (void *)key}, v = {VALUE_BYTES, (void *)value};
    check("begin", mdb_txn_begin(environment, NULL, 0, &transaction));
    check("put", mdb_put(transaction, db, &k, &v, 0));
    check("commit", mdb_txn_commit(transaction));
}

void store_each(void (*found)(const char *key, const char *value))
{
    MDB_txn *transaction;
    MDB_cursor *at;
    MDB_val key, value;
    int result;
    check("begin", mdb_txn_begin(environment, NULL, MDB_RDONLY, &transaction));
    check("cursor", mdb_cursor_open(transaction, db, &at));
    while (!(result = mdb_cursor_get(at, &key, &value, MDB_NEXT))) {
        if (key.mv_size != KEY_BYTES || value.mv_size != VALUE_BYTES)
            fail("check", "an entry of another size");
        found(key.mv_data, value.mv_data);
    }
    if (result != MDB_NOTFOUND)
        check("read", result);
    mdb_cursor_close(at);
    mdb_txn_abort(transaction);
}

void store_close(void)
{
    mdb_env_close(environment);
}
