// What runs in the allocations of the Slurm contract: `shoal slurm …` without the rest of shoal.
#include <cstdio>
#include <string>
#include <vector>

#include "engine/slurm/inside.h"

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "slurm") words.erase(words.begin());
  const auto code = shoal::engine::slurm::RunHelper(words);
  if (!code.ok()) std::fprintf(stderr, "%s\n", code.status().message().c_str());
  return code.ok() ? *code : 2;
}
