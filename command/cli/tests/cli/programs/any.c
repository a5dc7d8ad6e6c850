// A program that no preset knows. any HOW FILE TIMES
//
//   append   writes and syncs TIMES times through one descriptor
//   reopen   opens, writes, syncs and closes TIMES times
//   dsync    opens with O_DSYNC, writes TIMES times
//   fresh    makes TIMES files, each synced once, and removes them

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static int opened(const char *file, int flags) {
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | flags, 0644);
    check(fd >= 0, "open");
    return fd;
}

static void append(int fd) {
    char line[512];
    memset(line, 'a', sizeof line);
    check(write(fd, line, sizeof line) == sizeof line, "write");
}

int main(int argc, char **argv) {
    check(argc == 4, "any HOW FILE TIMES");
    const char *how = argv[1], *file = argv[2];
    int times = atoi(argv[3]);
    int reopens = !strcmp(how, "reopen"), is_fresh = !strcmp(how, "fresh");
    int dsync = !strcmp(how, "dsync") ? O_DSYNC : 0;
    int fd = reopens || is_fresh ? -1 : opened(file, dsync);
    for (int i = 0; i < times; i++) {
        char name[512];
        snprintf(name, sizeof name, is_fresh ? "%s.%d" : "%s", file, i);
        if (reopens || is_fresh) fd = opened(name, 0);
        append(fd);
        if (!dsync) check(fsync(fd) == 0, "fsync");
        if (reopens || is_fresh) check(close(fd) == 0, "close");
        if (is_fresh) check(unlink(name) == 0, "unlink");
    }
    return 0;
}
