// What runs in the Mesos tasks of the Marathon contract: `shoal marathon …` without the rest of
// shoal.
#include <cstdio>
#include <string>
#include <vector>

#include "engine/marathon/inside.h"

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "marathon") words.erase(words.begin());
  const auto code = shoal::engine::marathon::RunHelper(words);
  if (!code.ok()) std::fprintf(stderr, "%s\n", code.status().message().c_str());
  return code.ok() ? *code : 2;
}
