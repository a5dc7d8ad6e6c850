/* Lists a directory by every way there is, one line each. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int all(const struct dirent *entry) { return entry->d_name[0] != '.'; }

int main(int count, char **arguments)
{
    const char *path = arguments[count - 1];
    struct dirent *entry, **list, room[4];
    char buffer[65536];
    long filled, at;
    int n, fd;

    DIR *dir = opendir(path);
    while ((entry = readdir(dir))) printf("%s ", entry->d_name);
    puts("readdir");
    rewinddir(dir);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    while (readdir_r(dir, room, &entry) == 0 && entry) printf("%s ", entry->d_name);
    puts("readdir_r");
    closedir(dir);
    n = scandir(path, &list, all, alphasort);
    if (n < 0) return 1;
    for (int i = 0; i < n; i++) printf("%s ", list[i]->d_name), free(list[i]);
    free(list);
    puts("scandir");
    fd = open(path, O_RDONLY | O_DIRECTORY);
    while ((filled = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
        for (at = 0; at < filled; at += *(unsigned short *)(buffer + at + 16)) printf("%s ", buffer + at + 19);
    puts("getdents64");
    lseek(fd, 0, SEEK_SET);
    while ((filled = getdents64(fd, buffer, sizeof buffer)) > 0)
        for (at = 0; at < filled; at += *(unsigned short *)(buffer + at + 16)) printf("%s ", buffer + at + 19);
    puts("getdents64()");
    return 0;
}
