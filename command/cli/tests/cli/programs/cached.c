/* Reads through the block cache, and every way to change a file beside it: cached SCENE DIRECTORY.
 *
 * What the file really holds is read by the program's own instructions, which nothing interposes; what libc's pread
 * says must be the same. That a block is in the cache shows by the page cache, which a hit leaves alone, and which gives
 * up what enters.
 *
 * READ_AT and CHANGE_AT are where the directory is mounted, if its files are to be read or changed there: what they hold
 * is seen in DIRECTORY all the same. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 8192
#define BLOCKS 16
#define HALF 4096
/* It ends so when a file is not served: somebody of its cell is writing, or did at times that nobody saw. */
#define NOT_CACHED 3

#define must(what) ((what) ? (void)0 : die(#what, __LINE__))
static void die(const char *what, int line) {
    fprintf(stderr, "line %d: %s: %s\n", line, what, strerror(errno));
    _exit(1);
}

static char path[4096], other[4096];
/* The directory, as it truly is, as it is read, and as it is changed. */
static const char *true_at, *read_at, *change_at;

/* A file that is read, and the same file where it truly lies. */
struct file {
    int fd, truth;
};

static struct file self(int fd) { return (struct file){fd, fd}; }
static int is_mounted(const char *directory) { return directory != true_at; }

/* The kernel's pread, by instruction. */
static long raw(long nr, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}

static void fill(unsigned char *block, int byte) { memset(block, byte, BLOCK); }

static int make(const char *at, int blocks) {
    static unsigned char block[BLOCK];
    int fd = open(at, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0);
    for (int i = 0; i < blocks; i++) {
        fill(block, 1 + i);
        must(pwrite(fd, block, BLOCK, (off_t)i * BLOCK) == BLOCK);
    }
    return fd;
}

/* Out of the page cache. */
static void drop(int fd) {
    must(sync_file_range(fd, 0, 0, 7) == 0);
    must(syscall(SYS_fdatasync, fd) == 0);
    must(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
}

static int in_memory(int fd, int block) {
    void *at = mmap(NULL, BLOCK, PROT_READ, MAP_PRIVATE, fd, (off_t)block * BLOCK);
    unsigned char pages[BLOCK / HALF];
    must(at != MAP_FAILED && mincore(at, BLOCK, pages) == 0);
    munmap(at, BLOCK);
    return (pages[0] | pages[1]) & 1;
}

/* The kernel's own copy of a mounted file is not what is looked at here, its sizes included. */
static void look_behind_it(int fd) {
    struct statx now;
    if (is_mounted(read_at)) must(statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &now) == 0);
}

static int open_to_read(const char *at) { return open(at, O_RDWR | (is_mounted(read_at) ? O_DIRECT : 0)); }

/* Reads a block; true if it came from the cache, or is there now. */
static int is_hit(struct file file, int block) {
    static unsigned char buffer[BLOCK] __attribute__((aligned(HALF)));
    drop(file.truth);
    must(!in_memory(file.truth, block));
    must(pread(file.fd, buffer, BLOCK, (off_t)block * BLOCK) == BLOCK);
    return !in_memory(file.truth, block);
}

/* Every block of the file comes from the cache. */
static void prime(struct file file) {
    for (int i = 0; i < BLOCKS; i++)
        for (int tries = 0; !is_hit(file, i); tries++) if (tries == 50) { fprintf(stderr, "%s: block %d is never in the cache\n", path, i); _exit(NOT_CACHED); }
}

/* libc's pread says what the kernel's does, twice, in and out of the page cache; of a whole file and more. */
static void agree(struct file file, const char *after) {
    static unsigned char ours[BLOCK] __attribute__((aligned(HALF))), kernels[BLOCK];
    for (int round = 0; round < 4; round++) {
        if (round & 1) drop(file.truth);
        for (int i = 0; i < BLOCKS + 4; i++) {
            memset(ours, 0xee, BLOCK);
            memset(kernels, 0xee, BLOCK);
            long found, expected = raw(SYS_pread64, file.truth, (long)kernels, BLOCK, (off_t)i * BLOCK);
            /* The kernel drops the answer to a stat of a mounted file if that to another one comes in between. */
            int tries = is_mounted(read_at) ? 20 : 1;
            do {
                look_behind_it(file.fd);
                found = pread(file.fd, ours, BLOCK, (off_t)i * BLOCK);
            } while (found != expected && --tries > 0);
            if (found != expected || (found > 0 && memcmp(ours, kernels, found))) {
                fprintf(stderr, "after %s: block %d has %ld bytes, %ld expected; %d, %d expected\n", after, i, found,
                        expected, ours[0], kernels[0]);
                _exit(1);
            }
        }
    }
}

static void hits(void) {
    static unsigned char block[BLOCK], all[4 * BLOCK];
    int fd = make(path, BLOCKS);
    prime(self(fd));
    agree(self(fd), "nothing");
    /* What enters leaves the page cache, where it would be once more. */
    fill(block, 50);
    must(pwrite(fd, block, BLOCK, 9 * BLOCK) == BLOCK);
    drop(fd);
    for (int i = 0; i < 2; i++) must(pread(fd, block, BLOCK, 9 * BLOCK) == BLOCK && block[0] == 50 && !in_memory(fd, 9));
    fill(block, 10);
    must(pwrite(fd, block, BLOCK, 9 * BLOCK) == BLOCK);
    /* A hit is a hit: who stores by instruction is not seen, and the old block comes back. */
    prime(self(fd));
    fill(block, 99);
    must(raw(SYS_pwrite64, fd, (long)block, BLOCK, 3 * BLOCK) == BLOCK);
    must(pread(fd, block, BLOCK, 3 * BLOCK) == BLOCK && block[0] == 4);
    /* Several blocks at once, in several pieces. */
    must(pread(fd, all, sizeof all, 2 * BLOCK) == sizeof all && all[0] == 3 && all[BLOCK] == 4 && all[3 * BLOCK] == 6);
    struct iovec pieces[] = {{all, BLOCK}, {all + 2 * BLOCK, 2 * BLOCK}};
    must(preadv(fd, pieces, 2, 2 * BLOCK) == 3 * BLOCK && all[0] == 3 && all[2 * BLOCK] == 4 && all[3 * BLOCK] == 5);
    /* Errors are the kernel's. */
    int blind = open(path, O_WRONLY);
    must(pread(blind, all, BLOCK, 0) == -1 && errno == EBADF);
    void *volatile nowhere = (void *)64;
    must(pread(fd, nowhere, BLOCK, 0) == -1 && errno == EFAULT);
    char *constant = mmap(NULL, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(pread(fd, constant, BLOCK, 0) == -1 && errno == EFAULT);
    must(pread(fd, all, BLOCK, -BLOCK) == -1 && errno == EINVAL);
    must(pread(fd, all, BLOCK, 99 * BLOCK) == 0);
    must(close(fd) == 0 && pread(fd, all, BLOCK, 0) == -1 && errno == EBADF);
    int direct = open(path, O_RDONLY | O_DIRECT);
    if (direct >= 0) {
        char *room = aligned_alloc(HALF, 2 * BLOCK);
        long kernels = raw(SYS_pread64, direct, (long)(room + 1), BLOCK, 0);
        must(pread(direct, room + 1, BLOCK, 0) == (kernels < 0 ? -1 : kernels));
        must(pread(direct, room, BLOCK, 0) == BLOCK && room[0] == 1);
    }
}

/* Ways to change the file; each gets a descriptor that was opened before or after the file was entered. */
static void by_pwrite(int fd) { char b[100]; memset(b, 71, 100); must(pwrite(fd, b, 100, 3 * BLOCK + 17) == 100); }
static void by_pwritev(int fd) {
    static char b[2 * BLOCK];
    memset(b, 72, sizeof b);
    struct iovec v[] = {{b, BLOCK}, {b, 30}};
    must(pwritev(fd, v, 2, BLOCK - 15) == BLOCK + 30);
}
static void by_pwritev2(int fd) { char b[9]; memset(b, 73, 9); struct iovec v = {b, 9}; must(pwritev2(fd, &v, 1, 7 * BLOCK - 4, RWF_DSYNC) == 9); }
static void by_write(int fd) { char b[BLOCK]; memset(b, 74, BLOCK); must(lseek(fd, 5 * BLOCK, SEEK_SET) > 0 && write(fd, b, BLOCK) == BLOCK); }
static void by_writev(int fd) { char b[9]; memset(b, 75, 9); struct iovec v = {b, 9}; must(lseek(fd, 6 * BLOCK, SEEK_SET) > 0 && writev(fd, &v, 1) == 9); }
static void by_long_write(int fd) { size_t n = 4 << 20; char *b = malloc(n); memset(b, 76, n); must(pwrite(fd, b, n, 0) == (ssize_t)n); must(ftruncate(fd, BLOCKS * BLOCK) == 0); }
static void by_truncate_and_extend(int fd) { must(ftruncate(fd, 100) == 0 && ftruncate(fd, BLOCKS * BLOCK) == 0); }
static void by_truncate_of_path(int fd) { (void)fd; must(truncate(path, BLOCK + 5) == 0 && truncate(path, 9 * BLOCK) == 0); }
static void by_open(int fd) { (void)fd; int again = open(path, O_RDWR | O_TRUNC); must(again >= 0); must(ftruncate(again, 5 * BLOCK) == 0); }
static void by_open_for_reading(int fd) { (void)fd; must(open(path, O_RDONLY | O_TRUNC) >= 0); }
static void by_punch(int fd) { must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BLOCK, 3 * BLOCK) == 0); }
static void by_zeroes(int fd) { must(fallocate(fd, FALLOC_FL_ZERO_RANGE, 2 * BLOCK + 7, BLOCK) == 0); }
static void by_allocation(int fd) { must(fallocate(fd, 0, 0, (BLOCKS + 2) * BLOCK) == 0); }
static void by_posix_allocation(int fd) { must(posix_fallocate(fd, 0, (BLOCKS + 3) * BLOCK) == 0); }
static void by_append(int fd) {
    (void)fd;
    int end = open(path, O_WRONLY | O_APPEND);
    char b[BLOCK + 9];
    memset(b, 77, sizeof b);
    must(end >= 0 && write(end, b, 50) == 50 && write(end, b, sizeof b) == sizeof b && pwrite(end, b, BLOCK, 0) == BLOCK);
}
static int source(void) { int fd = make(other, BLOCKS); static char b[BLOCK]; memset(b, 78, BLOCK); must(pwrite(fd, b, BLOCK, 0) == BLOCK); return fd; }
static void by_sendfile(int fd) { must(lseek(fd, 2 * BLOCK, SEEK_SET) > 0); off_t at = 0; must(sendfile(fd, source(), &at, BLOCK) == BLOCK); }
static void by_copy(int fd) { off_t from = 0, to = 4 * BLOCK; must(copy_file_range(source(), &from, fd, &to, BLOCK, 0) == BLOCK); }
static void by_splice(int fd) { int p[2]; char b[HALF]; memset(b, 79, HALF); off_t to = 3 * BLOCK; must(pipe(p) == 0 && write(p[1], b, HALF) == HALF && splice(p[0], NULL, fd, &to, HALF, 0) == HALF); }
static void by_stream(int fd) { (void)fd; FILE *f = fopen(path, "r+"); must(f && fseek(f, 2 * BLOCK, SEEK_SET) == 0 && fputs("hello", f) > 0 && fclose(f) == 0); }
static void by_new_stream(int fd) { (void)fd; FILE *f = fopen(path, "w"); must(f && fputs("hello", f) > 0 && fclose(f) == 0); }
static void by_stream_of_descriptor(int fd) { FILE *f = fdopen(dup(fd), "r+"); must(f && fseek(f, 4 * BLOCK, SEEK_SET) == 0 && fputs("hello", f) > 0 && fclose(f) == 0); }
static void by_dprintf(int fd) { must(lseek(fd, 6 * BLOCK, SEEK_SET) > 0 && dprintf(fd, "%d", 12345) == 5); }
static void by_syscall(int fd) { char b[9]; memset(b, 80, 9); must(syscall(SYS_pwrite64, fd, b, 9, 8 * BLOCK) == 9); }
/* Until then the mount's users alone see what is stored into a mapping. */
static void written_back(char *at) { if (is_mounted(change_at)) must(msync(at, 2 * BLOCK, MS_SYNC) == 0); }
static void by_mapping(int fd) { char *at = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); must(at != MAP_FAILED); at[BLOCK] = 81; written_back(at); must(munmap(at, BLOCKS * BLOCK) == 0); }
static void by_late_mapping(int fd) { char *at = mmap(NULL, BLOCKS * BLOCK, PROT_READ, MAP_SHARED, fd, 0); must(at != MAP_FAILED && mprotect(at, BLOCK, PROT_READ | PROT_WRITE) == 0); at[9] = 82; written_back(at); }
static void by_aio(int fd) {
    static char b[BLOCK];
    memset(b, 83, BLOCK);
    struct aiocb block = {.aio_fildes = fd, .aio_buf = b, .aio_nbytes = BLOCK, .aio_offset = 9 * BLOCK};
    const struct aiocb *all[] = {&block};
    must(aio_write(&block) == 0);
    while (aio_error(&block) == EINPROGRESS) aio_suspend(all, 1, NULL);
    must(aio_return(&block) == BLOCK);
}
static void by_duplicate(int fd) { by_pwrite(dup(fd)); }
static void by_grandchild(int fd) { pid_t pid = fork(); if (pid == 0) { by_pwrite(fd); _exit(0); } int status; must(waitpid(pid, &status, 0) == pid && status == 0); }
static void by_rename(int fd) { (void)fd; source(); must(rename(other, path) == 0); }
static void by_new_file(int fd) { (void)fd; must(unlink(path) == 0); fd = make(path, 1); must(ftruncate(fd, 7 * BLOCK) == 0); }

static const struct { const char *name; void (*change)(int); } WAYS[] = {
    {"pwrite", by_pwrite}, {"pwritev", by_pwritev}, {"pwritev2", by_pwritev2}, {"write", by_write},
    {"writev", by_writev}, {"a long pwrite", by_long_write}, {"ftruncate", by_truncate_and_extend},
    {"truncate", by_truncate_of_path}, {"O_TRUNC", by_open}, {"O_RDONLY|O_TRUNC", by_open_for_reading},
    {"a hole", by_punch}, {"zeroes", by_zeroes}, {"fallocate", by_allocation}, {"posix_fallocate", by_posix_allocation},
    {"O_APPEND", by_append}, {"sendfile", by_sendfile}, {"copy_file_range", by_copy}, {"splice", by_splice},
    {"a stream", by_stream}, {"a new stream", by_new_stream}, {"fdopen", by_stream_of_descriptor},
    {"dprintf", by_dprintf}, {"syscall", by_syscall}, {"a mapping", by_mapping}, {"mprotect", by_late_mapping},
    {"aio_write", by_aio}, {"dup", by_duplicate}, {"a grandchild", by_grandchild}, {"rename over", by_rename},
    {"unlink and create", by_new_file},
};

static void name(const char *directory, const char *which, int i, int when, int number) {
    snprintf(path, sizeof path, "%s/data-%s-%d-%d-%d", directory, which, when, i, number);
    snprintf(other, sizeof other, "%s/other-%s-%d-%d-%d", directory, which, when, i, number);
}

/* What is at `path` now. A mount may show for a moment what was there before somebody changed it behind the mount. */
static struct file reopened(const char *truth) {
    struct file now = {-1, open(truth, O_RDWR)};
    struct stat is, shown;
    must(now.truth >= 0 && fstat(now.truth, &is) == 0);
    do {
        close(now.fd);
        now.fd = open_to_read(path);
        must(now.fd >= 0 && fstat(now.fd, &shown) == 0);
    } while (is.st_ino != shown.st_ino && sched_yield() == 0);
    return now;
}

/* A child does `change`: with a descriptor it has had since before the file was entered, with one that it inherited
 * after that, or with a new one. */
static void way(const char *which, int i, int when, int number) {
    int go[2], ready[2], status;
    char c, truth[sizeof path];
    name(true_at, which, i, when, number);
    strcpy(truth, path);
    struct file file = self(make(path, BLOCKS));
    name(read_at, which, i, when, number);
    if (is_mounted(read_at)) file.fd = open_to_read(path);
    must(file.fd >= 0 && pipe(go) == 0 && pipe(ready) == 0);
    int theirs = file.fd;
    name(change_at, which, i, when, number);
    if (is_mounted(read_at) || is_mounted(change_at)) theirs = open(path, O_RDWR);
    must(theirs >= 0);
    if (when > 0) prime(file);
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        int mine = when == 1 ? theirs : open(path, O_RDWR);
        must(mine >= 0);
        if (when == 0) {
            /* Used already, so that it remembers a file that is not entered. */
            char byte = 1;
            must(pwrite(mine, &byte, 1, 0) == 1);
        }
        must(write(ready[1], "r", 1) == 1 && read(go[0], &c, 1) == 1);
        WAYS[i].change(mine);
        _exit(0);
    }
    name(read_at, which, i, when, number);
    must(read(ready[0], &c, 1) == 1);
    prime(file);
    must(write(go[1], "g", 1) == 1 && waitpid(pid, &status, 0) == pid);
    if (status != 0) _exit(1);
    agree(file, WAYS[i].name);
    struct file now = reopened(truth);
    agree(now, WAYS[i].name);
    close(now.fd);
    close(now.truth);
    close(file.fd);
    close(go[0]);
    close(go[1]);
    close(ready[0]);
    close(ready[1]);
    /* The files stay: an inode that is used again is out of the cache if it was written unseen before. */
}

/* In a process of its own, and with another file if the first is not served. */
static int attempt(const char *which, int i, int when, int number) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        way(which, i, when, number);
        _exit(0);
    }
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void ways(void) {
    const char *which = is_mounted(read_at) ? is_mounted(change_at) ? "both" : "read" : "changed";
    for (int when = 0; when < 3; when++)
        for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
            int said = NOT_CACHED;
            for (int number = 0; number < 5 && said == NOT_CACHED; number++) said = attempt(which, i, when, number);
            if (said != 0) {
                fprintf(stderr, "%s, %d: %d\n", WAYS[i].name, when, said);
                _exit(1);
            }
        }
}

/* Waits until a child is in this system call. */
static void wait_for(pid_t pid, long nr) {
    char name[64], said[256];
    snprintf(name, sizeof name, "/proc/%d/syscall", pid);
    for (long now = -1; now != nr;) {
        int fd = open(name, O_RDONLY);
        must(fd >= 0);
        ssize_t n = read(fd, said, sizeof said - 1);
        close(fd);
        said[n > 0 ? n : 0] = 0;
        now = said[0] >= '0' && said[0] <= '9' ? atol(said) : -1;
        sched_yield();
    }
}

/* A write that has begun and takes its time: its file is not entered before it has ended. */
static void slow(void) {
    int fd = make(path, BLOCKS), p[2], status;
    char half[HALF];
    must(pipe(p) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(p[1]);
        int mine = open(path, O_RDWR);
        off_t to = 3 * BLOCK;
        must(splice(p[0], NULL, mine, &to, HALF, 0) == HALF);
        _exit(0);
    }
    wait_for(pid, SYS_splice);
    for (int i = 0; i < 4; i++) must(!is_hit(self(fd), 3));
    memset(half, 99, HALF);
    must(write(p[1], half, HALF) == HALF && waitpid(pid, &status, 0) == pid && status == 0);
    agree(self(fd), "a slow write");
    int again = open(path, O_RDWR);
    prime(self(again));
    agree(self(again), "a slow write, entered");

    /* One that dies in the middle leaves its file out; one that began when its file was entered does not. */
    pid = fork();
    if (pid == 0) {
        close(p[1]);
        int mine = open(path, O_RDWR);
        off_t to = 3 * BLOCK;
        splice(p[0], NULL, mine, &to, HALF, 0);
        _exit(0);
    }
    wait_for(pid, SYS_splice);
    must(!is_hit(self(again), 3));
    must(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    agree(self(again), "a write that was killed");
}

/* Processes that write and read one file and are killed all the time. Each half of a block says which write it is of:
 * what is read must be of no older write than had ended, or had been read, before. */
#define WIDE 48
#define WRITERS 3
#define READERS 3
struct shared {
    _Atomic uint32_t begun[WIDE], done[WIDE], seen[WIDE][2];
    _Atomic uint32_t reads, old, writes, stop;
};
static struct shared *all;

static uint32_t rnd(uint32_t *s) { *s ^= *s << 13; *s ^= *s >> 17; return *s ^= *s << 5; }

static void stamp(unsigned char *block, uint32_t number, uint32_t version) {
    for (size_t i = 0; i < BLOCK / 8; i++) {
        memcpy(block + i * 8, &number, 4);
        memcpy(block + i * 8 + 4, &version, 4);
    }
}

static int in(const char *directory, int how) {
    char at[2 * sizeof path];
    snprintf(at, sizeof at, "%s/%s", directory, path);
    int fd = open(at, how, 0600);
    must(fd >= 0);
    return fd;
}

static void writer(int me, uint32_t seed) {
    static unsigned char block[BLOCK];
    int fd = in(change_at, O_RDWR);
    while (!all->stop) {
        uint32_t b = rnd(&seed) % (WIDE / WRITERS) * WRITERS + me;
        uint32_t version = all->begun[b] + 1;
        all->begun[b] = version;
        stamp(block, b, version);
        must(pwrite(fd, block, BLOCK, (off_t)b * BLOCK) == BLOCK);
        all->done[b] = version;
        all->writes++;
        if (rnd(&seed) % 64 == 0) must(fdatasync(fd) == 0);
        if (rnd(&seed) % 256 == 0) { close(fd); fd = in(change_at, O_RDWR); }
        usleep(rnd(&seed) % 300);
    }
    _exit(0);
}

static void reader(uint32_t seed) {
    static unsigned char block[BLOCK] __attribute__((aligned(HALF)));
    int fd = in(read_at, O_RDONLY | (is_mounted(read_at) ? O_DIRECT : 0));
    while (!all->stop) {
        uint32_t b = rnd(&seed) % 4 ? rnd(&seed) % 12 : rnd(&seed) % WIDE;
        uint32_t least[2] = {all->seen[b][0], all->seen[b][1]}, done = all->done[b];
        must(pread(fd, block, BLOCK, (off_t)b * BLOCK) == BLOCK);
        uint32_t most = all->begun[b];
        all->reads++;
        for (int half = 0; half < 2; half++) {
            /* A write is seen word by word. */
            uint32_t low = done > least[half] ? done : least[half], oldest = most;
            for (size_t i = 0; i < HALF / 8; i++) {
                uint32_t found[2];
                memcpy(found, block + half * HALF + i * 8, 8);
                must(found[0] == b);
                if (found[1] < low || found[1] > most) {
                    fprintf(stderr, "block %u half %d is of write %u, not between %u and %u (done %u, seen %u)\n", b,
                            half, found[1], low, most, done, least[half]);
                    all->old++;
                    all->stop = 1;
                    _exit(1);
                }
                if (found[1] < oldest) oldest = found[1];
            }
            uint32_t seen = all->seen[b][half];
            while (oldest > seen && !atomic_compare_exchange_weak(&all->seen[b][half], &seen, oldest)) {}
        }
    }
    _exit(0);
}

static void dropper(void) {
    int fd = in(true_at, O_RDWR);
    while (!all->stop) {
        must(sync_file_range(fd, 0, 0, 7) == 0);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        usleep(500);
    }
    _exit(0);
}

/* A file of its own for each round: entered while it is written. */
static void killed(int rounds, int milliseconds) {
    static unsigned char block[BLOCK];
    uint32_t seed = 12345, reads = 0, writes = 0;
    int kills = 0, failed = 0;
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(all != MAP_FAILED);
    for (int round = 0; round < rounds && !failed; round++) {
        snprintf(path, sizeof path, "round-%d%d-%d", is_mounted(read_at), is_mounted(change_at), round);
        memset(all, 0, sizeof *all);
        int fd = in(true_at, O_RDWR | O_CREAT | O_TRUNC);
        for (uint32_t b = 0; b < WIDE; b++) {
            stamp(block, b, 0);
            must(pwrite(fd, block, BLOCK, (off_t)b * BLOCK) == BLOCK);
        }
        pid_t pids[WRITERS + READERS + 1] = {0};
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + milliseconds;
        for (;;) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (now.tv_sec * 1000 + now.tv_nsec / 1000000 >= end || all->stop) break;
            for (int i = 0; i <= WRITERS + READERS; i++) {
                if (pids[i]) continue;
                uint32_t s = rnd(&seed) | 1;
                if ((pids[i] = fork()) == 0) {
                    if (i < WRITERS) writer(i, s);
                    if (i < WRITERS + READERS) reader(s);
                    dropper();
                }
            }
            usleep(rnd(&seed) % 20000);
            int victim = rnd(&seed) % (WRITERS + READERS), status;
            kill(pids[victim], SIGKILL);
            must(waitpid(pids[victim], &status, 0) == pids[victim]);
            if (WIFEXITED(status) && WEXITSTATUS(status) != 0) all->stop = 2;
            pids[victim] = 0;
            kills++;
        }
        failed = all->stop != 0;
        all->stop = 1;
        for (int i = 0; i <= WRITERS + READERS; i++) {
            int status;
            if (pids[i] && waitpid(pids[i], &status, 0) == pids[i]) failed |= status != 0;
        }
        reads += all->reads;
        writes += all->writes;
        close(fd);
    }
    fprintf(stderr, "%u reads, %u writes, %d kills\n", reads, writes, kills);
    must(!failed && reads > 100 && writes > 100 && kills > 10);
}

/* Reads 8 MiB past the page cache, in blocks, once for each word: up, or down. */
static void stream(int n, char **orders) {
    enum { ALL = 1024 };
    int fd = make(path, ALL);
    drop(fd);
    must(close(fd) == 0 && (fd = open(path, O_RDONLY | O_DIRECT)) >= 0);
    unsigned char *room = aligned_alloc(HALF, BLOCK);
    for (int round = 0; round < n; round++)
        for (int i = 0; i < ALL; i++) {
            int block = strcmp(orders[round], "down") ? i : ALL - 1 - i;
            must(pread(fd, room, BLOCK, (off_t)block * BLOCK) == BLOCK && room[BLOCK - 1] == (unsigned char)(1 + block));
        }
}

/* Of a cache on a disk: it is read into whatever memory, by a descriptor that stays, and the page cache comes first. */
static void disk(void) {
    char *room = aligned_alloc(HALF, 2 * BLOCK);
    int fd = make(path, BLOCKS), status;
    prime(self(fd));
    for (int skew = 0; skew < BLOCK; skew += 1000) {
        drop(fd);
        must(pread(fd, room + skew, BLOCK, 5 * BLOCK) == BLOCK && room[skew] == 6 && room[skew + BLOCK - 1] == 6);
        must(!in_memory(fd, 5));
    }
    drop(fd);
    static char all[5 * BLOCK];
    must(pread(fd, all, sizeof all, BLOCK) == sizeof all && all[0] == 2 && all[BLOCK] == 3 && all[5 * BLOCK - 1] == 6);
    must(!in_memory(fd, 1) && !in_memory(fd, 5));
    /* Whatever is closed, or put onto its number. */
    for (int number = 3; number < 1100; number++) if (number != fd) close(number);
    must(is_hit(self(fd), 6));
    for (int number = 990; number < 1024; number++) must(dup2(fd, number) == number);
    must(is_hit(self(fd), 7));
    must(syscall(SYS_close_range, fd + 1, ~0U, 0) == 0);
    must(is_hit(self(fd), 8));
    pid_t pid = fork();
    if (pid == 0) _exit(!is_hit(self(fd), 9));
    must(waitpid(pid, &status, 0) == pid && status == 0);
    /* What is in memory is read from there: this the cache does not know. */
    static unsigned char block[BLOCK];
    fill(block, 99);
    must(raw(SYS_pwrite64, fd, (long)block, BLOCK, 3 * BLOCK) == BLOCK);
    fill(block, 0);
    must(pread(fd, block, BLOCK, 3 * BLOCK) == BLOCK && block[0] == 99);
}

int main(int n, char **words) {
    must(n >= 3);
    true_at = words[2];
    read_at = getenv("READ_AT") ? getenv("READ_AT") : true_at;
    change_at = getenv("CHANGE_AT") ? getenv("CHANGE_AT") : true_at;
    if (is_mounted(read_at) && is_mounted(change_at)) change_at = read_at;
    snprintf(path, sizeof path, "%s/data", words[2]);
    snprintf(other, sizeof other, "%s/other", words[2]);
    if (!strcmp(words[1], "hits")) hits();
    else if (!strcmp(words[1], "ways")) ways();
    else if (!strcmp(words[1], "disk")) disk();
    else if (!strcmp(words[1], "slow")) slow();
    else if (!strcmp(words[1], "way")) way("one", atoi(words[3]), atoi(words[4]), 0);
    else if (!strcmp(words[1], "killed")) killed(atoi(words[3]), atoi(words[4]));
    else if (!strcmp(words[1], "stream")) stream(n - 3, words + 3);
    else return 2;
    puts("right");
    return 0;
}
