/* Loaded before the C library: the wall clock is wrong by as many seconds as the named file says first, and by so many
   more for each second since the moment that it says last, of the clock that nobody sets. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long wrong_by(void)
{
    static int (*real)(clockid_t, struct timespec *);
    static __thread time_t looked_at = -1;
    static __thread long known = 0, faster = 0, since = 0;
    struct timespec now;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    real(CLOCK_MONOTONIC, &now);
    /* Ten times a second is often enough. */
    time_t tenth = now.tv_sec * 10 + now.tv_nsec / 100000000;
    if (tenth != looked_at) {
        const char *name = getenv("FAULTS_CLOCK");
        FILE *file = name ? fopen(name, "r") : NULL;
        looked_at = tenth;
        if (file) {
            if (fscanf(file, "%ld %ld %ld", &known, &faster, &since) != 3)
                known = faster = 0;
            fclose(file);
        }
    }
    return known + faster * (now.tv_sec - since) + faster * (now.tv_nsec / 1000) / 1000000;
}

int clock_gettime(clockid_t clock, struct timespec *told)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, told);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        told->tv_sec += wrong_by();
    return result;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told)
        *told = now.tv_sec;
    return now.tv_sec;
}
