/* Overwrites the last part of a file in place until the preload publishes through a mapping, checks what it reads, then
 * shortens the file behind the preload's back (a system call of its own) and goes on writing. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 8192, FIRST = 70 << 20, SIZE = FIRST + PAGE * PAGES };

static void must(int so, const char *what) {
    if (!so) {
        perror(what);
        exit(1);
    }
}

static void write_page(int fd, int page, int fill) {
    char bytes[PAGE];
    memset(bytes, fill, PAGE);
    must(pwrite(fd, bytes, PAGE, FIRST + (off_t)page * PAGE) == PAGE, "pwrite");
    must(fdatasync(fd) == 0, "fdatasync");
}

static void check_page(int fd, int page, int fill) {
    char bytes[PAGE], expected[PAGE];
    memset(expected, fill, PAGE);
    must(pread(fd, bytes, PAGE, FIRST + (off_t)page * PAGE) == PAGE, "pread");
    must(memcmp(bytes, expected, PAGE) == 0, "what was read");
}

static int is_mapped(const char *name) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    must(maps != NULL, "maps");
    int found = 0;
    while (fgets(line, sizeof line, maps)) found |= strstr(line, "rw-s") && strstr(line, name);
    fclose(maps);
    return found;
}

static long unseen_ftruncate(int fd, long length) {
    long result = SYS_ftruncate;
#if defined __x86_64__
    __asm__ volatile("syscall" : "+a"(result) : "D"((long)fd), "S"(length) : "rcx", "r11", "memory");
#else
    result = ftruncate(fd, length);
#endif
    return result;
}

int main(int argc, char **argv) {
    must(argc == 2, "one name");
    int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
    must(fd >= 0, "open");
    int fills[PAGES] = {0};
    static char zeros[1 << 20];
    for (off_t at = 0; at < SIZE; at += sizeof zeros) {
        must(pwrite(fd, zeros, sizeof zeros, at) == sizeof zeros, "its zeros");
    }
    must(fsync(fd) == 0, "fsync");
    int rounds = 0;
    /* The daemon must have destaged the file once before it is known to have its blocks. */
    for (; rounds < 100 && !is_mapped(argv[1]); rounds++) {
        for (int i = 0; i < PAGES; i++) write_page(fd, i * 7 % PAGES, fills[i * 7 % PAGES] = (rounds + i) % 256);
        usleep(100000);
    }
    must(is_mapped(argv[1]), "a mapping");
    for (int page = 0; page < PAGES; page++) check_page(fd, page, fills[page]);
    for (int i = 0; i < 1000; i++) write_page(fd, i % PAGES, fills[i % PAGES] = i % 251);
    for (int page = 0; page < PAGES; page++) check_page(fd, page, fills[page]);

    must(unseen_ftruncate(fd, FIRST) == 0, "ftruncate");
    write_page(fd, PAGES - 1, 77);
    check_page(fd, PAGES - 1, 77);
    check_page(fd, PAGES / 2, 0);
    struct stat st;
    must(fstat(fd, &st) == 0 && st.st_size == SIZE, "its size");
    puts("overwritten");
    return 0;
}
