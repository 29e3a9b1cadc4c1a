/* Turns on a measuring device, by flock. */
#include "worker/device_lock.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* /tmp is anybody's: only a plain file of ours will do. */
static int open_file(const char *id, const char *suffix)
{
    char path[96], hex[RUNG_SHA256_HEX];
    struct stat st;
    rung_sha256(id, strlen(id), hex);
    snprintf(path, sizeof path, "/tmp/rung-%u-%.16s.%s", (unsigned)geteuid(), hex, suffix);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

bool rung_device_lock_open(struct rung_device_lock *lock, const char *id)
{
    *lock = (struct rung_device_lock)RUNG_DEVICE_UNLOCKED;
    lock->turn = open_file(id, "turn");
    lock->device = lock->turn >= 0 ? open_file(id, "device") : -1;
    if (lock->device >= 0)
        return true;
    int failed = errno;
    rung_device_lock_close(lock);
    errno = failed;
    return false;
}

bool rung_device_lock_try(struct rung_device_lock *lock, bool alone)
{
    if (lock->device < 0)
        return true;
    if (!lock->has_turn && flock(lock->turn, LOCK_EX | LOCK_NB) != 0)
        return false;
    lock->has_turn = true;
    if (flock(lock->device, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0)
        return false;
    flock(lock->turn, LOCK_UN);
    lock->has_turn = false;
    return true;
}

void rung_device_lock_release(struct rung_device_lock *lock)
{
    if (lock->device < 0)
        return;
    flock(lock->device, LOCK_UN);
    if (lock->has_turn)
        flock(lock->turn, LOCK_UN);
    lock->has_turn = false;
}

void rung_device_lock_close(struct rung_device_lock *lock)
{
    if (lock->turn >= 0)
        close(lock->turn);
    if (lock->device >= 0)
        close(lock->device);
    *lock = (struct rung_device_lock)RUNG_DEVICE_UNLOCKED;
}
