// Lets a release run with a C library older than the one that it is built with (docs/install.md
// says which).
//
// libstdc++'s std::random_device calls arc4random where glibc has it, which is since 2.36: in a
// program that links that library statically this definition is called instead.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random();

extern "C" uint32_t arc4random() {
  uint32_t number = 0;
  // Of up to 256 bytes the kernel gives all or, before it has gathered randomness, waits.
  while (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
  }
  return number;
}
