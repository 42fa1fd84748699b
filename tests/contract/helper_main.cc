// The commands `shoal slurm …` and `shoal marathon …` without the rest of shoal, for the
// allocations and Mesos tasks of the contract tests.
#include <cstdio>
#include <string>
#include <vector>

#include "engine/marathon/marathon_helper.h"
#include "engine/slurm/slurm_helper.h"

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::vector<std::string> words(argv + (argc > 1 ? 2 : 1), argv + argc);
  const auto code = what == "slurm" ? shoal::engine::slurm::RunHelper(words)
                                    : shoal::engine::marathon::RunHelper(words);
  if (!code.ok()) std::fprintf(stderr, "%s\n", code.status().message().c_str());
  return code.ok() ? *code : 2;
}
