// `shoal publish`: answers requests with models of the registry until a signal ends it. In a job
// file it is the command of a role.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "cli/jobs/registry_place.h"
#include "cli/models/model_commands.h"
#include "cli/models/show_model.h"
#include "cli/terminal/ready_notice.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stop_signals.h"
#include "net/address.h"
#include "net/event_loop.h"
#include "serving/endpoint/model_server.h"
#include "serving/endpoint/version_follower.h"

namespace shoal::cli {
namespace {

using serving::ModelServer;
using serving::ServedModel;
using serving::VersionFollower;

struct PublishArguments {
  std::vector<std::string> models;
  RegistryOptions registry;
  std::string listen = "127.0.0.1:8500";
  int port = -1;
  std::string certificate;
  std::string key;
  std::vector<std::string> tokens;
  size_t max_batch = 4096;
  size_t max_body_mib = 16;
  size_t threads = 0;
  double poll = 1;
};

constexpr Duration kGrace = std::chrono::seconds(10);
constexpr size_t kMaxToken = 4096;

// FILE, or NAME=FILE for one model.
Status ReadToken(const std::string& option, std::map<std::string, std::string>* tokens) {
  const size_t equals = option.find('=');
  const std::string model = equals == std::string::npos ? "" : option.substr(0, equals);
  const std::string file = equals == std::string::npos ? option : option.substr(equals + 1);
  TRY_ASSIGN(std::string token, ReadFile(file, kMaxToken));
  while (token.ends_with('\n') || token.ends_with('\r') || token.ends_with(' ')) token.pop_back();
  constexpr size_t kShortest = 16;
  if (token.size() < kShortest)
    return InvalidArgument(
        fmt::format("--token-file: {} has {} bytes, expected a secret of at least {}", file,
                    token.size(), kShortest));
  if (!tokens->emplace(model, std::move(token)).second)
    return InvalidArgument("--token-file: got two of " + (model.empty() ? "all models" : model));
  return Status::Ok();
}

Result<serving::ModelServerOptions> OptionsOf(const PublishArguments& arguments) {
  serving::ModelServerOptions options;
  TRY_ASSIGN(const net::HostPort listen, net::ParseHostPort(arguments.listen));
  options.address = listen.host == "localhost" ? "127.0.0.1" : listen.host;
  options.port = arguments.port >= 0 ? static_cast<uint16_t>(arguments.port) : listen.port;
  if (arguments.certificate.empty() != arguments.key.empty())
    return InvalidArgument("--tls-cert and --tls-key belong together; got only one of them");
  options.tls.certificate_file = arguments.certificate;
  options.tls.key_file = arguments.key;
  for (const std::string& token : arguments.tokens) TRY(ReadToken(token, &options.tokens));
  options.limits.max_batch = arguments.max_batch;
  options.max_body = arguments.max_body_mib << 20;
  options.http.body_memory = std::max(options.http.body_memory, 4 * options.max_body);
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  options.threads = arguments.threads > 0 ? arguments.threads : cores;
  options.workers = options.threads;
  return options;
}

// The models that are to be served, and what follows those of the registry.
class Published {
 public:
  // The directory is for copies of remote versions.
  static Result<Published> Load(const Context& context, const PublishArguments& arguments,
                                const std::filesystem::path& scratch) {
    Published published;
    for (const std::string& text : arguments.models) {
      const bool path = text.find('/') != std::string::npos;
      if (path) {
        std::error_code error;
        const std::string name = serving::NameForPath(
            std::filesystem::absolute(text, error).lexically_normal().string());
        TRY_ASSIGN(auto model, ServedModel::Load(text, name, 0));
        TRY(published.Take(std::move(model)));
        continue;
      }
      TRY_ASSIGN(serving::ModelReference reference, serving::ParseModelReference(text));
      if (published.registry_.models == nullptr) {
        TRY_ASSIGN(published.registry_, OpenModels(context, arguments.registry));
      }
      published.followers_.push_back(std::make_unique<VersionFollower>(
          published.registry_.models.get(), std::move(reference), scratch));
      TRY_ASSIGN(auto model, published.followers_.back()->Load());
      TRY(published.Take(std::move(model)));
    }
    return published;
  }

  const std::vector<std::shared_ptr<const ServedModel>>& models() const { return models_; }
  const std::vector<std::unique_ptr<VersionFollower>>& followers() const { return followers_; }

 private:
  Status Take(std::shared_ptr<const ServedModel> model) {
    for (const auto& one : models_) {
      if (one->name() == model->name())
        return InvalidArgument("got two versions of " + model->name() +
                               ", expected one; a second process can serve the other");
    }
    models_.push_back(std::move(model));
    return Status::Ok();
  }

  OpenedRegistry registry_;
  std::vector<std::unique_ptr<VersionFollower>> followers_;
  std::vector<std::shared_ptr<const ServedModel>> models_;
};

// Polls the registry in a thread until it is destroyed.
class FollowerThread {
 public:
  FollowerThread(bool as_json, double seconds, const Published& published, ModelServer* server)
      : json_(as_json),
        pause_(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))),
        published_(published),
        server_(*server) {
    if (seconds > 0 && !published.followers().empty()) thread_ = std::thread([this] { Run(); });
  }
  ~FollowerThread() {
    {
      const MutexLock lock(mu_);
      ending_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    for (;;) {
      {
        MutexLock lock(mu_);
        if (changed_.wait_for(lock, pause_, [this]() REQUIRES(mu_) { return ending_; })) return;
      }
      for (const auto& follower : published_.followers()) Poll(follower.get());
    }
  }

  void Poll(VersionFollower* follower) {
    const Result<uint64_t> version = follower->Poll(&server_);
    if (!version.ok()) {
      const std::string why = version.status().message();
      if (std::exchange(told_[follower->name()], why) != why)
        PrintNote(follower->name() + " stays at its version: " + why);
      return;
    }
    told_.erase(follower->name());
    if (*version == 0) return;
    const Status printed = PrintOut(
        json_ ? JsonLine(json::object{
                    {"event", "version"}, {"model", follower->name()}, {"version", *version}})
              : fmt::format("{}@{} is in service\n", follower->name(), *version));
    if (!printed.ok()) PrintNote("the change of version cannot be printed: " + printed.message());
  }

  const bool json_;
  const Duration pause_;
  const Published& published_;
  ModelServer& server_;
  std::map<std::string, std::string> told_;  // owned by the thread
  Mutex mu_;
  CondVar changed_;
  bool ending_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

std::string ReadyText(bool as_json, const ModelServer& server, const Published& published) {
  json::array models;
  std::string text;
  for (const auto& model : published.models()) {
    models.push_back(json::object{{"name", model->name()}, {"version", model->version()}});
    text += fmt::format("{}{} at {}/v2/models/{}\n", model->name(),
                        model->version() > 0 ? fmt::format("@{}", model->version()) : "",
                        server.url(), model->name());
  }
  if (!as_json) return text;
  return JsonLine(
      json::object{{"event", "ready"}, {"url", server.url()}, {"models", std::move(models)}});
}

Status Serve(const Context& context, const PublishArguments& arguments) {
  TRY_ASSIGN(serving::ModelServerOptions options, OptionsOf(arguments));
  const bool open =
      options.tokens.empty() && !options.address.starts_with("127.") && options.address != "::1";
  TRY_ASSIGN(const TempDir scratch, TempDir::Create("shoal-publish"));
  TRY_ASSIGN(const Published published, Published::Load(context, arguments, scratch.path()));
  for (const auto& [model, token] : options.tokens) {
    const bool known =
        model.empty() || std::any_of(published.models().begin(), published.models().end(),
                                     [&](const auto& one) { return one->name() == model; });
    if (!known) return InvalidArgument("--token-file: no model " + model + " is served");
  }
  net::Loop loop;
  for (const int signal : WithoutIgnored({SIGINT, SIGTERM}))
    loop.WatchSignal(signal, [&loop] { loop.Stop(); });
  TRY_ASSIGN(const auto server, ModelServer::Start(std::move(options), published.models()));
  if (open) PrintNote("without --token-file everyone who reaches this address can ask the models");
  TRY(PrintOut(ReadyText(context.json, *server, published)));
  NotifyServiceManager("READY=1");
  {
    const FollowerThread follower(context.json, arguments.poll, published, server.get());
    loop.Run();
  }
  NotifyServiceManager("STOPPING=1");
  server->Shutdown(kGrace);
  return Status::Ok();
}

constexpr const char* kPublishFooter = R"help(Examples:
  shoal publish ages
  shoal publish ages@3 --port 8600
  shoal publish ages words --listen 0.0.0.0:8500 --token-file secret
  shoal publish ./ages
  curl -d '{"instances": [{"zip": "1010", "height": 1.8}]}' 127.0.0.1:8500/v1/models/ages:predict

MODEL is NAME@3 of the registry (shoal models), which stays that version, or NAME or NAME@TAG, which
follow what is promoted (shoal models promote, shoal rollback) or tagged without failing a request;
or a directory, written with a '/'. The protocols are Open Inference Protocol v2 (/v2/models/NAME/infer)
and the REST interface of TensorFlow Serving (/v1/models/NAME:predict); GET /metrics is for Prometheus.
Answers have the digits that `shoal predict` prints. docs/serving.md has all requests, and the job file
that runs this command on any engine.)help";

}  // namespace

void AddPublish(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<PublishArguments>();
  CLI::App* const sub = app.add_subcommand("publish", "Serve models over HTTP");
  sub->add_option("MODEL", arguments->models, "NAME, NAME@VERSION, NAME@TAG, or a directory")
      ->required()
      ->type_name("");
  AddRegistryOptions(sub, &arguments->registry);
  sub->add_option("--listen", arguments->listen, "Address and port; port 0: any")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  sub->add_option("--port", arguments->port, "Port, in place of the one of --listen; 0: any")
      ->check(CLI::Range(0, 65535).description(""))
      ->type_name("PORT");
  sub->add_option("--tls-cert", arguments->certificate, "Certificate with its chain, PEM")
      ->type_name("FILE");
  sub->add_option("--tls-key", arguments->key, "Its key, PEM")->type_name("FILE");
  sub->add_option("--token-file", arguments->tokens,
                  "File of the token that requests need, or NAME=FILE for one model (repeatable)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  sub->add_option("--max-batch", arguments->max_batch, "Instances of a request")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->capture_default_str()
      ->type_name("N");
  sub->add_option("--max-body", arguments->max_body_mib, "MiB of a request")
      ->check(CLI::Range(1, 1024).description(""))
      ->capture_default_str()
      ->type_name("MIB");
  sub->add_option("--threads", arguments->threads, "Threads [the machine's cores]")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  sub->add_option("--poll", arguments->poll, "Seconds between two looks at the registry; 0: none")
      ->check(CLI::Range(0.0, 86400.0).description(""))
      ->capture_default_str()
      ->type_name("SECONDS");
  sub->footer(kPublishFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Status served = Serve(context, *arguments);
      return served.ok() ? 0 : PrintError(served);
    };
  });
}

}  // namespace shoal::cli
