// `shoal scale JOB ROLE=N`: changes the number of tasks of an elastic role.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/session.h"
#include "cli/terminal/report.h"
#include "net/event_loop.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::cli {
namespace {

struct ScaleArguments {
  std::string job;
  std::string request;
};

struct ScaleRequest {
  std::string role;
  int replicas = 0;
};

constexpr Duration kAnswerTimeout = std::chrono::seconds(10);

Result<ScaleRequest> ParseScaleRequest(const std::string& text) {
  const size_t equals = text.find('=');
  ScaleRequest request;
  if (equals != std::string::npos && equals > 0) {
    request.role = text.substr(0, equals);
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, end, request.replicas);
    if (error == std::errc() && rest == end && request.replicas >= 0) return request;
  }
  return InvalidArgument("got '" + text + "', expected ROLE=NUMBER, such as worker=8");
}

// Sends the request and returns the coordinator's answer: OK once it has accepted the number.
Status SendScaleRequest(rendezvous::CoordinatorClientOptions options, const ScaleRequest& request) {
  using Type = rendezvous::JobEvent::Type;
  net::Loop loop;
  Status answer = Unavailable("the job's coordinator did not answer within 10 s");
  const auto finish = [&](Status status) {
    answer = std::move(status);
    loop.Stop();
  };
  // Identifies the answer to this request among those to earlier ones, which are replayed first.
  const std::string reason = "asked for by `shoal scale`, process " + std::to_string(::getpid());
  options.give_up_after = kAnswerTimeout;
  std::unique_ptr<rendezvous::CoordinatorClient> client;
  rendezvous::CoordinatorClientCallbacks callbacks;
  callbacks.on_event = [&](const rendezvous::JobEvent& event) {
    const bool mine = event.text.find(reason) != std::string::npos;
    if (event.type == Type::kScaled && mine) finish(Status::Ok());
    if (rendezvous::RefusalOf(event, request.role) == rendezvous::RequestRefusal::kScale)
      finish(FailedPrecondition(event.text));
    if (event.type == Type::kVerdict) finish(FailedPrecondition("the job has ended"));
  };
  callbacks.on_closed = [&](const Status& status) {
    finish(status.ok() ? FailedPrecondition("the job has ended") : status);
  };
  client = rendezvous::CoordinatorClient::Connect(&loop, std::move(options), std::move(callbacks));
  client->Scale(request.role, request.replicas, reason);
  const net::Loop::Id timer = loop.After(kAnswerTimeout, [&] { loop.Stop(); });
  loop.Run();
  loop.Cancel(timer);
  client.reset();
  return answer;
}

Status ScaleJob(const Context& context, const ScaleArguments& arguments, std::string* id) {
  TRY_ASSIGN(const ScaleRequest request, ParseScaleRequest(arguments.request));
  TRY_ASSIGN(const std::unique_ptr<Session> session, Session::Open(context));
  TRY_ASSIGN(const controller::JobRecord job, session->store().FindJob(arguments.job));
  *id = job.id;
  if (job::IsFinal(job.state)) {
    return FailedPrecondition("job " + job.id + " has ended: " + std::string(NameOf(job.state)));
  }
  if (job.state == job::JobState::kSuspended) {
    return FailedPrecondition("job " + job.id + " is suspended; `shoal resume` it first");
  }
  if (job.state == job::JobState::kPending) {
    const Status waiting =
        session->controller().ScaleWaiting(job.id, request.role, request.replicas);
    TRY_ASSIGN(const controller::JobRecord now, session->store().GetJob(job.id));
    if (waiting.ok() || now.state == job::JobState::kPending) return waiting.With("job " + job.id);
  }
  TRY_ASSIGN(rendezvous::CoordinatorClientOptions options, session->ObserverClientOptions(job));
  return SendScaleRequest(std::move(options), request).With("job " + job.id);
}

int ScaleRole(const Context& context, const ScaleArguments& arguments) {
  std::string id;
  const Status done = ScaleJob(context, arguments, &id);
  if (!done.ok()) return PrintError(done);
  return PrintResult((context.json
                          ? ToText(json::object{{"job", id}, {"scaled", arguments.request}})
                          : id + " " + arguments.request) +
                     "\n");
}

constexpr const char* kScaleFooter = R"help(Examples:
  shoal scale mnist-7f3a9c worker=8       start tasks until there are 8 workers
  shoal scale word server=1               end the tasks with the highest indices (SIGTERM)

The role must be elastic: its job file sets 'min' or 'max'. A queued job is admitted and started
with the new number. Returns when the job's coordinator has accepted the number; `shoal show` lists
the tasks that started and ended.)help";

}  // namespace

void AddScale(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ScaleArguments>();
  CLI::App* sub = app.add_subcommand("scale", "Change the number of tasks of a role");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_option("ROLE=N", arguments->request, "Role and its new number of tasks")->required();
  sub->footer(kScaleFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return ScaleRole(context, *arguments); };
  });
}

}  // namespace shoal::cli
