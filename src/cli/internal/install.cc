// `shoal-task install PATH`: copies the program to PATH. An image with nothing but shoal-task has
// no cp; the init container of a pod calls this.
#include "cli/internal/internal_commands.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "base/log.h"

namespace shoal::cli {
namespace {

int Install(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path to(path);
  const fs::path aside = to.string() + ".part";
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  fs::copy_file("/proc/self/exe", aside, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(aside, fs::perms(0755), error);
  if (!error) fs::rename(aside, to, error);
  if (!error) return 0;
  LogError("cannot put the launcher at {}: {}", path, error.message());
  return 1;
}

}  // namespace

void AddInstall(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("install", "Put a copy of this program somewhere");
  const auto path = std::make_shared<std::string>();
  sub->add_option("path", *path, "Where")->required();
  sub->callback(
      [chosen, path] { *chosen = [path](const Context& /*context*/) { return Install(*path); }; });
}

}  // namespace shoal::cli
