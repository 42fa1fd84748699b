// Entry point of the binary; the code is in main.cc, which tests link.
#include "base/stack.h"
#include "cli/main.h"

int main(int argc, char** argv) {
  return shoal::RunWithStack([&] { return shoal::cli::Main(argc, argv); });
}
