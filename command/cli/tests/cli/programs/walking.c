/* Walks a directory by every way that libc has of its own, one line each: names as the program gets them, and sizes. */
#define _GNU_SOURCE
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *found[64];
static int count;

static void take(const char *path, long size)
{
    const char *name = strrchr(path, '/');
    asprintf(&found[count++], "%s:%ld", name ? name + 1 : path, size);
}

static int in_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void say(const char *way)
{
    qsort(found, count, sizeof *found, in_order);
    for (int i = 0; i < count; i++) printf("%s ", found[i]), free(found[i]);
    puts(way);
    count = 0;
}

static long size_of(const struct stat *st) { return S_ISREG(st->st_mode) ? (long)st->st_size : -1; }

static int plain(const char *path, const struct stat *st, int kind)
{
    (void)kind;
    take(path, size_of(st));
    return 0;
}

static int full(const char *path, const struct stat *st, int kind, struct FTW *level)
{
    (void)kind;
    if (strchr(path + level->base, '/')) abort();
    take(path, size_of(st));
    return 0;
}

/* Two walks at once: the inner one must not be taken for the outer one. */
static int nested(const char *path, const struct stat *st, int kind, struct FTW *level)
{
    if (kind == FTW_D && level->level == 0) ftw(path, plain, 8);
    return full(path, st, kind, level);
}

static void by_fts(char *path, int options, const char *way)
{
    char *paths[] = {path, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | options, NULL);
    FTSENT *entry;
    while ((entry = fts_read(tree))) {
        if (strlen(entry->fts_name) != entry->fts_namelen || strlen(entry->fts_path) != entry->fts_pathlen) abort();
        if (entry->fts_info != FTS_DP) take(entry->fts_path, size_of(entry->fts_statp));
    }
    fts_close(tree);
    say(way);
}

static void by_children(char *path)
{
    char *paths[] = {path, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;
    fts_read(tree);
    for (entry = fts_children(tree, 0); entry; entry = entry->fts_link) take(entry->fts_name, size_of(entry->fts_statp));
    say("fts_children");
    while ((entry = fts_read(tree))) {
        if (strlen(entry->fts_name) != entry->fts_namelen) abort();
        if (entry->fts_info != FTS_DP) take(entry->fts_path, size_of(entry->fts_statp));
    }
    fts_close(tree);
    say("and then fts_read");
}

static void by_glob(const char *path, const char *pattern)
{
    char *whole;
    glob_t all;
    asprintf(&whole, "%s/%s", path, pattern);
    if (glob(whole, 0, NULL, &all) == 0) {
        for (size_t i = 0; i < all.gl_pathc; i++) take(all.gl_pathv[i], 0);
        globfree(&all);
    }
    free(whole);
    say(pattern);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    char *dir = argv[1], *file = argv[2];
    if (ftw(dir, plain, 8)) return 1;
    say("ftw");
    if (nftw(dir, full, 8, FTW_PHYS)) return 1;
    say("nftw");
    if (nftw(dir, full, 8, FTW_PHYS | FTW_DEPTH)) return 1;
    say("nftw, depth first");
    if (nftw(dir, full, 8, FTW_PHYS | FTW_CHDIR)) return 1;
    say("nftw, the working directory goes along");
    if (nftw(dir, full, 8, FTW_PHYS | FTW_ACTIONRETVAL)) return 1;
    say("nftw, with answers");
    if (nftw(dir, nested, 8, FTW_PHYS)) return 1;
    say("nftw in nftw");
    if (nftw(file, full, 8, FTW_PHYS)) return 1;
    say("nftw of a file");
    by_fts(dir, 0, "fts");
    by_fts(dir, FTS_NOCHDIR, "fts, the working directory stays");
    by_fts(file, FTS_NOCHDIR, "fts of a file");
    by_children(dir);
    by_glob(dir, "*");
    by_glob(dir, "*[a-l]");
    by_glob(dir, "data.mdb");
    by_glob(dir, "*/*");
    return 0;
}
