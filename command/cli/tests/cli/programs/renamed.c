/* A write-ahead log that is given a new name, as PostgreSQL recycles its segments: renamed, then synced through a
 * new descriptor. Ends when its input does. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int file(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT, 0644);
    return fd < 0 ? (_exit(2), -1) : fd;
}

int main(void)
{
    static char block[65536];
    int old = file("x-wal"), new;
    char end;
    for (int i = 1; i <= 3; i++) {
        memset(block, i, sizeof block);
        if (pwrite(old, block, sizeof block, 0) != sizeof block || fsync(old))
            return 3;
    }
    close(old);
    if (rename("x-wal", "y-wal"))
        return 4;
    new = file("y-wal");
    for (int i = 0; i < 3; i++)
        if (fsync(new))
            return 5;
    puts("done");
    fflush(stdout);
    return (int)read(0, &end, 1);
}
