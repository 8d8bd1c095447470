/* A recorder of what a program does to the files of one folder, preloaded into it: every write, truncation, sync, removal and
 * renaming is appended to a log, in the order of all threads and processes. power-cut.ts makes of the log what a disk might
 * have after a power cut at any of its places. POWER_CUT_FOLDER: the folder, resolved. POWER_CUT_LOG: the log, elsewhere.
 * POWER_CUT_AT: the process group is killed at this record of a process, before (odd) or after (even) it is done. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct header {
  uint32_t kind; /* W, T, S, U or R */
  uint32_t name; /* bytes of the file's name in the folder; of a folder itself none */
  uint64_t offset; /* of a truncation: the size */
  uint64_t length; /* bytes of data; of a renaming they are the new name */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static size_t folder_length;
static int log_file = -1;
static long cut_at, records;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);
static int (*real_rename)(const char *, const char *);

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("POWER_CUT_FOLDER"), *log = getenv("POWER_CUT_LOG"), *at = getenv("POWER_CUT_AT");
  real_write = dlsym(RTLD_NEXT, "write");
  real_writev = dlsym(RTLD_NEXT, "writev");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
  real_rename = dlsym(RTLD_NEXT, "rename");
  if (!name || !log) return;
  strncpy(folder, name, sizeof folder - 1);
  folder_length = strlen(folder);
  cut_at = at ? atol(at) : 0;
  log_file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log_file < 0) {
    perror("power-cut: the log");
    _exit(99);
  }
}

/* The name within the folder; null for what is elsewhere, and for the shared memory, of which a disk knows nothing. */
static const char *name_of(const char *path) {
  size_t length = strlen(path);
  if (log_file < 0 || strncmp(path, folder, folder_length) != 0) return NULL;
  if (length >= 4 && strcmp(path + length - 4, "-shm") == 0) return NULL;
  if (length >= 10 && strcmp(path + length - 10, " (deleted)") == 0) return NULL;
  if (path[folder_length] == '\0') return path + folder_length;
  return path[folder_length] == '/' ? path + folder_length + 1 : NULL;
}

static const char *name_of_open(int file, char *path) {
  char link[32];
  struct stat facts;
  ssize_t length;
  if (log_file < 0 || fstat(file, &facts) != 0 || !(S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode))) return NULL;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  length = readlink(link, path, PATH_MAX - 1);
  if (length <= 0) return NULL;
  path[length] = '\0';
  return name_of(path);
}

static void cut(int parity) {
  if (cut_at > 0 && records == cut_at && cut_at % 2 == parity) kill(0, SIGKILL);
}

static void enter(void) {
  pthread_mutex_lock(&mutex);
  while (flock(log_file, LOCK_EX) != 0 && errno == EINTR) continue;
  records++;
  cut(1);
}

static void leave(void) {
  int error = errno;
  cut(0);
  flock(log_file, LOCK_UN);
  pthread_mutex_unlock(&mutex);
  errno = error;
}

static void record(uint32_t kind, const char *name, uint64_t offset, const void *data, uint64_t length) {
  int error = errno;
  struct header header = {kind, strlen(name), offset, length};
  struct iovec parts[3] = {{&header, sizeof header}, {(void *)name, header.name}, {(void *)data, length}};
  if (real_writev(log_file, parts, 3) != (ssize_t)(sizeof header + header.name + length)) {
    fprintf(stderr, "power-cut: the log could not be written: %s\n", strerror(errno));
    _exit(99);
  }
  errno = error;
}

ssize_t pwrite64(int file, const void *data, size_t size, off_t offset) {
  char path[PATH_MAX];
  const char *name = name_of_open(file, path);
  ssize_t done;
  if (!name) return real_pwrite(file, data, size, offset);
  enter();
  done = real_pwrite(file, data, size, offset);
  if (done > 0) record('W', name, offset, data, done);
  leave();
  return done;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) { return pwrite64(file, data, size, offset); }

ssize_t write(int file, const void *data, size_t size) {
  char path[PATH_MAX];
  const char *name = name_of_open(file, path);
  ssize_t done;
  if (!name) return real_write(file, data, size);
  enter();
  done = real_write(file, data, size);
  if (done > 0) record('W', name, lseek(file, 0, SEEK_CUR) - done, data, done);
  leave();
  return done;
}

int ftruncate64(int file, off_t size) {
  char path[PATH_MAX];
  const char *name = name_of_open(file, path);
  int done;
  if (!name) return real_ftruncate(file, size);
  enter();
  done = real_ftruncate(file, size);
  if (done == 0) record('T', name, size, NULL, 0);
  leave();
  return done;
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

static int sync_with(int (*real)(int), int file) {
  char path[PATH_MAX];
  const char *name = name_of_open(file, path);
  int done;
  if (!name) return real(file);
  enter();
  done = real(file);
  if (done == 0) record('S', name, 0, NULL, 0);
  leave();
  return done;
}

int fsync(int file) { return sync_with(real_fsync, file); }
int fdatasync(int file) { return sync_with(real_fdatasync, file); }

int unlink(const char *path) {
  const char *name = name_of(path);
  int done;
  if (!name) return real_unlink(path);
  enter();
  done = real_unlink(path);
  if (done == 0) record('U', name, 0, NULL, 0);
  leave();
  return done;
}

int rename(const char *from, const char *to) {
  const char *name = name_of(from), *other = name_of(to);
  int done;
  if (!name || !other) return real_rename(from, to);
  enter();
  done = real_rename(from, to);
  if (done == 0) record('R', name, 0, other, strlen(other));
  leave();
  return done;
}
