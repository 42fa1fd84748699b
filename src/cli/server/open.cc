// `shoal open`: a server's page in the browser of this user.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "api/client/api_client.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "net/http.h"

namespace shoal::cli {
namespace {

constexpr int64_t kSeconds = int64_t{12} * 60 * 60;  // a token's life
constexpr mode_t kOwnerOnly = 0600;

struct OpenArguments {
  std::string job;
  bool print = false;
};

// The address with a token of its own. The token stands behind the #, which browsers send to no
// server; the page takes it out of the address at once.
Result<std::string> AddressOf(const Context& context, const api::ApiClient& client,
                              const std::string& job) {
  std::string path = "/jobs";
  if (!job.empty()) {
    TRY_ASSIGN(const auto jobs, OpenJobs(context));
    TRY_ASSIGN(const controller::JobView found, jobs->Find(job));
    path += "/" + net::PercentEncode(found.record.id);
  }
  TRY_ASSIGN(const json::object made,
             client.CallJson("POST", "/api/v1/tokens",
                             {{"name", "page, by shoal open"}, {"seconds", kSeconds}}));
  TRY_ASSIGN(const std::string token, GetString(made, "token"));
  return client.url() + path + "#token=" + token;
}

std::filesystem::path PrivateDirectory() {
  for (const char* name : {"XDG_RUNTIME_DIR", "HOME"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

// A page that leads to the address: arguments of a program can be read by every user of the
// machine.
Result<std::filesystem::path> WriteRedirect(const std::string& address) {
  const std::filesystem::path directory = PrivateDirectory();
  if (directory.empty()) return FailedPrecondition("set HOME, or use --print");
  const std::filesystem::path file = directory / ".shoal-open.html";
  const std::string text =
      "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=" + address +
      "\"><title>Shoal</title>\n";
  TRY(WriteFileAtomically(file, text, kOwnerOnly));
  return file;
}

bool HasDisplay() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

// Whether a browser was started.
bool StartBrowser(const std::filesystem::path& page) {
  const std::string text = page.string();
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)::dup2(null, fd);
    const std::array<const char*, 3> argv = {"xdg-open", text.c_str(), nullptr};
    ::execvp(argv[0], const_cast<char* const*>(argv.data()));
    ::_exit(127);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

Result<std::string> Open(const Context& context, const OpenArguments& arguments) {
  TRY_ASSIGN(const auto client, OpenServer(context, "pages"));
  TRY_ASSIGN(const std::string address, AddressOf(context, *client, arguments.job));
  if (!arguments.print && HasDisplay()) {
    TRY_ASSIGN(const std::filesystem::path page, WriteRedirect(address));
    if (StartBrowser(page)) return "opened " + address.substr(0, address.find('#')) + "\n";
  }
  return address + "\n";
}

constexpr const char* kFooter = R"help(Examples:
  shoal open                     all jobs
  shoal open $(shoal submit job.yaml)
  shoal open --print             the address, for a browser on another machine

The address holds a token of this user that is valid for 12 hours: give it to nobody.
docs/page.md has the page.)help";

}  // namespace

void AddOpen(CLI::App& app, Run* chosen) {
  auto* sub = app.add_subcommand("open", "Open the server's page, signed in");
  auto arguments = std::make_shared<OpenArguments>();
  sub->add_option("job", arguments->job, "Id or name of a job [all jobs]");
  sub->add_flag("--print", arguments->print,
                "Print the address instead; so does a session without a display");
  sub->footer(kFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Result<std::string> done = Open(context, *arguments);
      return done.ok() ? PrintConfirmation(*done) : PrintError(done.status());
    };
  });
}

}  // namespace shoal::cli
