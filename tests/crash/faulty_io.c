/* Preloaded into a process: the Nth write, sync or rename below a folder fails, and all after it.
 * FAULT_FOLDER: below which folder; FAULT_AFTER: how many succeed; FAULT_ERRNO: what they say.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long done = 0;

static int concerns(const char *path) {
    const char *folder = getenv("FAULT_FOLDER");
    return folder != NULL && path != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int fails(void) {
    const char *after = getenv("FAULT_AFTER");
    const char *code = getenv("FAULT_ERRNO");
    if (after == NULL || done++ < atol(after)) return 0;
    errno = code == NULL ? EIO : atoi(code);
    return 1;
}

static int descriptor_fails(int descriptor) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return concerns(path) && fails();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    return descriptor_fails(fd) ? -1 : REAL(write)(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    return descriptor_fails(fd) ? -1 : REAL(pwrite)(fd, data, size, place);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    return descriptor_fails(fd) ? -1 : REAL(pwrite64)(fd, data, size, place);
}
int fsync(int fd) { return descriptor_fails(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return descriptor_fails(fd) ? -1 : REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t size) {
    return descriptor_fails(fd) ? -1 : REAL(ftruncate)(fd, size);
}
int ftruncate64(int fd, off64_t size) {
    return descriptor_fails(fd) ? -1 : REAL(ftruncate64)(fd, size);
}
int rename(const char *from, const char *to) {
    return concerns(to) && fails() ? -1 : REAL(rename)(from, to);
}
