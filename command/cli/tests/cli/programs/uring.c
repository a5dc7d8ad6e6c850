/* Asks for asynchronous requests in every way there is, then writes its file; one line for each answer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void by_library(const char *name, int first, void *second)
{
    int (*call)(int, void *, int) = (int (*)(int, void *, int))dlsym(RTLD_DEFAULT, name);
    printf("%s %d\n", name, call ? -call(first, second, 0) : 0);
}

static void by_number(const char *name, long number, void *second)
{
    printf("%s %d\n", name, syscall(number, 4, second) < 0 ? errno : 0);
}

int main(void)
{
    static char memory[4096];
    void *context = NULL;
    char page[4096] = "page";
    int fd = open("ibdata1", O_WRONLY | O_CREAT, 0644);
    by_library("io_setup", 4, &context);
    context = NULL;
    by_library("io_queue_init", 4, &context);
    by_library("io_uring_queue_init", 4, memory);
    context = NULL;
    by_number("SYS_io_setup", SYS_io_setup, &context);
    memset(memory, 0, sizeof memory);
    by_number("SYS_io_uring_setup", SYS_io_uring_setup, memory);
    fflush(stdout);
    if (pwrite(fd, page, sizeof page, 0) != sizeof page || fdatasync(fd))
        return 1;
    puts("done");
    fflush(stdout);
    return (int)read(0, page, 1);
}
