// Lets a release run with a C library older than the one that it is built with (docs/install.md
// says which).
//
// libstdc++'s std::random_device and expat call arc4random and arc4random_buf where glibc has them,
// which is since 2.36: in a program that links these libraries statically these definitions are
// called instead.
#include <sys/random.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

extern "C" uint32_t arc4random();
extern "C" void arc4random_buf(void* to, size_t bytes);

extern "C" void arc4random_buf(void* to, size_t bytes) {
  auto* at = static_cast<unsigned char*>(to);
  while (bytes > 0) {
    // Of up to 256 bytes the kernel gives all or, before it has gathered randomness, waits.
    const ssize_t got = getrandom(at, std::min<size_t>(bytes, 256), 0);
    if (got < 0) continue;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

extern "C" uint32_t arc4random() {
  uint32_t number = 0;
  arc4random_buf(&number, sizeof number);
  return number;
}
