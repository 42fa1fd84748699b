// The binary's entry; everything is in main.cc, where tests reach it.
#include "cli/main.h"

int main(int argc, char** argv) { return shoal::cli::Main(argc, argv); }
