/* Loaded before the C library: every fsync and fdatasync takes so many microseconds more than the disk needs. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static int slowly(const char *name, int descriptor)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *told = getenv("BENCHMARK_SLOW_DISK");
    long more = told ? atol(told) : 0;
    struct timespec left = {more / 1000000, more % 1000000 * 1000};
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
    return real(descriptor);
}

int fsync(int descriptor)
{
    return slowly("fsync", descriptor);
}

int fdatasync(int descriptor)
{
    return slowly("fdatasync", descriptor);
}
