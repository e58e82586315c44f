/*
 * A disk that does not keep what it was given: fsync and fdatasync of the files whose path ends with
 * FAIL_SYNC_OF fail with EIO as long as the file FAIL_SYNC_WHEN is there. With FAIL_SYNC_ONCE the first
 * failure takes that file away: what comes after it succeeds, as on a disk that forgot what it lost.
 * Loaded by LD_PRELOAD.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int file) {
  const char *when = getenv("FAIL_SYNC_WHEN");
  const char *of = getenv("FAIL_SYNC_OF");
  if (when == NULL || of == NULL || access(when, F_OK) != 0) return 0;
  char link[64];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  size_t end = strlen(of);
  if (length < (ssize_t)end) return 0;
  if (strncmp(path + length - end, of, end) != 0) return 0;
  if (getenv("FAIL_SYNC_ONCE") != NULL) unlink(when);
  return 1;
}

static int sync_by(const char *name, int file) {
  if (fails(file)) {
    errno = EIO;
    return -1;
  }
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  return real(file);
}

int fsync(int file) { return sync_by("fsync", file); }
int fdatasync(int file) { return sync_by("fdatasync", file); }
