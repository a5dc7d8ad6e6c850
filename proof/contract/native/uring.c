/* A program that writes a-wal by asynchronous requests and b-wal by ordinary calls, linked to liburing as
 * databases are. Built and run by the test driver: uring MODE DIRECTORY. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 8, PAGE = 4096 };

static struct io_uring ring;
static char page[PAGE];

static void must(const char *what, int ok) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

/* A file that is tracked: the second sync is absorbed. */
static int make(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT, 0644);
    must(name, fd >= 0);
    memset(page, 'A', PAGE);
    for (int i = 0; i < ROUNDS; i++)
        must("pwrite", pwrite(fd, page, PAGE, i * PAGE) == PAGE);
    must("fsync", fsync(fd) == 0 && pwrite(fd, page, 100, 0) == 100 && fsync(fd) == 0);
    return fd;
}

static void prepare(int fd, int round, int flags) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    memset(page, 'a' + round, PAGE);
    io_uring_prep_write(sqe, fd, page, PAGE, round * PAGE);
    io_uring_sqe_set_flags(sqe, flags);
}

/* The kernel's thread may have taken them before they are counted. */
static void submit(int count) {
    int told = io_uring_submit(&ring);
    must("submit", ring.flags & IORING_SETUP_SQPOLL ? told >= 0 : told == count);
}

static void reap(int wanted) {
    struct io_uring_cqe *cqe;
    must("completion", io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->res == wanted);
    io_uring_cqe_seen(&ring, cqe);
}

static void set_up(int flags) { must("io_uring_queue_init", io_uring_queue_init(4, &ring, flags) == 0); }

static void write_by_ring(int fd, int flags) {
    for (int round = 0; round < ROUNDS; round++) {
        prepare(fd, round, flags);
        submit(1);
        reap(PAGE);
    }
}

static void by_waiting(int fd) {
    struct io_uring_cqe *cqe;
    struct __kernel_timespec limit = {.tv_sec = 10};
    prepare(fd, 0, 0);
    must("submit_and_wait", io_uring_submit_and_wait(&ring, 1) == 1);
    reap(PAGE);
    prepare(fd, 1, 0);
    must("submit_and_wait_timeout", io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &limit, NULL) == 1);
    reap(PAGE);
    prepare(fd, 2, 0);
    must("submit_and_get_events", io_uring_submit_and_get_events(&ring) == 1);
    reap(PAGE);
}

static void by_other_operations(int fd) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    io_uring_prep_fallocate(sqe, fd, FALLOC_FL_ZERO_RANGE, 0, PAGE);
    submit(1);
    reap(0);
    sqe = io_uring_get_sqe(&ring);
    io_uring_prep_fsync(sqe, fd, 0);
    submit(1);
    reap(0);
}

static void linked(int fd) {
    prepare(fd, 0, IOSQE_IO_LINK);
    prepare(fd, 0, 0);
    submit(2);
    reap(PAGE);
    reap(PAGE);
}

/* An io_uring of our own making: nothing goes through liburing. */
static void raw(int fd) {
    struct io_uring_params params = {0};
    must("io_uring_setup", syscall(SYS_io_uring_setup, 4, &params) >= 0);
    must("pwrite", pwrite(fd, page, PAGE, 0) == PAGE);
}

static void by_kernel_aio(int fd) {
    aio_context_t context = 0;
    must("io_setup", syscall(SYS_io_setup, 4, &context) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        memset(page, 'a' + round, PAGE);
        struct iocb block = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = fd, .aio_buf = (__u64)page,
                             .aio_nbytes = PAGE, .aio_offset = round * PAGE};
        struct iocb *blocks[] = {&block};
        struct io_event event;
        must("io_submit", syscall(SYS_io_submit, context, 1, blocks) == 1);
        must("io_getevents", syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1 && event.res == PAGE);
    }
}

/* Written by io_uring under a name that is nobody's, then renamed to one that is managed. */
static int renamed(void) {
    int fd = open("c-shm", O_RDWR | O_CREAT, 0644);
    must("c-shm", fd >= 0);
    write_by_ring(fd, 0);
    must("rename", rename("c-shm", "c-wal") == 0 && close(fd) == 0);
    return make("c-wal");
}

static void act(const char *mode, int a) {
    int is_raw = !strcmp(mode, "raw"), is_aio = !strcmp(mode, "aio");
    if (!is_raw && !is_aio)
        set_up(strcmp(mode, "sqpoll") ? 0 : IORING_SETUP_SQPOLL);
    if (is_raw)
        raw(a);
    else if (is_aio)
        by_kernel_aio(a);
    else if (!strcmp(mode, "wait"))
        by_waiting(a);
    else if (!strcmp(mode, "operations"))
        by_other_operations(a);
    else if (!strcmp(mode, "linked"))
        linked(a);
    else if (!strcmp(mode, "worker"))
        write_by_ring(a, IOSQE_ASYNC);
    else if (!strcmp(mode, "registered")) {
        must("register", io_uring_register_files(&ring, &a, 1) == 0);
        write_by_ring(0, IOSQE_FIXED_FILE);
    } else if (!strcmp(mode, "dsync"))
        write_by_ring(open("a-wal", O_RDWR | O_DSYNC), 0);
    else if (!strcmp(mode, "renamed"))
        renamed();
    else
        write_by_ring(a, 0);
}

int main(int count, char **words) {
    must("usage: uring MODE DIRECTORY", count == 3 && chdir(words[2]) == 0);
    int a = make("a-wal"), b = make("b-wal"), here = open(".", O_RDONLY);
    must("directory", fsync(here) == 0);
    puts("ready");
    fflush(stdout);
    char line[8];
    must("a line", read(0, line, sizeof line) > 0);
    act(words[1], a);
    /* What O_DSYNC promises needs no sync. */
    must("fdatasync", !strcmp(words[1], "dsync") || fdatasync(a) == 0);
    for (int round = 0; round < ROUNDS; round++)
        must("b", pwrite(b, page, 700, round * 3000) == 700 && fdatasync(b) == 0);
    puts("done");
    fflush(stdout);
    sleep(300);
    return 1;
}
