// `shoal version`.

#include "cli/version.h"

#include <hwy/targets.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/terminal/report.h"

#ifndef SHOAL_VERSION
#define SHOAL_VERSION "unknown"
#endif

namespace shoal::cli {

std::string Version() { return SHOAL_VERSION; }
std::string VersionLine() { return "shoal " + Version(); }

namespace {

std::string NameOfInstructionSet(int64_t target) {
  const std::string name = hwy::TargetName(target);
  if (name == "AVX3") return "AVX-512";
  return name == "SCALAR" ? "x86-64" : name;  // what every processor has
}

// Best first: those that the kernels were compiled for and this processor has.
json::array InstructionSets() {
  json::array names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets())
    names.push_back(json::value(NameOfInstructionSet(target)));
  return names;
}

}  // namespace

std::string VersionText() {
  std::string text = VersionLine() + "\ninstruction sets that kernels use here:";
  for (const json::value& name : InstructionSets()) text += " " + std::string(name.as_string());
  return text;
}

void AddVersion(CLI::App& app, Run* chosen) {
  CLI::App* sub = app.add_subcommand("version", "Print the version");
  sub->callback([chosen] {
    *chosen = [](const Context& context) {
      const std::string line = context.json
                                   ? ToText(json::object{{"version", Version()},
                                                         {"instruction_sets", InstructionSets()}})
                                   : VersionText();
      return PrintResult(line + "\n");
    };
  });
}

}  // namespace shoal::cli
