/* Preloaded into every process of a job by the fault suite: calls on files fail with EIO while the file "switch" lies beside
 * this library. Its line says "KIND CALL MODE PREFIX": which processes (controller, coordinator, launcher, a role, or any),
 * which calls (open, read, write, sync, rename, or any), "once" or "all", and the directory of the files. Each call that
 * failed adds the line "KIND CALL PATH" to the file "hits". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char switch_path[PATH_MAX], hits_path[PATH_MAX], kind[64];

static long read_file(const char* path, char* out, size_t size) {
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  const long length = file < 0 ? -1 : syscall(SYS_read, file, out, size - 1);
  if (file >= 0) syscall(SYS_close, file);
  out[length < 0 ? 0 : length] = 0;
  return length;
}

__attribute__((constructor)) static void begin(void) {
  Dl_info self;
  if (!dladdr(switch_path, &self) || !self.dli_fname) return;
  const char* slash = strrchr(self.dli_fname, '/');
  const int length = slash ? (int)(slash - self.dli_fname) : 0;
  snprintf(hits_path, sizeof hits_path, "%.*s/hits", length, self.dli_fname);
  char arguments[256];
  const long size = read_file("/proc/self/cmdline", arguments, sizeof arguments);
  const size_t first = strlen(arguments) + 1;
  const char* word = (long)first < size ? arguments + first : "";
  const char* role = getenv("SHOAL_ROLE");
  const char* name = strcmp(word, "coordinator") == 0                              ? "coordinator"
                     : strcmp(word, "task") == 0                                   ? "launcher"
                     : strcmp(word, "run") == 0 || strcmp(word, "train") == 0      ? "controller"
                                                                                   : (role ? role : "?");
  snprintf(kind, sizeof kind, "%s", name);
  snprintf(switch_path, sizeof switch_path, "%.*s/switch", length, self.dli_fname);
}

static int is(const char* wanted, const char* got) { return strcmp(wanted, "any") == 0 || strcmp(wanted, got) == 0; }

/* Whether this call on the file fails; sets errno if so, and leaves it alone otherwise. */
static int fails(const char* call, const char* path) {
  const int before = errno;
  char order[PATH_MAX + 256], who[64], what[16], mode[8], prefix[PATH_MAX];
  int failed = 0;
  if (switch_path[0] && read_file(switch_path, order, sizeof order) > 0 &&
      sscanf(order, "%63s %15s %7s %4095s", who, what, mode, prefix) == 4 && is(who, kind) && is(what, call) &&
      strncmp(path, prefix, strlen(prefix)) == 0 &&
      (strcmp(mode, "once") != 0 || syscall(SYS_unlinkat, AT_FDCWD, switch_path, 0) == 0)) {
    const int length = snprintf(order, sizeof order, "%s %s %s\n", kind, call, path);
    const long hits = syscall(SYS_openat, AT_FDCWD, hits_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (hits >= 0) {
      syscall(SYS_write, hits, order, (size_t)length);
      syscall(SYS_close, hits);
    }
    failed = 1;
  }
  errno = failed ? EIO : before;
  return failed;
}

static int on() {
  const int before = errno;
  const int there = switch_path[0] && syscall(SYS_faccessat, AT_FDCWD, switch_path, F_OK) == 0;
  errno = before;
  return there;
}

static const char* path_of(int file, char* out) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
  out[length < 0 ? 0 : length] = 0;
  return out;
}

static int fails_on(const char* call, int file) {
  char path[PATH_MAX];
  return on() && fails(call, path_of(file, path));
}

static int fails_at(const char* call, int directory, const char* name) {
  char path[PATH_MAX], whole[2 * PATH_MAX];
  if (!on() || !name) return 0;
  if (name[0] == '/') return fails(call, name);
  if (directory == AT_FDCWD) {
    if (syscall(SYS_getcwd, path, sizeof path) < 0) path[0] = 0;
  } else {
    path_of(directory, path);
  }
  snprintf(whole, sizeof whole, "%s/%s", path, name);
  return fails(call, whole);
}

#define MODE_OF(flags, mode)                                       \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {                         \
    va_list rest;                                                  \
    va_start(rest, flags);                                         \
    mode = va_arg(rest, unsigned);                                 \
    va_end(rest);                                                  \
  }

int open(const char* path, int flags, ...) {
  unsigned mode = 0;
  MODE_OF(flags, mode)
  return fails_at("open", AT_FDCWD, path) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  unsigned mode = 0;
  MODE_OF(flags, mode)
  return fails_at("open", AT_FDCWD, path) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int directory, const char* path, int flags, ...) {
  unsigned mode = 0;
  MODE_OF(flags, mode)
  return fails_at("open", directory, path) ? -1 : (int)syscall(SYS_openat, directory, path, flags, mode);
}

static FILE* next_fopen(const char* path, const char* mode) {
  static FILE* (*next)(const char*, const char*);
  if (!next) next = (FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, "fopen");
  return next(path, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return fails_at("open", AT_FDCWD, path) ? NULL : next_fopen(path, mode);
}
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

ssize_t read(int file, void* out, size_t size) {
  return fails_on("read", file) ? -1 : syscall(SYS_read, file, out, size);
}
ssize_t pread(int file, void* out, size_t size, off_t at) {
  return fails_on("read", file) ? -1 : syscall(SYS_pread64, file, out, size, at);
}
ssize_t pread64(int file, void* out, size_t size, off_t at) { return pread(file, out, size, at); }
ssize_t write(int file, const void* data, size_t size) {
  return fails_on("write", file) ? -1 : syscall(SYS_write, file, data, size);
}
ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
  return fails_on("write", file) ? -1 : syscall(SYS_pwrite64, file, data, size, at);
}
ssize_t pwrite64(int file, const void* data, size_t size, off_t at) { return pwrite(file, data, size, at); }
ssize_t writev(int file, const struct iovec* parts, int count) {
  return fails_on("write", file) ? -1 : syscall(SYS_writev, file, parts, count);
}
int fsync(int file) { return fails_on("sync", file) ? -1 : (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { return fails_on("sync", file) ? -1 : (int)syscall(SYS_fdatasync, file); }

int renameat2(int from, const char* old_name, int to, const char* new_name, unsigned flags) {
  return fails_at("rename", from, old_name) ? -1
                                            : (int)syscall(SYS_renameat2, from, old_name, to, new_name, flags);
}
int renameat(int from, const char* old_name, int to, const char* new_name) {
  return renameat2(from, old_name, to, new_name, 0);
}
int rename(const char* old_name, const char* new_name) { return renameat2(AT_FDCWD, old_name, AT_FDCWD, new_name, 0); }
