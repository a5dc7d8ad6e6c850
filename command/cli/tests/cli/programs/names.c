// A program that keeps what it has in new files. names HOW DIR TIMES
//
//   replace   writes TIMES new files, syncs each, renames it over DIR/store and syncs DIR
//   unique    the same with names that mkstemp makes, each kept, and the one before it removed
//   parts     TIMES times, as a column store adds a part: makes DIR/tmp, writes and syncs DIR/tmp/rows and DIR/tmp, renames that to
//             DIR/part-N, and syncs DIR
//   scratch   TIMES times makes DIR/tmp, writes and syncs DIR/tmp/rows, removes both, and syncs DIR
//   shelves   makes TIMES directories DIR/shelf-N, writes and syncs a file in each, and syncs each twice, as one that is in use
//   fsync, msync, dsync, syncfs
//             writes DIR/file, syncs it, writes it again, and makes that durable so
//   relations makes TIMES files as PostgreSQL makes a database's, writes and syncs each, replaces the first by the last, removes
//             the second, makes a temporary one and removes it
//   unsynced, unsynced-other
//             makes one as PostgreSQL fills a new table, of TIMES pages; has another process sync it, or change its second page,
//             when a line on standard input says so, and then changes its first page
//   burst     makes TIMES files, and removes them, without a sync
//   cut, cut-mapped
//             writes or maps a large DIR/table, syncs it, cuts it to TIMES bytes, and writes and syncs DIR/journal, which is
//             in the log by then
//   tables    TIMES times, as MariaDB replaces a table: makes and syncs DIR/shop/new.ibd, removes DIR/shop/old.ibd, renames the new
//             one to that, and writes and syncs DIR/binlog.000001; no directory is synced
//   told      the same, each time when a line on standard input says so: "table", or "log" for the binary log alone
//   xattr     writes DIR/file, gives it the attribute user.kept, and syncs it
//
// What is durable is counted on standard output. Then it waits for its end.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char text[64];
static int directory;

static void check(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void fill(int fd, int i) {
    int len = snprintf(text, sizeof text, "number %d, and so many bytes\n", i);
    check(write(fd, text, len) == len, "write");
}

static void kept(int fd) {
    check(fsync(fd) == 0, "fsync of the file");
    check(close(fd) == 0, "close");
}

static void counted(int i) {
    check(fsync(directory) == 0, "fsync of the directory");
    int len = snprintf(text, sizeof text, "%d\n", i);
    check(write(1, text, len) == len, "count");
}

static void replace(const char *dir, int i) {
    char new[512], store[512];
    snprintf(new, sizeof new, "%s/store.new", dir);
    snprintf(store, sizeof store, "%s/store", dir);
    int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    check(fd >= 0, "open");
    fill(fd, i);
    kept(fd);
    check(rename(new, store) == 0, "rename");
}

static void made(const char *within, const char *file, int i) {
    check(mkdir(within, 0750) == 0, "mkdir");
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0640);
    check(fd >= 0, "open");
    fill(fd, i);
    kept(fd);
}

static void part(const char *dir, int i) {
    char tmp[512], rows[600], place[512];
    snprintf(tmp, sizeof tmp, "%s/tmp", dir);
    snprintf(rows, sizeof rows, "%s/rows", tmp);
    snprintf(place, sizeof place, "%s/part-%d", dir, i);
    made(tmp, rows, i);
    int within = open(tmp, O_RDONLY | O_DIRECTORY);
    check(within >= 0, "open the part");
    kept(within);
    check(rename(tmp, place) == 0, "rename of the part");
}

static void scratch(const char *dir, int i) {
    char tmp[512], rows[600];
    snprintf(tmp, sizeof tmp, "%s/tmp", dir);
    snprintf(rows, sizeof rows, "%s/rows", tmp);
    made(tmp, rows, i);
    check(rmdir(tmp) != 0, "rmdir of one with a file in it");
    check(unlink(rows) == 0 && rmdir(tmp) == 0, "unlink, rmdir");
}

static void shelf(const char *dir, int i) {
    char shelf[512], book[600];
    snprintf(shelf, sizeof shelf, "%s/shelf-%d", dir, i);
    snprintf(book, sizeof book, "%s/book", shelf);
    made(shelf, book, i);
    int within = open(shelf, O_RDONLY | O_DIRECTORY);
    check(within >= 0 && fsync(within) == 0, "open and sync the shelf");
    kept(within);
}

static void unique(const char *dir, int i) {
    static char before[512];
    char name[512];
    snprintf(name, sizeof name, "%s/unique-XXXXXX", dir);
    int fd = mkstemp(name);
    check(fd >= 0, "mkstemp");
    fill(fd, i);
    kept(fd);
    check(!*before || unlink(before) == 0, "unlink");
    strcpy(before, name);
}

static void burst(const char *dir, int times) {
    char name[512];
    for (int i = 1; i <= 2; i++) {
        replace(dir, i);
        counted(i);
    }
    for (int i = 0; i < 2 * times; i++) {
        snprintf(name, sizeof name, "%s/burst-%d", dir, i % times);
        int fd = i < times ? open(name, O_WRONLY | O_CREAT | O_EXCL, 0644) : -1;
        check(i < times ? fd >= 0 && close(fd) == 0 : unlink(name) == 0, name);
    }
}

static void relation(const char *dir, int i) {
    static char page[8192];
    char name[512];
    snprintf(name, sizeof name, "%s/base/5/%d", dir, i);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    check(fd >= 0, name);
    memset(page, 'a' + i, sizeof page);
    check(pwrite(fd, page, sizeof page, 0) == sizeof page, "pwrite");
    kept(fd);
}

static void relations(const char *dir, int times) {
    char name[512], to[512];
    for (int i = 0; i < times; i++) relation(dir, i);
    snprintf(name, sizeof name, "%s/base/5/%d", dir, times - 1);
    snprintf(to, sizeof to, "%s/base/5/0", dir);
    check(rename(name, to) == 0, "rename");
    snprintf(name, sizeof name, "%s/base/5/1", dir);
    check(unlink(name) == 0, "unlink");
    snprintf(name, sizeof name, "%s/base/5/t3_16384", dir);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    check(fd >= 0 && close(fd) == 0 && unlink(name) == 0, "a temporary one");
    int again = open(to, O_RDWR);
    check(again >= 0 && fsync(again) == 0, "fsync of the name");
}

static const char *next_line(void) {
    static char line[16];
    if (!fgets(line, sizeof line, stdin)) pause();
    return line;
}

static void unsynced(const char *dir, int is_written, int times) {
    static char page[8192];
    char name[512];
    relation(dir, 1); // A process that has not written to the log yet has no right to write around it.
    snprintf(name, sizeof name, "%s/base/5/16384", dir);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    check(fd >= 0, name);
    memset(page, 'a', sizeof page);
    for (int i = 0; i < times; i++) check(pwrite(fd, page, sizeof page, i * sizeof page) == sizeof page, "pwrite");
    check(write(1, "made\n", 5) == 5, "say");
    next_line();
    pid_t child = fork();
    check(child >= 0, "fork");
    if (!child) {
        int own = open(name, O_RDWR);
        memset(page, 'c', sizeof page);
        int done = is_written ? pwrite(own, page, sizeof page, sizeof page) == sizeof page : fsync(own) == 0;
        _exit(own < 0 || !done);
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "the other one's part");
    memset(page, 'b', sizeof page);
    check(pwrite(fd, page, sizeof page, 0) == sizeof page, "pwrite");
}

static int is_told_table(void) {
    return !strcmp(next_line(), "table\n");
}

static void tables(const char *dir, int times, int is_told) {
    char new[512], old[512], log[512];
    snprintf(new, sizeof new, "%s/shop/new.ibd", dir);
    snprintf(old, sizeof old, "%s/shop/old.ibd", dir);
    snprintf(log, sizeof log, "%s/binlog.000001", dir);
    int binlog = open(log, O_RDWR | O_CREAT | O_EXCL, 0640);
    check(binlog >= 0, log);
    for (int i = 1; i <= times; i++) {
        if (!is_told || is_told_table()) {
            int fd = open(new, O_RDWR | O_CREAT | O_EXCL, 0640);
            check(fd >= 0, new);
            fill(fd, i);
            kept(fd);
            check(access(old, F_OK) != 0 || unlink(old) == 0, "unlink");
            check(rename(new, old) == 0, "rename");
        }
        fill(binlog, i);
        check(fdatasync(binlog) == 0, "fdatasync of the binary log");
        int len = snprintf(text, sizeof text, "%d\n", i);
        check(write(1, text, len) == len, "count");
    }
}

static void again(const char *dir, const char *how) {
    char name[512];
    snprintf(name, sizeof name, "%s/file", dir);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0644);
    check(fd >= 0, "open");
    fill(fd, 1);
    int is_labelled = !strcmp(how, "xattr");
    check(!is_labelled || fsetxattr(fd, "user.kept", "yes", 3, 0) == 0, "fsetxattr");
    check(fsync(fd) == 0, "fsync of the file");
    counted(1);
    if (is_labelled) return;
    int other = strcmp(how, "dsync") ? fd : open(name, O_WRONLY | O_DSYNC);
    check(lseek(other, 0, SEEK_SET) == 0, "lseek");
    if (strcmp(how, "msync")) {
        fill(other, 2);
    } else {
        char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        check(at != MAP_FAILED, "mmap");
        memcpy(at, "number 2", 8);
        check(msync(at, 4096, MS_SYNC) == 0, "msync");
    }
    if (!strcmp(how, "fsync")) check(fsync(fd) == 0, "fsync again");
    if (!strcmp(how, "syncfs")) check(syncfs(fd) == 0, "syncfs");
    counted(2);
}

static void cut(const char *dir, int is_mapped, int size) {
    static char page[4096];
    enum { LARGE = 1 << 20 };
    char table[512], journal[512];
    snprintf(table, sizeof table, "%s/table", dir);
    snprintf(journal, sizeof journal, "%s/journal", dir);
    // From its second sync on it is in the log, and so are its directory's names: no sync of them is the disk's.
    int log = open(journal, O_RDWR | O_CREAT | O_EXCL, 0644);
    check(log >= 0, journal);
    for (int i = 1; i <= 3; i++) {
        fill(log, i);
        check(fsync(log) == 0, "fsync of the journal");
        counted(i);
    }
    int fd = open(table, O_RDWR | O_CREAT | O_TRUNC, 0644);
    check(fd >= 0 && ftruncate(fd, LARGE) == 0, table);
    if (is_mapped) {
        char *at = mmap(0, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        check(at != MAP_FAILED, "mmap");
        memset(at, 'm', LARGE);
        check(msync(at, LARGE, MS_SYNC) == 0 && munmap(at, LARGE) == 0, "msync");
    }
    for (int at = 0; !is_mapped && at < LARGE; at += sizeof page)
        check(write(fd, page, sizeof page) == sizeof page, "write");
    check(fsync(fd) == 0, "fsync of the table");
    check(ftruncate(fd, size) == 0 && close(fd) == 0, "cut");
    fill(log, 4);
    check(fsync(log) == 0, "fsync of the journal");
    counted(4);
}

int main(int argc, char **argv) {
    check(argc == 4, "names HOW DIR TIMES");
    const char *how = argv[1], *dir = argv[2];
    directory = open(dir, O_RDONLY | O_DIRECTORY);
    check(directory >= 0, "open the directory");
    // From the first sync on it is in the log.
    int is_tables = !strcmp(how, "tables"), is_told = !strcmp(how, "told");
    check(is_tables || is_told || fsync(directory) == 0, "fsync of the directory");
    void (*change)(const char *, int) = !strcmp(how, "replace") ? replace : !strcmp(how, "unique") ? unique : !strcmp(how, "parts") ? part
        : !strcmp(how, "shelves") ? shelf
        : !strcmp(how, "scratch") ? scratch : NULL;
    for (int i = 1; change && i <= atoi(argv[3]); i++) {
        change(dir, i);
        counted(i);
    }
    if (!strcmp(how, "burst")) burst(dir, atoi(argv[3]));
    else if (!strncmp(how, "cut", 3)) cut(dir, !strcmp(how, "cut-mapped"), atoi(argv[3]));
    else if (is_tables || is_told) tables(dir, atoi(argv[3]), is_told);
    else if (!strcmp(how, "relations")) relations(dir, atoi(argv[3]));
    else if (!strncmp(how, "unsynced", 8)) unsynced(dir, !strcmp(how, "unsynced-other"), atoi(argv[3]));
    else if (!change) again(dir, how);
    check(write(1, "over\n", 5) == 5, "count");
    pause();
    return 0;
}
