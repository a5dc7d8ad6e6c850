/* Files that are written, truncated, punched, mapped and replaced, by processes that are killed all the time, while others
 * verify every block they read: cache_soak DIRECTORY MOUNT LEDGER SECONDS SEED. MOUNT is where DIRECTORY is mounted, or -
 * for writers alone, without Seawall.
 *
 * The ledger is memory of all processes, and of the next run too. Each block of each file has versions: even ones are
 * zeros, odd ones are stamped with the block and the version. A version is begun before the write, and done when the call
 * has returned. What is read must not be older than what was done, or was read by somebody, before the read began, and
 * not newer than what was begun when it had ended. Each file has one writer at a time. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 8192
#define HALF 4096
/* More than a cache of 64 MiB holds. */
#define FILES 6
#define WIDE 1536
#define WHOLE ((off_t)WIDE * BLOCK)
#define HOT 64
#define READERS 6
/* Its writers run without Seawall: the daemon has to see them. */
#define STRANGERS_FILE 4

struct block {
    _Atomic uint32_t begun, done, seen;
};
struct file {
    /* How often the name was given to another file: begun, and done. */
    _Atomic uint32_t replacing, replaced;
    _Atomic uint64_t inode;
    struct block blocks[WIDE];
};
struct ledger {
    _Atomic uint32_t stop, old;
    _Atomic uint64_t reads, skipped, writes, changes, replacements, kills;
    struct file files[FILES];
};

static struct ledger *all;
static const char *directory, *mounted;
static uint32_t seed;

static void die(const char *what, int line) {
    fprintf(stderr, "line %d: %s: %s\n", line, what, strerror(errno));
    _exit(1);
}
#define must(what) ((what) ? (void)0 : die(#what, __LINE__))

/* The mount's process may be killed: then nobody knows what became of the call. */
static void lost(const char *what, int line, int is_mounted) {
    if (!is_mounted || (errno != ENOTCONN && errno != ECONNABORTED && errno != EIO && errno != ENODEV)) die(what, line);
    usleep(20000);
    _exit(0);
}
#define done(what, is_mounted) ((what) ? (void)0 : lost(#what, __LINE__, is_mounted))

static uint32_t rnd(void) { seed ^= seed << 13; seed ^= seed >> 17; return seed ^= seed << 5; }
static uint32_t some_block(void) { return rnd() % 4 ? rnd() % HOT : rnd() % WIDE; }
static int is_mounts(int f) { return mounted && f & 1; }

static void name(char *to, int f, int is_mounted, const char *suffix) {
    must(snprintf(to, 4096, "%s/file-%d%s", is_mounted ? mounted : directory, f, suffix) < 4096);
}

static void stamp(unsigned char *at, int f, uint32_t b, uint32_t version) {
    uint32_t word[2] = {((uint32_t)f << 16 | b) + 1, version};
    for (size_t i = 0; i < BLOCK; i += 8) memcpy(at + i, word, 8);
}

/* The next version of these blocks. */
static void begin(int f, uint32_t from, uint32_t n, int is_zero) {
    for (uint32_t b = from; b < from + n; b++) {
        uint32_t next = all->files[f].blocks[b].begun + 1;
        all->files[f].blocks[b].begun = next + ((next & 1) == (uint32_t)is_zero);
    }
}

static void finish(int f, uint32_t from, uint32_t n) {
    for (uint32_t b = from; b < from + n; b++) all->files[f].blocks[b].done = all->files[f].blocks[b].begun;
}

static int open_to_write(int f) {
    char at[4096];
    struct stat now;
    name(at, f, is_mounts(f), "");
    int fd = open(at, O_RDWR);
    done(fd >= 0 && fstat(fd, &now) == 0, is_mounts(f));
    /* A writer was killed between the two halves of a truncation: what is missing is zeros. */
    if (now.st_size < WHOLE) done(ftruncate(fd, WHOLE) == 0, is_mounts(f));
    return fd;
}

static void write_blocks(int fd, int f, uint32_t from, uint32_t n) {
    static unsigned char data[WIDE * BLOCK];
    begin(f, from, n, 0);
    for (uint32_t i = 0; i < n; i++) stamp(data + i * BLOCK, f, from + i, all->files[f].blocks[from + i].begun);
    for (size_t sent = 0; sent < (size_t)n * BLOCK;) {
        ssize_t now = pwrite(fd, data + sent, (size_t)n * BLOCK - sent, (off_t)from * BLOCK + sent);
        done(now > 0, is_mounts(f));
        sent += now;
    }
    finish(f, from, n);
    all->writes++;
}

static void replace(int f) {
    char fresh[4096], at[4096];
    struct stat now;
    name(at, f, is_mounts(f), "");
    name(fresh, f, is_mounts(f), ".new");
    all->files[f].replacing++;
    int fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC, 0600);
    done(fd >= 0, is_mounts(f));
    write_blocks(fd, f, 0, WIDE);
    done(rename(fresh, at) == 0 && fstat(fd, &now) == 0, is_mounts(f));
    all->files[f].inode = now.st_ino;
    close(fd);
    all->replacements++;
    all->files[f].replaced = all->files[f].replacing;
}

static void zero(int fd, int f) {
    uint32_t n = 1 + rnd() % 8, b = some_block();
    if (b + n > WIDE) n = WIDE - b;
    if (rnd() % 2) {
        begin(f, b, n, 1);
        done(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)b * BLOCK, (off_t)n * BLOCK) == 0, is_mounts(f));
        finish(f, b, n);
    } else {
        b = WIDE - n;
        begin(f, b, n, 1);
        done(ftruncate(fd, (off_t)b * BLOCK) == 0 && ftruncate(fd, WHOLE) == 0, is_mounts(f));
        finish(f, b, n);
    }
    all->changes++;
}

/* With the preload alone a mapping takes its file out of the cache for good: only on the mount. */
static void store(int fd, int f) {
    uint32_t b = some_block();
    unsigned char *at = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)b * BLOCK);
    done(at != MAP_FAILED, 1);
    begin(f, b, 1, 0);
    stamp(at, f, b, all->files[f].blocks[b].begun);
    done(msync(at, BLOCK, MS_SYNC) == 0, 1);
    finish(f, b, 1);
    munmap(at, BLOCK);
    all->changes++;
}

static void writer(int f) {
    if (all->files[f].replacing != all->files[f].replaced) replace(f);
    int fd = open_to_write(f);
    while (!all->stop) {
        uint32_t what = rnd() % 1000;
        if (what < 930) {
            uint32_t b = some_block();
            write_blocks(fd, f, b, b + 1 < WIDE ? 1 + rnd() % 2 : 1);
        } else if (what < 980) {
            zero(fd, f);
        } else if (what < 996) {
            if (is_mounts(f)) store(fd, f);
        } else if (what < 998) {
            close(fd);
            fd = open_to_write(f);
        } else if (rnd() % 8 == 0) {
            close(fd);
            replace(f);
            fd = open_to_write(f);
        }
        if (rnd() % 64 == 0) done(fdatasync(fd) == 0, is_mounts(f));
        usleep(rnd() % 400);
    }
    _exit(0);
}

/* One word of a block, which may show any version from `low` to `most`. */
static int is_right(const uint32_t *word, uint32_t id, uint32_t low, uint32_t most) {
    if (word[0] == 0 && word[1] == 0) return (low & 1 ? low + 1 : low) <= most;
    return word[0] == id && word[1] >= low && word[1] <= most;
}

/* The kernel's own copy in front of the mount shows a write, or a store into a mapping, before anybody else can see it: who
 * reads that is no witness for others. */
static void verify(int f, uint32_t b, const unsigned char *data, uint32_t low, uint32_t most, int is_witness, const char *how) {
    struct block *block = &all->files[f].blocks[b];
    uint32_t oldest = most, word[2], id = ((uint32_t)f << 16 | b) + 1;
    for (size_t i = 0; i < BLOCK; i += 8) {
        memcpy(word, data + i, 8);
        if (!is_right(word, id, low, most)) {
            fprintf(stderr, "file %d block %u, %s, byte %zu: %#x of version %u, not between %u and %u (done %u, seen %u)\n", f, b,
                    how, i, word[0], word[1], low, most, block->done, block->seen);
            all->old++;
            all->stop = 1;
            _exit(1);
        }
        /* Zeros do not say which. */
        if (word[0] == 0) oldest = 0;
        if (word[1] < oldest) oldest = word[1];
    }
    uint32_t seen = block->seen;
    while (is_witness && oldest > seen && !atomic_compare_exchange_weak(&block->seen, &seen, oldest)) {}
    all->reads++;
}

/* Reads one file through one front until its name is another file's. */
static void read_one(int f, int is_mounted) {
    static unsigned char data[4 * BLOCK] __attribute__((aligned(HALF)));
    char at[4096];
    struct stat now;
    struct file *file = &all->files[f];
    /* The kernel's own copy in front of a mount is right only if all that is written comes that way. */
    int is_direct = is_mounted && (!is_mounts(f) || rnd() % 2);
    uint32_t replaced = file->replaced;
    name(at, f, is_mounted, "");
    int fd = open(at, O_RDONLY | (is_direct ? O_DIRECT : 0));
    done(fd >= 0 && fstat(fd, &now) == 0, is_mounted);
    for (int i = 0; i < 500 && !all->stop && now.st_ino == file->inode; i++) {
        uint32_t low[4], most[4], n = rnd() % 8 ? 1 : 4, b = some_block();
        if (b + n > WIDE) n = 1;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t done_now = file->blocks[b + k].done, seen = file->blocks[b + k].seen;
            low[k] = done_now > seen ? done_now : seen;
        }
        ssize_t got = pread(fd, data, n * BLOCK, (off_t)b * BLOCK);
        done(got >= 0, is_mounted);
        for (uint32_t k = 0; k < n; k++) most[k] = file->blocks[b + k].begun;
        if (file->replacing != replaced) break;
        /* Shorter while it is being truncated. */
        all->skipped += n - got / BLOCK;
        for (uint32_t k = 0; k < got / BLOCK; k++)
            verify(f, b + k, data + k * BLOCK, low[k], most[k], !is_mounted || is_direct, is_mounted ? is_direct ? "mounted, direct" : "mounted" : "preloaded");
    }
    close(fd);
}

static void reader(int i) {
    while (!all->stop) {
        read_one(rnd() % FILES, i % 2);
        usleep(rnd() % 200);
    }
    _exit(0);
}

/* Keeps the page cache empty: what is read comes from the block cache or the disk. */
static void dropper(void) {
    char at[4096];
    while (!all->stop) {
        for (int f = 0; f < FILES; f++) {
            name(at, f, 0, "");
            int fd = open(at, O_RDONLY);
            if (fd < 0) continue;
            sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            close(fd);
        }
        usleep(2000);
    }
    _exit(0);
}

static pid_t start(int i, char **words) {
    uint32_t next = rnd() | 1;
    pid_t pid = fork();
    must(pid >= 0);
    if (pid > 0) return pid;
    seed = next;
    if (mounted && i == STRANGERS_FILE) {
        char text[16];
        snprintf(text, sizeof text, "%u", next);
        unsetenv("LD_PRELOAD");
        execl("/proc/self/exe", words[0], words[1], words[2], words[3], "stranger", text, NULL);
        die("execl", __LINE__);
    }
    if (i < FILES) writer(i);
    if (i < FILES + READERS) reader(i);
    dropper();
    _exit(1);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int run(int64_t milliseconds, char **words) {
    pid_t pids[FILES + READERS + 1] = {0};
    int n = mounted ? FILES + READERS + 1 : FILES, failed = 0, status;
    int64_t end = now_ms() + milliseconds;
    while (now_ms() < end && !all->stop) {
        for (int i = 0; i < n; i++)
            if (pids[i] == 0) pids[i] = start(i, words);
        usleep(rnd() % 40000);
        int victim = rnd() % n;
        if (rnd() % 4 == 0) { kill(pids[victim], SIGKILL); all->kills++; }
        for (int i = 0; i < n; i++)
            if (waitpid(pids[i], &status, WNOHANG) == pids[i]) {
                failed |= WIFEXITED(status) && WEXITSTATUS(status) != 0;
                pids[i] = 0;
            }
        if (failed) all->stop = 1;
    }
    all->stop = 1;
    for (int i = 0; i < n; i++)
        if (pids[i] && waitpid(pids[i], &status, 0) == pids[i]) failed |= WIFEXITED(status) && WEXITSTATUS(status) != 0;
    return failed || all->old;
}

int main(int n, char **words) {
    must(n == 6);
    directory = words[1];
    mounted = strcmp(words[2], "-") ? words[2] : NULL;
    seed = atoi(words[5]) | 1;
    int ledger = open(words[3], O_RDWR | O_CREAT, 0600);
    must(ledger >= 0 && ftruncate(ledger, sizeof *all) == 0);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, ledger, 0);
    must(all != MAP_FAILED);
    if (!strcmp(words[4], "stranger")) writer(STRANGERS_FILE);
    all->stop = 0;
    for (int f = 0; f < FILES; f++)
        if (all->files[f].inode == 0) {
            char *front = (char *)mounted;
            mounted = NULL;
            replace(f);
            mounted = front;
        }
    int failed = run((int64_t)(atof(words[4]) * 1000), words);
    fprintf(stderr, "%lu blocks read, %lu not there; %lu writes, %lu other changes, %lu files replaced; %lu kills\n",
            all->reads, all->skipped, all->writes, all->changes, all->replacements, all->kills);
    if (failed) return 1;
    puts("right");
    return 0;
}
