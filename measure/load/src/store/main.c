/* A load for embedded stores, one commit after another, and its check.
 *
 *   PROGRAM DIRECTORY run sync|nosync SECONDS [LEDGER]   one line: commits and seconds
 *   PROGRAM DIRECTORY check                              one line per commit found: client and number
 *
 * Each thread commits its own running numbers, under keys in random order, and appends each to the ledger
 * (outside the store, one write(2)) as soon as it was acknowledged; it goes on where the ledger ends. A value
 * follows from its key: one that is wrong ends the check with an error. The environment variable STORE has words
 * that say how the store is opened: each store knows its own. */
#include "store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 16 };

static int ledger = -1;
static double end;
static long last[MOST_THREADS];
static long committed[MOST_THREADS];

void fail(const char *doing, const char *why)
{
    fprintf(stderr, "%s: %s\n", doing, why);
    exit(2);
}

int store_has(const char *word)
{
    const char *words = getenv("STORE");
    return words && strstr(words, word) != NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* SplitMix64. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void make(int client, long number, char key[KEY_BYTES], char value[VALUE_BYTES])
{
    uint64_t seed = mix((uint64_t)client << 48 ^ (uint64_t)number);
    memset(key, 0, KEY_BYTES);
    snprintf(key, KEY_BYTES, "%016" PRIx64 " %d %ld", seed, client, number);
    for (size_t i = 0; i < VALUE_BYTES; i += 8) {
        uint64_t word = mix(seed + i);
        memcpy(value + i, &word, 8);
    }
}

static void *commit(void *argument)
{
    int client = (int)(intptr_t)argument;
    char key[KEY_BYTES], value[VALUE_BYTES], line[64];
    for (long number = last[client - 1] + 1; now() < end; number++) {
        make(client, number, key, value);
        store_put(key, value);
        committed[client - 1]++;
        int n = snprintf(line, sizeof line, "%d %ld\n", client, number);
        if (ledger >= 0 && write(ledger, line, n) != n)
            fail("ledger", "short write");
    }
    return NULL;
}

static void found(const char *key, const char *value)
{
    char wanted_key[KEY_BYTES], wanted[VALUE_BYTES];
    int client;
    long number;
    if (sscanf(key, "%*x %d %ld", &client, &number) != 2)
        fail("check", "a key that this load did not write");
    make(client, number, wanted_key, wanted);
    if (memcmp(key, wanted_key, KEY_BYTES) || memcmp(value, wanted, VALUE_BYTES))
        fail("check", "a value that does not belong to its key");
    printf("%d %ld\n", client, number);
}

static void run(double seconds)
{
    pthread_t threads[MOST_THREADS];
    double begin = now();
    long all = 0;
    end = begin + seconds;
    for (int i = 0; i < store_threads; i++)
        if (pthread_create(&threads[i], NULL, commit, (void *)(intptr_t)(i + 1)))
            fail("run", "no thread");
    for (int i = 0; i < store_threads; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < store_threads; i++)
        all += committed[i];
    printf("%ld %.6f\n", all, now() - begin);
}

static void open_ledger(const char *path)
{
    char line[64];
    int client;
    long number;
    FILE *before = fopen(path, "r");
    while (before && fgets(line, sizeof line, before))
        if (sscanf(line, "%d %ld", &client, &number) == 2 && client >= 1 && client <= MOST_THREADS)
            last[client - 1] = number;
    if (before)
        fclose(before);
    if ((ledger = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) < 0)
        fail("ledger", path);
}

int main(int argc, char **argv)
{
    int is_run = argc >= 5 && !strcmp(argv[2], "run");
    if (!is_run && !(argc == 3 && !strcmp(argv[2], "check")))
        fail(argv[0], "DIRECTORY run sync|nosync SECONDS [LEDGER], or DIRECTORY check");
    if (argc > 5)
        open_ledger(argv[5]);
    store_open(argv[1], is_run && !strcmp(argv[3], "sync"));
    if (is_run)
        run(atof(argv[4]));
    else
        store_each(found);
    store_close();
    return 0;
}
