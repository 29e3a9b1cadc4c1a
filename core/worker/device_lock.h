/*
 * Nothing else touches a GPU while one process times on it: executors of one user and machine that
 * share a measuring device take turns. Checks share the device; timing has it alone. Locks are
 * advisory files (flock) in /tmp, named after the device's id, and end with the process.
 */
#ifndef WORKER_DEVICE_LOCK_H
#define WORKER_DEVICE_LOCK_H

#include <stdbool.h>

/* {-1, -1, false}: not open, and then every try succeeds. One thread. */
struct rung_device_lock {
    int turn; /* held while one waits, so that timing is not kept out by a stream of checks */
    int device;
    bool has_turn;
};

#define RUNG_DEVICE_UNLOCKED                                                                       \
    {                                                                                              \
        -1, -1, false                                                                              \
    }

/* Opens the files of a device's id. false with errno set when they can't be used. */
bool rung_device_lock_open(struct rung_device_lock *lock, const char *id);
/* One try, without waiting. Call again until it succeeds. Not while the lock is held. */
bool rung_device_lock_try(struct rung_device_lock *lock, bool alone);
/* Gives the device back, and the turn if a wait was given up. */
void rung_device_lock_release(struct rung_device_lock *lock);
void rung_device_lock_close(struct rung_device_lock *lock);

#endif
