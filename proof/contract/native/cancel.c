/* Threads that are cancelled: pending before a call, blocked in it, at any moment of a loop; with the deferred and the
 * asynchronous type. What was seen is traced through `say`. Part of the native library. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LENGTH 8192

/* What calls work on. */
struct scene {
    int file;          /* 8 KiB, open for reading and writing */
    const char *path;  /* its path */
    const char *fifo;  /* nobody opens the other end */
    int full[2];       /* a pipe without room */
    int empty[2];      /* a pipe without data */
    int quiet[2];      /* sockets without messages */
    int listener;      /* nobody connects */
    char *mapped;      /* a page of the file */
};

struct call {
    const char *name;
    void (*make)(struct scene *);
};

static char page[LENGTH];
#define VECTOR(n) &(struct iovec){page, n}, 1
#define PAYLOAD memset(page, 'c', sizeof page)

static void do_write(struct scene *s) { PAYLOAD; write(s->file, page, 4096); }
static void do_writev(struct scene *s) { PAYLOAD; writev(s->file, VECTOR(4096)); }
static void do_pwrite(struct scene *s) { PAYLOAD; pwrite(s->file, page, 4096, 4096); }
static void do_pwritev(struct scene *s) { PAYLOAD; pwritev(s->file, VECTOR(4096), 4096); }
static void do_pwritev2(struct scene *s) { PAYLOAD; pwritev2(s->file, VECTOR(4096), 4096, RWF_DSYNC); }
static void do_pread(struct scene *s) { char room[4096]; pread(s->file, room, sizeof room, 0); }
static void do_preadv(struct scene *s) { char room[4096]; preadv(s->file, &(struct iovec){room, 4096}, 1, 0); }
static void do_fsync(struct scene *s) { fsync(s->file); }
static void do_fdatasync(struct scene *s) { fdatasync(s->file); }
static void do_msync(struct scene *s) { msync(s->mapped, 4096, MS_SYNC); }
static void do_fallocate(struct scene *s) { fallocate(s->file, 0, 0, 2 * LENGTH); }
static void do_copy(struct scene *s) { loff_t from = 0, to = LENGTH; copy_file_range(s->file, &from, s->file, &to, 4096, 0); }
static void do_open(struct scene *s) { close(open(s->path, O_RDWR)); }
static void do_open_truncate(struct scene *s) { close(open(s->path, O_RDWR | O_TRUNC)); }
static void do_open_sync(struct scene *s) { close(open(s->path, O_RDWR | O_DSYNC)); }
static void do_openat(struct scene *s) { close(openat(AT_FDCWD, s->path, O_RDONLY)); }
static void do_creat(struct scene *s) { close(creat(s->path, 0644)); }
static void do_close(struct scene *s) { close(dup(s->file)); }

static const struct call points[] = {
    {"write", do_write}, {"writev", do_writev}, {"pwrite", do_pwrite}, {"pwritev", do_pwritev},
    {"pwritev2", do_pwritev2}, {"pread", do_pread}, {"preadv", do_preadv}, {"fsync", do_fsync},
    {"fdatasync", do_fdatasync}, {"msync", do_msync}, {"fallocate", do_fallocate}, {"copy_file_range", do_copy},
    {"open", do_open}, {"open O_TRUNC", do_open_truncate}, {"open O_DSYNC", do_open_sync}, {"openat", do_openat},
    {"creat", do_creat}, {"close", do_close},
};

static void do_ftruncate(struct scene *s) { ftruncate(s->file, 6000); }
static void do_truncate(struct scene *s) { truncate(s->path, 7000); }
static void do_flags(struct scene *s) { fcntl(s->file, F_GETFL); }
static void do_lock(struct scene *s) { fcntl(s->file, F_SETLK, &(struct flock){.l_type = F_RDLCK, .l_len = 1}); }
static void do_dup(struct scene *s) { dup2(s->file, 500); }
static void do_chmod(struct scene *s) { fchmod(s->file, 0600); }
static void do_stat(struct scene *s) { struct stat stat_of; stat(s->path, &stat_of); }
static void do_unlink(struct scene *s) { unlink(s->fifo); }
static void do_sync(struct scene *s) { syncfs(s->file); }

static const struct call no_points[] = {
    {"ftruncate", do_ftruncate}, {"truncate", do_truncate}, {"fcntl F_GETFL", do_flags}, {"fcntl F_SETLK", do_lock},
    {"dup2", do_dup}, {"fchmod", do_chmod}, {"stat", do_stat}, {"unlink", do_unlink}, {"syncfs", do_sync},
};

static void wait_write(struct scene *s) { write(s->full[1], page, sizeof page); }
static void wait_writev(struct scene *s) { writev(s->full[1], VECTOR(LENGTH)); }
static void wait_pwritev2(struct scene *s) { pwritev2(s->full[1], VECTOR(LENGTH), -1, 0); }
static void wait_open(struct scene *s) { open(s->fifo, O_RDONLY); }
static void wait_open_write(struct scene *s) { open(s->fifo, O_WRONLY | O_TRUNC); }
static void wait_openat(struct scene *s) { openat(AT_FDCWD, s->fifo, O_WRONLY | O_DSYNC); }
static void wait_creat(struct scene *s) { creat(s->fifo, 0600); }
static void wait_fopen(struct scene *s) { fopen(s->fifo, "r"); }
static void wait_fopen_write(struct scene *s) { fopen(s->fifo, "w"); }
static void wait_lock(struct scene *s) { fcntl(s->file, F_SETLKW, &(struct flock){.l_type = F_WRLCK, .l_len = 1}); }
static void wait_file_lock(struct scene *s) { fcntl(s->file, F_OFD_SETLKW, &(struct flock){.l_type = F_WRLCK, .l_len = 1}); }
static void wait_accept(struct scene *s) { accept(s->listener, NULL, NULL); }
static void wait_accept4(struct scene *s) { accept4(s->listener, NULL, NULL, SOCK_CLOEXEC); }
static void wait_recvmsg(struct scene *s) { recvmsg(s->quiet[0], &(struct msghdr){0}, 0); }
static void wait_recvmmsg(struct scene *s) { struct mmsghdr m = {0}; recvmmsg(s->quiet[0], &m, 1, 0, NULL); }
static void wait_splice(struct scene *s) { splice(s->empty[0], NULL, s->full[1], NULL, 100, 0); }
static void wait_freopen(struct scene *s) { freopen(s->fifo, "r", fopen("/dev/null", "r")); }
static void wait_fclose(struct scene *s) { FILE *stream = fdopen(dup(s->full[1]), "w"); fputc('x', stream); fclose(stream); }

static const struct call blocking[] = {
    {"write", wait_write}, {"writev", wait_writev}, {"pwritev2", wait_pwritev2}, {"open", wait_open},
    {"open O_TRUNC", wait_open_write}, {"openat O_DSYNC", wait_openat}, {"creat", wait_creat}, {"fopen r", wait_fopen},
    {"fopen w", wait_fopen_write}, {"fcntl F_SETLKW", wait_lock}, {"fcntl F_OFD_SETLKW", wait_file_lock},
    {"accept", wait_accept}, {"accept4", wait_accept4}, {"recvmsg", wait_recvmsg}, {"recvmmsg", wait_recvmmsg},
    {"splice", wait_splice}, {"freopen", wait_freopen}, {"fclose", wait_fclose},
};

/* One thread and its end. */
struct trial {
    struct scene *scene;
    void (*make)(struct scene *);
    int type;      /* PTHREAD_CANCEL_… */
    int pending;   /* the request comes before the call */
    int loops;     /* the call is made for ever */
    sem_t ready, go;
    volatile int returned, cleaned;
};

static void clean(void *argument) { ((struct trial *)argument)->cleaned = 1; }

static void *perform(void *argument) {
    struct trial *t = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setcanceltype(t->type, NULL);
    pthread_cleanup_push(clean, t);
    if (t->pending) {
        sem_post(&t->ready);
        while (sem_wait(&t->go)) {}
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    } else {
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        sem_post(&t->ready);
    }
    do {
        t->make(t->scene);
    } while (t->loops);
    t->returned = 1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    return NULL;
}

static const char *ending(struct trial *t, long pause_us) {
    pthread_t thread;
    void *result = NULL;
    sem_init(&t->ready, 0, 0);
    sem_init(&t->go, 0, 0);
    t->returned = t->cleaned = 0;
    if (pthread_create(&thread, NULL, perform, t))
        return "no thread";
    sem_wait(&t->ready);
    if (pause_us)
        usleep(pause_us);
    pthread_cancel(thread);
    sem_post(&t->go);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 5;
    if (pthread_timedjoin_np(thread, &result, &limit))
        return "hangs";
    if (result != PTHREAD_CANCELED)
        return t->returned ? "returned" : "ended";
    return t->cleaned ? "cancelled" : "cancelled, nothing cleaned";
}

typedef void (*say)(const char *);

static void tell(say say, const char *call, const char *type, const char *what) {
    char line[200];
    snprintf(line, sizeof line, "%s, %s: %s", call, type, what);
    say(line);
}

static int set_up(struct scene *s) {
    if (mkfifo(s->fifo, 0600) || pipe(s->full) || pipe(s->empty) || socketpair(AF_UNIX, SOCK_DGRAM, 0, s->quiet))
        return -1;
    fcntl(s->full[1], F_SETFL, O_NONBLOCK);
    while (write(s->full[1], page, sizeof page) > 0) {}
    fcntl(s->full[1], F_SETFL, 0);
    s->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    return bind(s->listener, (void *)&address, sizeof(sa_family_t)) || listen(s->listener, 1);
}

static const struct { int type; const char *name; } types[] = {
    {PTHREAD_CANCEL_DEFERRED, "deferred"}, {PTHREAD_CANCEL_ASYNCHRONOUS, "asynchronous"},
};

/* A request that is pending when the call is made: at a point nothing of it is done, elsewhere all of it. */
void contract_cancel_pending(int file, const char *path, const char *fifo, say say) {
    struct scene scene = {.file = file, .path = path, .fifo = fifo};
    if (set_up(&scene))
        return say("no scene");
    scene.mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    struct trial t = {.scene = &scene, .type = PTHREAD_CANCEL_DEFERRED, .pending = 1};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        t.make = points[i].make;
        tell(say, points[i].name, "pending", ending(&t, 0));
    }
    struct stat left;
    fstat(file, &left);
    char seen[LENGTH] = "";
    pread(file, seen, sizeof seen, 0);
    say(left.st_size == LENGTH && !memchr(seen, 'c', sizeof seen) ? "the file is as it was" : "the file was changed");
    say(lseek(file, 0, SEEK_CUR) ? "its offset was moved" : "its offset is as it was");
    for (size_t i = 0; i < sizeof no_points / sizeof *no_points; i++) {
        t.make = no_points[i].make;
        tell(say, no_points[i].name, "pending", ending(&t, 0));
    }
    munmap(scene.mapped, 4096);
}

/* A request that comes while the call waits. */
void contract_cancel_blocked(int file, const char *path, const char *fifo, say say) {
    struct scene scene = {.file = file, .path = path, .fifo = fifo};
    if (set_up(&scene))
        return say("no scene");
    int told[2];
    pipe(told);
    pid_t holder = fork();
    if (!holder) {
        int own = open(path, O_RDWR);
        fcntl(own, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_len = 1});
        write(told[1], "x", 1);
        sleep(60);
        _exit(0);
    }
    char byte;
    read(told[0], &byte, 1);
    for (size_t type = 0; type < 2; type++)
        for (size_t i = 0; i < sizeof blocking / sizeof *blocking; i++) {
            struct trial t = {.scene = &scene, .make = blocking[i].make, .type = types[type].type};
            tell(say, blocking[i].name, types[type].name, ending(&t, 20000));
        }
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
}

static volatile unsigned turn;

static void loop_write_sync(struct scene *s) {
    char own[4096];
    turn++;
    memset(own, 'A' + turn % 26, sizeof own);
    pwrite(s->file, own, sizeof own, 4096 * (turn % 4));
    fdatasync(s->file);
}
static void loop_append(struct scene *s) {
    int fd = open(s->path, O_WRONLY | O_APPEND);
    write(fd, page, 100);
    fsync(fd);
    close(fd);
}
static void loop_sizes(struct scene *s) {
    ftruncate(s->file, 4 * 4096);
    do_fallocate(s);
    pwritev(s->file, VECTOR(4096), 0);
    msync(s->mapped, 4096, MS_SYNC);
}
static void loop_opens(struct scene *s) {
    close(open(s->path, O_RDWR | O_DSYNC));
    close(open(s->path, O_RDWR | O_CREAT, 0644));
    fchmod(s->file, 0644);
}

static const struct call loops[] = {
    {"writes and syncs", loop_write_sync}, {"appends", loop_append}, {"sizes", loop_sizes}, {"opens", loop_opens},
};

static int is_whole(int file) {
    char seen[4096];
    for (int i = 0; i < 4; i++) {
        ssize_t n = pread(file, seen, sizeof seen, 4096 * i);
        if (n == sizeof seen && memcmp(seen, seen + 1, sizeof seen - 1))
            return 0;
    }
    return 1;
}

/* A write by another thread, at once: what a cancelled one left locked is given up after two seconds. */
static int is_served(int file) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    ssize_t n = pwrite(file, page, 4096, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9;
    return n == 4096 && seconds < 1.5 && fdatasync(file) == 0;
}

/* Requests at any moment: each thread ends, no write is done in part, and the file serves the next at once. */
void contract_cancel_anywhere(int file, const char *path, int rounds, int with_types, say say) {
    struct scene scene = {.file = file, .path = path};
    scene.mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    PAYLOAD;
    ftruncate(file, 0);
    ftruncate(file, 4 * 4096);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        for (int type = 0; type < with_types; type++) {
            int good = 0, whole = 0, served = 0;
            for (int round = 0; round < rounds; round++) {
                struct trial t = {.scene = &scene, .make = loops[i].make, .type = types[type].type, .loops = 1};
                good += !strcmp(ending(&t, 50 + 37 * (round % 29)), "cancelled");
                whole += is_whole(file);
                served += is_served(file);
            }
            char line[200];
            snprintf(line, sizeof line, "cancelled %d, whole %d, served %d of %d", good, whole, served, rounds);
            tell(say, loops[i].name, types[type].name, line);
        }
    munmap(scene.mapped, 4096);
    ftruncate(file, 0);
}
