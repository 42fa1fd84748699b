// Entry point of the binary; the code is in main.cc, which tests link.
#include "cli/main.h"

int main(int argc, char** argv) { return shoal::cli::Main(argc, argv); }
