/* A write-ahead log whose owner is set to whom it belongs to already, as SQLite does as root at every open of its journal,
 * and whose mode is changed then. Ends when its input does. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    static char block[65536];
    int fd = open("x-wal", O_RDWR | O_CREAT, 0644);
    char end;
    if (fd < 0)
        return 2;
    for (int i = 0; i < 6; i++) {
        if (pwrite(fd, block, sizeof block, 0) != sizeof block || fsync(fd))
            return 3;
        if (fchown(fd, getuid(), getgid()) || chown("x-wal", getuid(), getgid()))
            return 4;
    }
    if (fchmod(fd, 0600) || fsync(fd))
        return 5;
    puts("done");
    fflush(stdout);
    return (int)read(0, &end, 1);
}
