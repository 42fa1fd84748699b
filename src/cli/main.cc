#include "cli/main.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "api/client/login_file.h"
#include "cli/command.h"
#include "cli/terminal/limits_handler.h"
#include "cli/terminal/report.h"
#include "cli/version.h"

namespace shoal::cli {
namespace {

constexpr const char* kAbout =
    "Shoal trains models on a parameter server and runs distributed training jobs of any "
    "framework.";

constexpr const char* kMainFooter = R"help(Examples:
  shoal train word2vec --data text8 --output vectors   train word vectors with every core
  shoal run job.yaml                                   run the job that a file describes
  shoal jobs                                           list running and finished jobs
  shoal logs -f JOB worker-0                           follow the output of one task

`shoal COMMAND --help` explains a command. Exit codes: 0 success, 1 the job failed, 2 wrong usage or
job file, 3 not allowed, 4 not found, 5 engine or coordinator unreachable, 130 cancelled.
Environment: SHOAL_HOME (state directory; default $XDG_DATA_HOME/shoal or ~/.local/share/shoal),
SHOAL_SERVER and SHOAL_TOKEN (a server, instead of shoal login), SHOAL_LOG (debug, info, warning,
error, off), NO_COLOR.)help";

constexpr size_t kHelpWidth = 100;
constexpr size_t kHelpIndent = 26;

// Wraps `text` between words to lines of at most `width` columns.
std::string Wrap(const std::string& text, size_t width) {
  std::string out;
  size_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (column > 0 && column + 1 + (end - at) > width) {
      out += '\n';
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out.append(text, at, end - at);
    column += end - at;
    at = end + 1;
  }
  return out;
}

// CLI11's formatter with wrapped descriptions.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kHelpIndent); }
  std::string make_option_desc(const CLI::Option* option) const override {
    return Wrap(option->get_description(), kHelpWidth - kHelpIndent);
  }
};

const Command* FindCommand(std::string_view name) {
  for (const Command& command : Commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

std::vector<std::string> VisibleNames() {
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    if (*command.group != 0) names.emplace_back(command.name);
  }
  return names;
}

void AddSubcommand(CLI::App& app, const Command& command, Run* chosen) {
  command.add(app, chosen);
  CLI::App* sub = app.get_subcommand(command.name);
  sub->group(command.group);
  if (*command.group != 0 && sub->get_option_no_throw("--json") == nullptr)
    sub->add_flag("--json")->description("Print data as JSON");
  if (command.uses_server) {
    sub->add_option("--server", "Server whose jobs to use; none: the jobs of this machine")
        ->type_name("URL");
  }
}

std::shared_ptr<CLI::App> BareApp() {
  auto app = std::make_shared<CLI::App>(kAbout, "shoal");
  app->set_version_flag("--version", VersionText, "Print the version and exit");
  app->set_help_flag("-h,--help", "Print this help and exit");
  app->formatter(std::make_shared<HelpFormatter>());
  return app;
}

// `before`: the words between "shoal " and the unknown one.
Status UnknownCommand(const std::string& before, const std::string& word,
                      const std::vector<std::string>& names) {
  const std::string nearest = NearestName(word, names);
  return InvalidArgument("there is no command \"" + before + word + "\"" +
                         (nearest.empty() ? "; `shoal " + before + "--help` lists them"
                                          : "; did you mean `shoal " + before + nearest + "`?"));
}

// Prints CLI11's error as one sentence with a suggestion.
int WrongUsage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string path = "shoal";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  const std::vector<const CLI::App*> subs = at->get_subcommands({});
  const std::vector<std::string> rest = app.remaining(true);
  if (!subs.empty() && !rest.empty() && !rest.front().starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::App* sub : subs) names.push_back(sub->get_name());
    const std::string before = at == &app ? "" : path.substr(std::string("shoal ").size()) + " ";
    return PrintError(UnknownCommand(before, rest.front(), names));
  }
  std::string text = error.what();
  if (!subs.empty() && rest.empty()) {
    std::string names;
    for (const CLI::App* sub : subs) names += (names.empty() ? "" : ", ") + sub->get_name();
    text = "got no subcommand, expected one of " + names;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extras = app.remaining(true);
    std::string word = extras.empty() ? "" : extras.front();
    for (const std::string& extra : extras) {
      if (extra.starts_with("-")) word = extra;  // not its value
    }
    word = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::string nearest = word.starts_with("--") ? NearestName(word, names) : "";
    text = "\"" + word + "\" is not expected" +
           (nearest.empty() ? "" : "; did you mean " + nearest + "?");
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return PrintError(InvalidArgument(path + ": " + text + " (see `" + path + " --help`)"));
}

bool WantsJson(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands()) {
    const CLI::Option* option = sub->get_option_no_throw("--json");
    if ((option != nullptr && option->count() > 0) || WantsJson(*sub)) return true;
  }
  return false;
}

// The value of the subcommand's --server; empty without one.
std::string ServerOf(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands()) {
    const CLI::Option* option = sub->get_option_no_throw("--server");
    if (option != nullptr && option->count() > 0) return option->as<std::string>();
  }
  return "";
}

Context MakeContext(const CLI::App& app) {
  Context context;
  context.server = ServerOf(app);
  std::error_code error;
  context.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  context.json = WantsJson(app);
  context.stdout_is_terminal = isatty(STDOUT_FILENO) == 1;
  context.stderr_is_terminal = isatty(STDERR_FILENO) == 1;
  return context;
}

// Opens closed descriptors 0, 1 and 2 on /dev/null; otherwise the next opened file would take their
// numbers. The standard output stays unwritable: a command whose result goes nowhere fails, unless
// its purpose is an effect (DiscardIfStdoutIsClosed).
void OpenStandardDescriptors() {
  const auto next = [] {
    const bool output = fcntl(STDIN_FILENO, F_GETFD) >= 0 && fcntl(STDOUT_FILENO, F_GETFD) < 0;
    return open("/dev/null", output ? O_RDONLY : O_RDWR);
  };
  for (int fd = next(); fd >= 0; fd = next()) {
    if (fd > STDERR_FILENO) {
      close(fd);
      return;
    }
  }
}

// `server`: the value of --server before the subcommand.
int Parse(CLI::App& app, int argc, const char* const* argv, const Run& chosen,
          std::vector<std::string> rest = {}, const std::string& server = "") {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    std::ostringstream text;  // --help, --version
    const int code = app.exit(success, text, text);
    return PrintResult(text.str(), code);
  } catch (const CLI::ParseError& error) {
    return WrongUsage(app, error);
  }
  if (!chosen) return PrintResult(app.help(), 2);
  Context context = MakeContext(app);
  if (context.server.empty()) context.server = server;
  context.passthrough_args = std::move(rest);
  return chosen(context);
}

// `shoal help train word2vec` is `shoal train word2vec --help`.
int Help(int argc, const char* const* argv) {
  if (argc > 2 && FindCommand(argv[2]) == nullptr)
    return PrintError(UnknownCommand("", argv[2], VisibleNames()));
  Run chosen;
  const std::shared_ptr<CLI::App> app = MakeApp(false, &chosen);
  std::vector<const char*> words(argv, argv + argc);
  words.erase(words.begin() + 1);
  words.push_back("--help");
  return Parse(*app, static_cast<int>(words.size()), words.data(), chosen);
}

}  // namespace

std::shared_ptr<CLI::App> MakeApp(bool hidden, Run* chosen) {
  std::shared_ptr<CLI::App> app = BareApp();
  for (const Command& command : Commands()) {
    if (hidden || *command.group != 0) AddSubcommand(*app, command, chosen);
  }
  app->footer(kMainFooter);  // set last, since commands inherit it
  return app;
}

// Takes `--server URL` or `--server=URL` in front of the subcommand out of the arguments. Returns
// the URL.
std::string TakeServer(std::vector<const char*>* words) {
  constexpr std::string_view kOption = "--server";
  if (words->size() < 3) return "";
  const std::string_view first = (*words)[1];
  if (first == kOption) {
    std::string url = (*words)[2];
    words->erase(words->begin() + 1, words->begin() + 3);
    return url;
  }
  if (!first.starts_with("--server=")) return "";
  std::string url(first.substr(kOption.size() + 1));
  words->erase(words->begin() + 1);
  return url;
}

// Without a command name as the first argument the parser knows all visible commands.
int Main(int all_argc, const char* const* all_argv) {
  ExplainLimitsAtEnd();
  OpenStandardDescriptors();
  (void)std::signal(SIGPIPE, SIG_IGN);
  // A write beyond ulimit -f must be an error like a full disk, not a fatal signal.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  std::vector<const char*> words(all_argv, all_argv + all_argc);
  const std::string server = TakeServer(&words);
  const int argc = static_cast<int>(words.size());
  const char* const* const argv = words.data();
  Run chosen;
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.empty() || first.front() == '-') {
    const std::shared_ptr<CLI::App> app = MakeApp(false, &chosen);
    return Parse(*app, argc, argv, chosen);
  }
  // Builds the parser of the named command only: launchers and coordinators start often.
  const Command* command = FindCommand(first);
  if (first == "help") return Help(argc, argv);
  if (command == nullptr) return PrintError(UnknownCommand("", first, VisibleNames()));
  if (!server.empty() && server != api::kEmbedded && !command->uses_server)
    return PrintError(
        InvalidArgument("got --server, but `shoal " + first + "` works on this machine only"));
  const std::shared_ptr<CLI::App> app = BareApp();
  AddSubcommand(*app, *command, &chosen);
  const int own = command->count_own_args == nullptr ? argc : command->count_own_args(argc, argv);
  return Parse(*app, own, argv, chosen, {argv + own, argv + argc}, server);
}

}  // namespace shoal::cli
