// Preloaded into every program of a job under test: as sitecustomize.py, ends the program `ring` of the one task that
// TEST_EXIT names with code 3 when the file TEST_EXIT_FILE appears, in the middle of whatever it does.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* Wait(void* file) {
  while (access(file, F_OK) != 0) usleep(20000);  // poll
  _exit(3);
}

__attribute__((constructor)) static void Begin(void) {
  const char* file = getenv("TEST_EXIT_FILE");
  const char* task = getenv("TEST_EXIT");
  const char* role = getenv("SHOAL_ROLE");
  const char* index = getenv("SHOAL_INDEX");
  char name[256];
  pthread_t thread;
  if (file == NULL || task == NULL || role == NULL || index == NULL) return;
  snprintf(name, sizeof name, "%s-%s", role, index);
  if (strcmp(name, task) != 0 || strcmp(program_invocation_short_name, "ring") != 0) return;
  if (pthread_create(&thread, NULL, Wait, (void*)file) == 0) pthread_detach(thread);
}
