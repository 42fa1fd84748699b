/* observe [WORD…]: prints what a program of a container finds, one line "seen {"NAME": VALUE}" for each thing, for
 * tests/cluster/kubectl_comparison.py, which compares what a program finds under plain Kubernetes with what it finds under Shoal.
 * Static, so that any image can have it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern char** environ;
static char text[1 << 16];

static void quote(const char* value, size_t length) {
  putchar('"');
  for (size_t i = 0; i < length; ++i) {
    const unsigned char c = (unsigned char)value[i];
    if (c == '"' || c == '\\') {
      printf("\\%c", c);
    } else if (c < 32 || c > 126) {
      printf("\\u%04x", c);
    } else {
      putchar(c);
    }
  }
  putchar('"');
}

static void seen(const char* kind, const char* name, const char* value, size_t length) {
  char key[PATH_MAX + 64];
  snprintf(key, sizeof key, "%s %s", kind, name);
  fputs("seen {", stdout);
  quote(key, strlen(key));
  fputs(": ", stdout);
  quote(value, length);
  fputs("}\n", stdout);
}

static void say(const char* kind, const char* name, const char* value) { seen(kind, name, value, strlen(value)); }

static void number(const char* kind, const char* name, long long value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%lld", value);
  say(kind, name, digits);
}

/* The file's text, cut to what fits; -1 if it cannot be read. */
static ssize_t contents(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return -1;
  ssize_t length = 0;
  for (ssize_t got; length + 1 < (ssize_t)sizeof text && (got = read(file, text + length, sizeof text - 1 - (size_t)length)) > 0;) length += got;
  close(file);
  text[length] = '\0';
  return length;
}

static void lines(const char* kind, const char* path) {
  if (contents(path) < 0) return;
  int n = 0;
  char* rest = text;
  for (char* line; (line = strsep(&rest, "\n")) != NULL;) {
    char name[16];
    snprintf(name, sizeof name, "%d", n++);
    if (*line != '\0') say(kind, name, line);
  }
}

static void entry(const char* path, int depth);

static void below(const char* path, int depth) {
  struct dirent** names = NULL;
  const int count = scandir(path, &names, NULL, alphasort);
  for (int i = 0; i < count; ++i) {
    char child[PATH_MAX];
    snprintf(child, sizeof child, "%s/%s", path, names[i]->d_name);
    /* The kubelet's own: ..data and the directory of a time it points to. */
    if (names[i]->d_name[0] != '.' && i < 40) entry(child, depth);
    free(names[i]);
  }
  free(names);
}

static void entry(const char* path, int depth) {
  struct stat of;
  if (stat(path, &of) != 0) return;
  char what[128];
  snprintf(what, sizeof what, "%06o %u:%u%s", of.st_mode, of.st_uid, of.st_gid, access(path, W_OK) == 0 ? " writable" : "");
  say("entry", path, what);
  if (S_ISREG(of.st_mode) && of.st_size <= 4096) {
    const ssize_t length = contents(path);
    if (length >= 0) seen("file", path, text, (size_t)length);
  } else if (S_ISDIR(of.st_mode) && depth > 0) {
    below(path, depth - 1);
  }
}

static int is_of_the_system(const char* target) {
  static const char* const kPlaces[] = {"/proc", "/sys", "/dev", "/.shoal"};
  for (size_t i = 0; i < sizeof kPlaces / sizeof kPlaces[0]; ++i) {
    const size_t length = strlen(kPlaces[i]);
    if (strncmp(target, kPlaces[i], length) == 0 && (target[length] == '/' || target[length] == '\0')) return 1;
  }
  return 0;
}

static void mounts(void) {
  FILE* file = fopen("/proc/self/mountinfo", "re");
  static char line[1 << 14];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    char target[4096] = "", options[1024] = "", type[256] = "";
    const char* dash = strstr(line, " - ");
    if (sscanf(line, "%*s %*s %*s %*s %4095s %1023s", target, options) != 2 || dash == NULL || sscanf(dash, " - %255s", type) != 1) continue;
    char how[512];
    snprintf(how, sizeof how, "%s %s%s%s", type, strncmp(options, "ro", 2) == 0 ? "ro" : "rw", strstr(options, "noexec") ? " noexec" : "", strstr(options, "nosuid") ? " nosuid" : "");
    say("mount", target, how);
    if (strcmp(target, "/") != 0 && !is_of_the_system(target)) entry(target, 3);
  }
  if (file != NULL) fclose(file);
}

static void status(void) {
  static const char* const kNames[] = {"Umask", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "SigBlk", "SigIgn", "Cpus_allowed_list"};
  if (contents("/proc/self/status") < 0) return;
  char* rest = text;
  for (char* line; (line = strsep(&rest, "\n")) != NULL;) {
    char* colon = strchr(line, ':');
    if (colon == NULL) continue;
    *colon = '\0';
    for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; ++i) {
      if (strcmp(line, kNames[i]) == 0) say("status", line, colon + 1 + strspn(colon + 1, "\t "));
    }
  }
}

static void limits(void) {
  static const struct {
    const char* name;
    int resource;
  } kLimits[] = {{"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}, {"core", RLIMIT_CORE}, {"memlock", RLIMIT_MEMLOCK}, {"stack", RLIMIT_STACK}};
  for (size_t i = 0; i < sizeof kLimits / sizeof kLimits[0]; ++i) {
    struct rlimit limit;
    if (getrlimit(kLimits[i].resource, &limit) == 0) number("rlimit", kLimits[i].name, (long long)limit.rlim_cur);
  }
  static const char* const kFiles[] = {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.shares",
                                       "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.max", "/proc/self/oom_score_adj"};
  for (size_t i = 0; i < sizeof kFiles / sizeof kFiles[0]; ++i) {
    const ssize_t length = contents(kFiles[i]);
    if (length > 0) seen("cgroup", kFiles[i], text, (size_t)length - 1);
  }
}

static void identity(void) {
  number("id", "uid", getuid());
  number("id", "gid", getgid());
  gid_t groups[256];
  const int count = getgroups(256, groups);
  char list[4096] = "";
  for (int i = 0; i < count; ++i) snprintf(list + strlen(list), sizeof list - strlen(list), "%s%u", i == 0 ? "" : " ", groups[i]);
  say("id", "groups", list);
  number("id", "nice", getpriority(PRIO_PROCESS, 0));
}

static void open_files(void) {
  char list[256] = "";
  for (int fd = 0; fd < 64; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", list[0] == '\0' ? "" : " ", fd);
  }
  say("fd", "open", list);
  char target[PATH_MAX] = "";
  if (readlink("/proc/self/fd/0", target, sizeof target - 1) > 0) say("fd", "0", target);
}

static void system_settings(void) {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) say("host", "name", name);
  static const char* const kSettings[] = {"net/ipv4/ip_unprivileged_port_start", "net/ipv4/ip_local_port_range", "kernel/shm_rmid_forced", "kernel/shmmax"};
  for (size_t i = 0; i < sizeof kSettings / sizeof kSettings[0]; ++i) {
    char path[256];
    snprintf(path, sizeof path, "/proc/sys/%s", kSettings[i]);
    const ssize_t length = contents(path);
    if (length > 0) seen("sysctl", kSettings[i], text, (size_t)length - 1);
  }
  lines("hosts", "/etc/hosts");
  lines("resolv", "/etc/resolv.conf");
  /* Nodes of tests/cluster/kubernetes.sh are of this network, pods are not. */
  if (contents("/proc/net/route") >= 0) say("host", "network", strstr(text, "\t0000630A\t") == NULL ? "the pod's" : "the node's");
}

int main(int argc, char** argv) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  printf("seen begin %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
  number("argv", "count", argc);
  for (int i = 0; i < argc; ++i) {
    char index[16];
    snprintf(index, sizeof index, "%d", i);
    say("argv", index, argv[i]);
  }
  for (char** one = environ; *one != NULL; ++one) {
    char* is = strchr(*one, '=');
    if (is == NULL) continue;
    *is = '\0';
    say("env", *one, is + 1);
    *is = '=';
  }
  open_files();
  say("dir", "working", getcwd(text, sizeof text) == NULL ? "none" : text);
  identity();
  status();
  limits();
  system_settings();
  mounts();
  printf("seen end\n");
  return fflush(stdout) == 0 ? 0 : 1;
}
