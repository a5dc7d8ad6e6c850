// Carries out calls on files, one a line. steps STAT
//
//   creat PATH MODE        mkdir PATH MODE      tmpfile PATH MODE      symlink PATH TEXT
//   write PATH TEXT        append PATH TEXT     truncate PATH BYTES    fallocate PATH BYTES
//   link PATH TO           rename PATH TO       exchange PATH TO       unlink PATH       rmdir PATH
//   fsync PATH
//
// tmpfile is a file without a name that gets one. Each line is answered by errno, and by how many writes the disk has had
// then, by its STAT in /sys/block; "." by "." and all that was answered before it.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is(const char *op, const char *name) { return strcmp(op, name) == 0; }

static int closed(int fd, int done) {
    int error = errno;
    close(fd);
    errno = error;
    return done;
}

static int put(const char *path, int flags, const char *text) {
    int fd = open(path, O_WRONLY | flags);
    if (fd < 0) return -1;
    ssize_t len = strlen(text);
    return closed(fd, write(fd, text, len) == len ? 0 : -1);
}

static int on_open(const char *op, const char *path, const char *how) {
    int fd = open(path, O_RDWR);
    if (fd < 0 && errno == EISDIR) fd = open(path, O_RDONLY);
    if (fd < 0) return -1;
    if (is(op, "fsync")) return closed(fd, fsync(fd));
    if (is(op, "truncate")) return closed(fd, ftruncate(fd, atol(how)));
    return closed(fd, fallocate(fd, 0, 0, atol(how)));
}

static int made(const char *op, const char *path, mode_t mode) {
    if (is(op, "mkdir")) return mkdir(path, mode);
    if (is(op, "creat")) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, mode);
        return fd < 0 ? -1 : close(fd);
    }
    char directory[512], link[64];
    strcpy(directory, path);
    char *slash = strrchr(directory, '/');
    if (slash) *slash = 0;
    int fd = open(slash ? directory : ".", O_TMPFILE | O_WRONLY, mode);
    if (fd < 0) return -1;
    sprintf(link, "/proc/self/fd/%d", fd);
    return closed(fd, linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW));
}

static int step(const char *op, const char *path, const char *how) {
    if (is(op, "creat") || is(op, "mkdir") || is(op, "tmpfile")) return made(op, path, strtol(how, 0, 8));
    if (is(op, "symlink")) return symlink(how, path);
    if (is(op, "write")) return put(path, 0, how);
    if (is(op, "append")) return put(path, O_APPEND, how);
    if (is(op, "link")) return link(path, how);
    if (is(op, "rename")) return rename(path, how);
    if (is(op, "exchange")) return renameat2(AT_FDCWD, path, AT_FDCWD, how, RENAME_EXCHANGE);
    if (is(op, "unlink")) return unlink(path);
    if (is(op, "rmdir")) return rmdir(path);
    return on_open(op, path, how);
}

int main(int argc, char **argv) {
    char line[1024], op[16], path[512], how[512], text[512];
    int stat = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    umask(0);
    while (fgets(line, sizeof line, stdin)) {
        *path = *how = 0;
        sscanf(line, "%15s %511s %511s", op, path, how);
        if (is(op, ".")) {
            puts(".");
            fflush(stdout);
            continue;
        }
        errno = 0;
        int done = step(op, path, how), error = done < 0 ? errno : 0;
        ssize_t len = stat < 0 ? 0 : pread(stat, text, sizeof text - 1, 0);
        text[len < 0 ? 0 : len] = 0;
        long writes = 0;
        sscanf(text, "%*d %*d %*d %*d %ld", &writes);
        printf("%d %ld\n", error, writes);
    }
    return 0;
}
