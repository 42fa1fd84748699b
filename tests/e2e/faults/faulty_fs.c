/* faulty_fs LOWER MOUNTED CONTROL: shows the directory LOWER at MOUNTED, by FUSE, until it is unmounted. Calls on its files fail while the
 * file CONTROL/switch is there: as in io_shim.c, for programs that are linked statically, in containers, or were started by others.
 *
 * Its line says "KIND CALL MODE PREFIX [ERROR]": which processes (controller, coordinator, launcher, a role, or any), which calls (open,
 * read, write, sync, rename, or any), "once" or "all", the beginning of the files' names, and EIO (default) or ENOSPC. Each call that
 * failed adds the line "KIND CALL PATH" to CONTROL/hits. */
#define FUSE_USE_VERSION 35
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int lower;  /* the directory */
static char mounted[PATH_MAX], control[PATH_MAX];  /* absolute */
static pthread_mutex_t hits_lock = PTHREAD_MUTEX_INITIALIZER;

static long read_file(const char* path, char* out, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const long length = file < 0 ? -1 : read(file, out, size - 1);
  if (file >= 0) close(file);
  out[length < 0 ? 0 : length] = 0;
  return length;
}

/* What the calling process is to a job. */
static void find_kind(char* kind, size_t room) {
  char path[64], text[65536];
  snprintf(path, sizeof path, "/proc/%d/cmdline", fuse_get_context()->pid);
  const long size = read_file(path, text, sizeof text);
  const size_t first = strlen(text) + 1;
  const char* word = (long)first < size ? text + first : "";
  const char* name = strcmp(word, "coordinator") == 0                         ? "coordinator"
                     : strcmp(word, "task") == 0                              ? "launcher"
                     : strcmp(word, "run") == 0 || strcmp(word, "train") == 0 ? "controller"
                                                                              : NULL;
  snprintf(kind, room, "%s", name ? name : "?");
  if (name) return;
  snprintf(path, sizeof path, "/proc/%d/environ", fuse_get_context()->pid);
  const long length = read_file(path, text, sizeof text);
  for (long at = 0; at < length; at += (long)strlen(text + at) + 1)
    if (strncmp(text + at, "SHOAL_ROLE=", 11) == 0) snprintf(kind, room, "%s", text + at + 11);
}

static int is(const char* wanted, const char* got) { return strcmp(wanted, "any") == 0 || strcmp(wanted, got) == 0; }

/* 0, or the negative error with which this call on the file fails. */
static int fault(const char* call, const char* path) {
  char name[PATH_MAX + 16], order[PATH_MAX + 256], kind[64], who[64], what[16], mode[8], prefix[PATH_MAX], error[16] = "EIO";
  snprintf(name, sizeof name, "%s/switch", control);
  if (read_file(name, order, sizeof order) <= 0 ||
      sscanf(order, "%63s %15s %7s %4095s %15s", who, what, mode, prefix, error) < 4 || !is(what, call))
    return 0;
  find_kind(kind, sizeof kind);
  char whole[2 * PATH_MAX];
  snprintf(whole, sizeof whole, "%s%s", mounted, path ? path : "/?");
  if (!is(who, kind) || strncmp(whole, prefix, strlen(prefix)) != 0 || (strcmp(mode, "once") == 0 && unlink(name) != 0))
    return 0;
  snprintf(name, sizeof name, "%s/hits", control);
  pthread_mutex_lock(&hits_lock);
  FILE* hits = fopen(name, "ae");
  if (hits) {
    fprintf(hits, "%s %s %s\n", kind, call, whole);
    fclose(hits);
  }
  pthread_mutex_unlock(&hits_lock);
  return strcmp(error, "ENOSPC") == 0 ? -ENOSPC : -EIO;
}

/* An open file: its descriptor, and its name for what is told of faults. */
struct file {
  int fd;
  char path[];
};
static struct file* of(struct fuse_file_info* info) { return (struct file*)(uintptr_t)info->fh; }

static const char* at(const char* path) { return path[1] ? path + 1 : "."; }
static int result(long value) { return value < 0 ? -errno : (int)value; }
/* What was made belongs to the caller. */
static int give(const char* path, int made) {
  const struct fuse_context* caller = fuse_get_context();
  if (made < 0) return -errno;
  return result(fchownat(lower, at(path), caller->uid, caller->gid, AT_SYMLINK_NOFOLLOW));
}

#define FAIL(call, path)                        \
  do {                                          \
    const int failed = fault(call, path);       \
    if (failed) return failed;                  \
  } while (0)

static void* do_init(struct fuse_conn_info* connection, struct fuse_config* config) {
  (void)connection;
  config->use_ino = config->hard_remove = config->nullpath_ok = 1;
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  return NULL;
}
static int do_getattr(const char* path, struct stat* out, struct fuse_file_info* info) {
  return result(info ? fstat(of(info)->fd, out) : fstatat(lower, at(path), out, AT_SYMLINK_NOFOLLOW));
}
static int do_readlink(const char* path, char* out, size_t size) {
  const long length = readlinkat(lower, at(path), out, size - 1);
  if (length < 0) return -errno;
  out[length] = 0;
  return 0;
}
static int do_mknod(const char* path, mode_t mode, dev_t device) {
  FAIL("open", path);
  return give(path, mknodat(lower, at(path), mode, device));
}
static int do_mkdir(const char* path, mode_t mode) {
  FAIL("open", path);
  return give(path, mkdirat(lower, at(path), mode));
}
static int do_unlink(const char* path) { return result(unlinkat(lower, at(path), 0)); }
static int do_rmdir(const char* path) { return result(unlinkat(lower, at(path), AT_REMOVEDIR)); }
static int do_symlink(const char* target, const char* path) { return give(path, symlinkat(target, lower, at(path))); }
static int do_rename(const char* from, const char* to, unsigned flags) {
  FAIL("rename", from);
  return result(renameat2(lower, at(from), lower, at(to), flags));
}
static int do_link(const char* from, const char* to) { return result(linkat(lower, at(from), lower, at(to), 0)); }
static int do_chmod(const char* path, mode_t mode, struct fuse_file_info* info) {
  return result(info ? fchmod(of(info)->fd, mode) : fchmodat(lower, at(path), mode, 0));
}
static int do_chown(const char* path, uid_t user, gid_t group, struct fuse_file_info* info) {
  return result(info ? fchown(of(info)->fd, user, group) : fchownat(lower, at(path), user, group, AT_SYMLINK_NOFOLLOW));
}
static int do_truncate(const char* path, off_t size, struct fuse_file_info* info) {
  FAIL("write", info ? of(info)->path : path);
  if (info) return result(ftruncate(of(info)->fd, size));
  const int file = openat(lower, at(path), O_WRONLY | O_CLOEXEC);
  if (file < 0) return -errno;
  const int ended = result(ftruncate(file, size));
  close(file);
  return ended;
}
static int open_file(const char* path, int flags, mode_t mode, struct fuse_file_info* info) {
  FAIL("open", path);
  struct file* file = malloc(sizeof *file + strlen(path) + 1);
  if (!file) return -ENOMEM;
  strcpy(file->path, path);
  file->fd = openat(lower, at(path), (flags & ~(O_APPEND | O_DIRECT)) | O_CLOEXEC, mode);
  if (file->fd < 0) {
    const int error = errno;
    free(file);
    return -error;
  }
  info->fh = (uint64_t)(uintptr_t)file;
  return 0;
}
static int do_opendir(const char* path, struct fuse_file_info* info) {
  return open_file(path, O_RDONLY | O_DIRECTORY, 0, info);
}
static int do_open(const char* path, struct fuse_file_info* info) { return open_file(path, info->flags, 0, info); }
static int do_create(const char* path, mode_t mode, struct fuse_file_info* info) {
  const int opened = open_file(path, info->flags, mode, info);
  return opened ? opened : give(path, 0);
}
static int do_read(const char* path, char* out, size_t size, off_t where, struct fuse_file_info* info) {
  (void)path;
  FAIL("read", of(info)->path);
  return result(pread(of(info)->fd, out, size, where));
}
static int do_write(const char* path, const char* data, size_t size, off_t where, struct fuse_file_info* info) {
  (void)path;
  FAIL("write", of(info)->path);
  return result(pwrite(of(info)->fd, data, size, where));
}
static int do_statfs(const char* path, struct statvfs* out) {
  (void)path;
  return result(fstatvfs(lower, out));
}
static int do_release(const char* path, struct fuse_file_info* info) {
  (void)path;
  close(of(info)->fd);
  free(of(info));
  return 0;
}
static int do_fsync(const char* path, int data_only, struct fuse_file_info* info) {
  (void)path;
  FAIL("sync", of(info)->path);
  return result(data_only ? fdatasync(of(info)->fd) : fsync(of(info)->fd));
}
static int do_fsyncdir(const char* path, int data_only, struct fuse_file_info* info) {
  (void)path, (void)data_only;
  FAIL("sync", of(info)->path);
  return 0;
}
static int do_readdir(const char* path, void* out, fuse_fill_dir_t fill, off_t where, struct fuse_file_info* info,
                      enum fuse_readdir_flags flags) {
  (void)path, (void)where, (void)flags;
  const int file = openat(of(info)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* directory = file < 0 ? NULL : fdopendir(file);
  if (!directory) return -errno;
  for (const struct dirent* entry = readdir(directory); entry; entry = readdir(directory)) {
    const struct stat told = {.st_ino = entry->d_ino, .st_mode = (mode_t)DTTOIF(entry->d_type)};
    if (fill(out, entry->d_name, &told, 0, 0)) break;
  }
  closedir(directory);
  return 0;
}
static int do_utimens(const char* path, const struct timespec times[2], struct fuse_file_info* info) {
  return result(info ? futimens(of(info)->fd, times) : utimensat(lower, at(path), times, AT_SYMLINK_NOFOLLOW));
}
static int do_fallocate(const char* path, int mode, off_t where, off_t size, struct fuse_file_info* info) {
  (void)path;
  FAIL("write", of(info)->path);
  return result(fallocate(of(info)->fd, mode, where, size));
}

static const struct fuse_operations operations = {
    .init = do_init, .getattr = do_getattr, .readlink = do_readlink, .mknod = do_mknod, .mkdir = do_mkdir, .unlink = do_unlink,
    .rmdir = do_rmdir, .symlink = do_symlink, .rename = do_rename, .link = do_link, .chmod = do_chmod, .chown = do_chown,
    .truncate = do_truncate, .open = do_open, .create = do_create, .read = do_read, .write = do_write, .statfs = do_statfs,
    .release = do_release, .fsync = do_fsync, .fsyncdir = do_fsyncdir, .opendir = do_opendir, .readdir = do_readdir, .releasedir = do_release, .utimens = do_utimens,
    .fallocate = do_fallocate,
};

int main(int count, char** words) {
  if (count != 4) {
    fprintf(stderr, "usage: faulty_fs LOWER MOUNTED CONTROL\n");
    return 2;
  }
  lower = open(words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lower < 0 || !realpath(words[2], mounted) || !realpath(words[3], control)) {
    perror(words[1]);
    return 1;
  }
  umask(0);
  char* arguments[] = {words[0], words[2], "-f", "-o", "allow_other,default_permissions,dev,suid,max_threads=10,fsname=faulty", NULL};
  return fuse_main(5, arguments, &operations, NULL);
}
