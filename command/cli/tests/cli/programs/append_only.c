/* The append-only file of Redis before 7: appended to and synced, then replaced by a new one, which was opened
 * under another name, and appended to again. Ends when its input does. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void append(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fdatasync(fd))
        _exit(1);
}

static int file(const char *name)
{
    int fd = open(name, O_WRONLY | O_APPEND | O_CREAT, 0644);
    return fd < 0 ? (_exit(2), -1) : fd;
}

int main(void)
{
    int old = file("appendonly.aof"), new;
    char end;
    for (int i = 0; i < 10; i++)
        append(old, "old\n");
    new = file("temp-rewriteaof-bg-1.aof");
    if (write(new, "base\n", 5) != 5 || rename("temp-rewriteaof-bg-1.aof", "appendonly.aof") || fsync(new))
        return 3;
    close(old);
    for (int i = 0; i < 10; i++)
        append(new, "new\n");
    puts("done");
    fflush(stdout);
    return (int)read(0, &end, 1);
}
