/* Writes files by streams and by mappings, none of which is a database, and looks for what should not be there. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    char name[64];
    mkdir(arguments[count - 1], 0755);
    if (chdir(arguments[count - 1])) return 1;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "file%d", i);
        FILE *file = fopen(name, "w");
        fputs("text\n", file);
        fflush(file);
        fsync(fileno(file));
        if (i % 2) fclose(file);
        int fd = open(name, O_RDWR);
        char *mapped = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        mapped[0] = 'T';
        msync(mapped, 4096, MS_SYNC);
        snprintf(name, sizeof name, "file%d-journal", i);
        if (access(name, F_OK) == 0) return 2;
    }
    return 0;
}
