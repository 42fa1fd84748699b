/* LD_PRELOAD of the tests: the system's clock is off for the program that has this loaded, by $CLOCK_OFF_BY seconds; or,
 * compiled with -DCLOCKS="FILE", by what the first line "WORD SECONDS" of FILE says whose WORD stands in the program's
 * arguments or environment, so that the processes of one job have clocks of their own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef CLOCKS
static int says(const char* path, const char* word) {
  static char text[1 << 16];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  for (ssize_t got; file >= 0 && (got = read(file, text + length, sizeof text - length)) > 0;) length += (size_t)got;
  close(file);
  return memmem(text, length, word, strlen(word)) != 0;
}

static long read_clocks(void) {
  char word[256];
  long seconds = 0;
  FILE* clocks = fopen(CLOCKS, "re");
  while (clocks && fscanf(clocks, "%255s %ld", word, &seconds) == 2) {
    if (says("/proc/self/cmdline", word) || says("/proc/self/environ", word)) break;
    seconds = 0;
  }
  if (clocks) fclose(clocks);
  return seconds;
}
#else
static long read_clocks(void) { return 0; }
#endif

static long seconds_off;

__attribute__((constructor)) static void begin(void) {
  const char* text = getenv("CLOCK_OFF_BY");
  seconds_off = text ? atol(text) : read_clocks();
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds_off;
  return failed;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (out) *out = exact.tv_sec;
  return exact.tv_sec;
}
