/* ledger COUNT LEDGER: so many processes write 64 bytes and sync them, again and again, each to a file of its own
 * (p0-wal, p1-wal …). How many of its writes are acknowledged each notes in LEDGER, 8 bytes a process. One that is killed
 * is started again, and goes on from there. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(int me, int ledger)
{
    char name[16];
    uint64_t slot[8];
    snprintf(name, sizeof name, "p%d-wal", me);
    int file = open(name, O_RDWR | O_CREAT, 0600);
    uint64_t n = 0;
    if (pread(ledger, &n, sizeof n, me * sizeof n) != sizeof n)
        _exit(3);
    while (n++, 1) {
        for (int i = 0; i < 8; i++)
            slot[i] = n;
        if (pwrite(file, slot, sizeof slot, (n - 1) * sizeof slot) != sizeof slot || fdatasync(file) != 0)
            _exit(1);
        if (pwrite(ledger, &n, sizeof n, me * sizeof n) != sizeof n)
            _exit(2);
        usleep(500);
    }
}

int main(int count, char **words)
{
    if (count != 3)
        return 3;
    int ledger = open(words[2], O_RDWR | O_CREAT, 0600);
    int status = 0, processes = atoi(words[1]);
    pid_t pids[16] = {0}, gone = 0;
    do {
        for (int i = 0; i < processes && i < 16; i++)
            if (pids[i] == gone && (pids[i] = fork()) == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                run(i, ledger);
            }
        gone = wait(&status);
    } while (gone > 0 && WIFSIGNALED(status));
    return WEXITSTATUS(status);
}
