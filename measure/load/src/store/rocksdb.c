/* RocksDB by its C interface. A small write buffer: the log is switched while a test runs. With `direct` tables
 * are read and written with O_DIRECT; with `mmap` tables are written through mappings; with `recycle` old logs are
 * written over. */
#include "store.h"

#include <rocksdb/c.h>

const int store_threads = 4;

static rocksdb_t *db;
static rocksdb_writeoptions_t *how;

void store_open(const char *directory, int sync)
{
    char *error = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 1 << 20);
    if (store_has("direct")) {
        rocksdb_options_set_use_direct_reads(options, 1);
        rocksdb_options_set_use_direct_io_for_flush_and_compaction(options, 1);
    }
    if (store_has("mmap"))
        rocksdb_options_set_allow_mmap_writes(options, 1);
    if (store_has("recycle"))
        rocksdb_options_set_recycle_log_file_num(options, 2);
    db = rocksdb_open(options, directory, &error);
    if (error)
        fail("open", error);
    rocksdb_options_destroy(options);
    how = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(how, sync);
}

void store_put(const char key[KEY_BYTES], const char value[VALUE_BYTES])
{
    char *error = NULL;
    rocksdb_put(db, how, key, KEY_BYTES, value, VALUE_BYTES, &error);
    if (error)
        fail("put", error);
}

void store_each(void (*found)(const char *key, const char *value))
{
    char *error = NULL;
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_iterator_t *at = rocksdb_create_iterator(db, options);
    for (rocksdb_iter_seek_to_first(at); rocksdb_iter_valid(at); rocksdb_iter_next(at)) {
        size_t key_bytes, value_bytes;
        const char *key = rocksdb_iter_key(at, &key_bytes), *value = rocksdb_iter_value(at, &value_bytes);
        if (key_bytes != KEY_BYTES || value_bytes != VALUE_BYTES)
            fail("check", "an entry of another size");
        found(key, value);
    }
    rocksdb_iter_get_error(at, &error);
    if (error)
        fail("check", error);
    rocksdb_iter_destroy(at);
    rocksdb_readoptions_destroy(options);
}

void store_close(void)
{
    rocksdb_writeoptions_destroy(how);
    rocksdb_close(db);
}
