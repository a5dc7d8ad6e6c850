/* What the contract cases cannot express in Rust: a constructor that runs before the shim's own, vfork
 * children, and threads that are cancelled or leave by pthread_exit between two calls.
 * Built as a shared library by the test driver. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((constructor)) static void write_before_everybody(void) {
    const char *path = getenv("CONTRACT_CONSTRUCTOR_FILE");
    if (!path)
        return;
    char page[1000];
    memset(page, 'c', sizeof page);
    int fd = open(path, O_RDWR);
    if (pwrite(fd, page, sizeof page, 1000) != (ssize_t)sizeof page || fsync(fd) != 0)
        _exit(91);
    if (pwrite(fd, page, 10, 5000) != 10 || fdatasync(fd) != 0 || ftruncate(fd, 7000) != 0)
        _exit(92);
    close(fd);
}

static int ended(pid_t child) {
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int contract_vfork_close(int fd) {
    pid_t child = vfork();
    if (child == 0) {
        close(fd);
        _exit(7);
    }
    return ended(child);
}

int contract_vfork_exec(int from, int to, char *const *vector) {
    pid_t child = vfork();
    if (child == 0) {
        dup2(from, to);
        close(from);
        execv(vector[0], vector);
        _exit(93);
    }
    return ended(child);
}

struct work {
    int fd;
    char fill;
    int leave;
};

static void *write_for_ever(void *argument) {
    struct work work = *(struct work *)argument;
    char page[2000];
    memset(page, work.fill, sizeof page);
    for (;;) {
        if (pwrite(work.fd, page, sizeof page, 2048) < 0 || fdatasync(work.fd) < 0)
            return NULL;
        if (work.leave)
            pthread_exit(argument);
    }
}

static void *write_for_ever_at_once(void *argument) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return write_for_ever(argument);
}

/* Returns how many of `rounds` threads ended as they should. how: 0 pthread_exit, 1 cancelled. */
int contract_threads_ending(int fd, int rounds, int how) {
    int good = 0;
    for (int round = 0; round < rounds; round++) {
        struct work work = {fd, 't', how == 0};
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, how == 2 ? write_for_ever_at_once : write_for_ever, &work))
            continue;
        if (how) {
            usleep(200 + 100 * (round % 7));
            pthread_cancel(thread);
        }
        pthread_join(thread, &result);
        good += result == (how ? PTHREAD_CANCELED : (void *)&work);
    }
    return good;
}
