// `shoal tables JOB [NAME [--row K]]`: inspects the parameter servers of a running job.
//
// The job's coordinator knows the addresses of the servers, which answer like to any other
// observer.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/jobs/engines.h"
#include "cli/jobs/job_text.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/report.h"
#include "controller/jobs/session.h"
#include "framework/cluster.h"
#include "job/execution/plan.h"
#include "net/event_loop.h"
#include "ps/client/admin.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;
using controller::Session;

struct TablesArguments {
  std::string job;
  std::string table;
  std::optional<std::string> row_text;
  std::optional<uint64_t> row;  // row_text's
  bool rebalance = false;
  std::vector<int> drain;
  std::string role = "server";
};

constexpr Duration kMoveTimeout = std::chrono::minutes(30);
constexpr Duration kAnswerTimeout = std::chrono::seconds(10);
// The coordinator replays all generations to a new client, oldest first; the last one counts.
constexpr Duration kQuiet = std::chrono::milliseconds(20);
constexpr size_t kHotShown = 10;

// A table summed over all servers.
struct TableView {
  ps::TableReport sum;
  std::vector<const ps::TableReport*> by_server;  // null: the server does not have the table
};

struct View {
  std::vector<std::string> servers;  // addresses
  std::vector<ps::ServerReport> reports;
  std::vector<TableView> tables;  // by name
};

class FixedMembers final : public ps::Members {
 public:
  explicit FixedMembers(std::vector<std::string> servers) : view_{1, std::move(servers), 0} {}
  ps::MemberView Current() override { return view_; }

 private:
  const ps::MemberView view_;
};

Status NotRunning(const JobRecord& job) {
  std::string text = fmt::format("{} is {}; tables can be inspected only while a job runs", job.id,
                                 job::NameOf(job.state));
  const json::value* const outputs = job.job.if_contains("outputs");
  if (outputs != nullptr && outputs->is_object() && !outputs->as_object().empty()) {
    const json::value& place = outputs->as_object().begin()->value();
    text += fmt::format("; its output is in {}",
                        place.is_string() ? std::string(place.as_string()) : ToText(place));
  } else if (job::IsFinal(job.state)) {
    text += fmt::format("; `shoal show {}` names its directory, where checkpoints are", job.id);
  }
  return FailedPrecondition(std::move(text));
}

// Asks the coordinator for the addresses of the job's tasks.
Result<framework::ClusterDescription> AskCoordinator(Session* session, const JobRecord& job) {
  net::Loop loop;
  std::optional<json::object> cluster;
  Status end;
  bool done = false;
  net::Loop::Id quiet = 0;
  const auto finish = [&](Status status) {
    end = std::move(status);
    done = true;
  };
  TRY_ASSIGN(rendezvous::CoordinatorClientOptions options, session->ObserverClientOptions(job));
  options.give_up_after = std::chrono::seconds(3);
  rendezvous::CoordinatorClientCallbacks callbacks;
  callbacks.on_event = [&](const rendezvous::JobEvent& event) {
    using Type = rendezvous::JobEvent::Type;
    if (event.type == Type::kVerdict) return finish(NotRunning(job));
    if (event.type != Type::kGeneration) return;
    cluster = event.body;
    if (quiet != 0) loop.Cancel(quiet);
    quiet = loop.After(kQuiet, [&] { finish(Status::Ok()); });
  };
  callbacks.on_closed = [&](const Status& status) {
    finish(status.ok() ? NotRunning(job)
                       : status.With("asking " + job.id + " where its tasks are"));
  };
  const auto client =
      rendezvous::CoordinatorClient::Connect(&loop, std::move(options), std::move(callbacks));
  if (!loop.RunUntil([&] { return done; }, kAnswerTimeout)) {
    return Unavailable(job.id + " has not gathered its tasks yet: try again when it is running");
  }
  TRY(end);
  return framework::ClusterFromJson(*cluster);
}

// Addresses of the tasks of `role`, in index order.
Result<std::vector<std::string>> ServersOf(const framework::ClusterDescription& cluster,
                                           const JobRecord& job, const std::string& role) {
  const framework::ClusterRole* const servers = cluster.FindRole(role);
  if (servers == nullptr) {
    std::vector<std::string> names;
    for (const framework::ClusterRole& one : cluster.roles) names.push_back(one.name);
    if (names.size() == 1 && role == "server") {
      return FailedPrecondition(fmt::format(
          "{} has no parameter servers: its only role is {}, which holds its tables itself; add "
          "`server: 1` to its roles to inspect them",
          job.id, names[0]));
    }
    const std::string nearest = NearestName(role, names);
    return NotFound(fmt::format("{} has no role {}{}", job.id, role,
                                nearest.empty() ? "" : "; did you mean " + nearest + "?"));
  }
  std::vector<std::string> addresses;
  for (const framework::ClusterMember& member : servers->members) {
    if (member.host.empty()) {
      addresses.emplace_back();  // absent task of an elastic role
      continue;
    }
    if (member.ports.empty()) {
      return FailedPrecondition(fmt::format(
          "the role {} of {} has no port, so it holds no parameter servers", role, job.id));
    }
    addresses.push_back(framework::FormatAddress(member.host, member.ports[0]));
  }
  return addresses;
}

// Sums the servers' reports by table.
void AddUp(View* view) {
  std::vector<std::string> names;
  for (const ps::ServerReport& server : view->reports) {
    for (const ps::TableReport& table : server.tables) names.push_back(table.spec.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    TableView browsed;
    for (const ps::ServerReport& server : view->reports) {
      const auto at = std::find_if(server.tables.begin(), server.tables.end(),
                                   [&](const auto& table) { return table.spec.name == name; });
      browsed.by_server.push_back(at == server.tables.end() ? nullptr : &*at);
      if (at == server.tables.end()) continue;
      ps::TableReport sum = *at;
      sum.stored_rows += browsed.sum.stored_rows;
      sum.bytes += browsed.sum.bytes;
      sum.rows_pushed += browsed.sum.rows_pushed;
      sum.rows_pulled += browsed.sum.rows_pulled;
      browsed.sum = std::move(sum);
    }
    view->tables.push_back(std::move(browsed));
  }
}

Result<const TableView*> FindTable(const View& view, const std::string& name,
                                   const std::string& job) {
  std::vector<std::string> names;
  for (const TableView& table : view.tables) {
    if (table.sum.spec.name == name) return &table;
    names.push_back(table.sum.spec.name);
  }
  const std::string nearest = NearestName(name, names);
  std::string text = fmt::format("{} has no table {}", job, name);
  if (!nearest.empty()) {
    text += fmt::format("; did you mean {}?", nearest);
  } else if (names.empty()) {
    text += "; it has none yet";
  } else {
    text += fmt::format("; it has {}", fmt::join(names, ", "));
  }
  return NotFound(std::move(text));
}

// ---- Text -----------------------------------------------------------------------------------

// "adagrad lr 0.1 eps 1e-08": the optimizer and its parameters.
std::string OptimizerText(const ps::OptimizerSpec& spec) {
  using Kind = ps::OptimizerKind;
  switch (spec.kind) {
    case Kind::kAdd:
      return "add";
    case Kind::kSgd:
      return fmt::format("sgd lr {}", spec.lr);
    case Kind::kAdagrad:
      return fmt::format("adagrad lr {} eps {}", spec.lr, spec.eps);
    case Kind::kMomentum:
      return fmt::format("momentum {} lr {}", spec.momentum, spec.lr);
    case Kind::kAdam:
      return fmt::format("adam lr {} betas {} {} eps {}", spec.lr, spec.beta1, spec.beta2,
                         spec.eps);
    case Kind::kFtrl:
      return fmt::format("ftrl lr {} beta {} l1 {} l2 {}", spec.lr, spec.beta, spec.l1, spec.l2);
    case Kind::kCombine:
      return "combine";
    case Kind::kFunction:
      return fmt::format("function {}", spec.function);
  }
  return "?";
}

std::string InitializerText(const ps::InitializerSpec& spec) {
  if (spec.kind == ps::InitializerKind::kZeros) return "zeros";
  return fmt::format("uniform [{}, {}) seed {}", spec.lo, spec.hi, spec.seed);
}

std::string KindText(const ps::TableSpec& spec) {
  return spec.key_space == ps::KeySpace::kDense ? "dense" : "sparse";
}

// "50 % 50 %": distribution of a table's bytes over the servers.
std::string SpreadText(const TableView& table) {
  std::string text;
  for (const ps::TableReport* part : table.by_server) {
    const double share =
        part == nullptr || table.sum.bytes == 0
            ? 0
            : 100.0 * static_cast<double>(part->bytes) / static_cast<double>(table.sum.bytes);
    text += fmt::format("{}{:.0f} %", text.empty() ? "" : "  ", share);
  }
  return text;
}

std::string Number(uint64_t value) { return FormatCount(static_cast<double>(value)); }
std::string Bytes(uint64_t bytes) { return job::FormatBytes(static_cast<int64_t>(bytes)); }

std::string HotText(const View& view, const std::string& only) {
  std::vector<ps::HotKey> keys;
  for (const ps::ServerReport& server : view.reports) {
    for (const ps::HotKey& key : server.hot_keys) {
      if (only.empty() || key.table == only) keys.push_back(key);
    }
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return a.rows > b.rows; });
  if (keys.size() > kHotShown) keys.resize(kHotShown);
  if (keys.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"MOST REQUESTED", "KEY", "REQUESTS, ABOUT"}};
  for (const ps::HotKey& key : keys)
    rows.push_back({key.table, std::to_string(key.key), Number(key.rows)});
  return "\n" + Table(rows);
}

std::string OverviewText(const View& view) {
  std::vector<std::vector<std::string>> rows = {
      {"TABLE", "KIND", "ROWS", "DIM", "BYTES", "PUSHED", "PULLED", "OPTIMIZER"}};
  for (const TableView& table : view.tables) {
    const ps::TableReport& sum = table.sum;
    rows.push_back({sum.spec.name, KindText(sum.spec), Number(sum.stored_rows),
                    std::to_string(sum.spec.dim), Bytes(sum.bytes), Number(sum.rows_pushed),
                    Number(sum.rows_pulled), OptimizerText(sum.spec.optimizer)});
  }
  std::vector<std::vector<std::string>> servers = {
      {"SERVER", "ADDRESS", "BYTES", "REQUESTS", "ROWS PUSHED", "ROWS PULLED"}};
  for (size_t i = 0; i < view.reports.size(); ++i) {
    uint64_t bytes = 0;
    for (const ps::TableReport& table : view.reports[i].tables) bytes += table.bytes;
    const ps::Counters& counters = view.reports[i].counters;
    servers.push_back({std::to_string(i), view.servers[i], Bytes(bytes), Number(counters.requests),
                       Number(counters.rows_pushed), Number(counters.rows_pulled)});
  }
  return (view.tables.empty() ? "no tables yet\n" : Table(rows)) + "\n" + Table(servers) +
         HotText(view, "");
}

std::string TableText(const View& view, const TableView& table) {
  const ps::TableReport& sum = table.sum;
  const bool dense = sum.spec.key_space == ps::KeySpace::kDense;
  std::vector<std::vector<std::string>> facts = {
      {"table", sum.spec.name},
      {"keys", dense ? fmt::format("dense, 0 to {}", sum.spec.rows - 1) : "sparse, 64 bits"},
      {"rows", fmt::format("{} of {} floats", sum.stored_rows, sum.spec.dim)},
      {"bytes", fmt::format("{} ({})", Bytes(sum.bytes), SpreadText(table))},
      {"optimizer", OptimizerText(sum.spec.optimizer)},
      {"initializer", InitializerText(sum.spec.initializer)},
      {"rows pushed", std::to_string(sum.rows_pushed)},
      {"rows pulled", std::to_string(sum.rows_pulled)}};
  return Table(facts) + HotText(view, sum.spec.name);
}

// ---- JSON -----------------------------------------------------------------------------------

json::object TableJson(const TableView& table) {
  const ps::TableReport& sum = table.sum;
  json::array bytes;
  for (const ps::TableReport* part : table.by_server)
    bytes.emplace_back(part == nullptr ? 0 : part->bytes);
  json::object out{{"table", sum.spec.name},
                   {"kind", KindText(sum.spec)},
                   {"rows", sum.stored_rows},
                   {"dim", sum.spec.dim},
                   {"bytes", sum.bytes},
                   {"bytes_by_server", std::move(bytes)},
                   {"optimizer", OptimizerText(sum.spec.optimizer)},
                   {"initializer", InitializerText(sum.spec.initializer)},
                   {"rows_pushed", sum.rows_pushed},
                   {"rows_pulled", sum.rows_pulled}};
  if (sum.spec.key_space == ps::KeySpace::kDense) out["keys"] = sum.spec.rows;
  return out;
}

json::array HotJson(const View& view, const std::string& only) {
  json::array out;
  for (const ps::ServerReport& server : view.reports) {
    for (const ps::HotKey& key : server.hot_keys) {
      if (!only.empty() && key.table != only) continue;
      out.push_back(json::object{{"table", key.table},
                                 {"key", key.key},
                                 {"server", server.server},
                                 {"times", key.rows},
                                 {"share_of_server", key.share}});
    }
  }
  return out;
}

json::object OverviewJson(const View& view) {
  json::array tables, servers;
  for (const TableView& table : view.tables) tables.push_back(TableJson(table));
  for (size_t i = 0; i < view.reports.size(); ++i) {
    const ps::Counters& counters = view.reports[i].counters;
    servers.push_back(json::object{{"server", i},
                                   {"address", view.servers[i]},
                                   {"requests", counters.requests},
                                   {"duplicates", counters.duplicates},
                                   {"rows_pushed", counters.rows_pushed},
                                   {"rows_pulled", counters.rows_pulled},
                                   {"bytes_pushed", counters.bytes_pushed},
                                   {"bytes_pulled", counters.bytes_pulled}});
  }
  return {{"tables", std::move(tables)},
          {"servers", std::move(servers)},
          {"hot_keys", HotJson(view, "")}};
}

// ---- What to do -------------------------------------------------------------------------------

double Milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

Result<std::vector<float>> PullRow(ps::Client* client, const ps::TableSpec& spec, uint64_t key) {
  if (spec.key_space == ps::KeySpace::kDense && key >= spec.rows) {
    return NotFound(
        fmt::format("--row {}: the table {} has the rows 0 to {}", key, spec.name, spec.rows - 1));
  }
  // The table exists with this specification: the call only makes it known to the client.
  TRY_ASSIGN(const ps::TableRef table, client->CreateTable(spec, kAnswerTimeout));
  std::vector<float> row(spec.dim);
  const ps::Key keys[] = {key};
  TRY_ASSIGN(const ps::Ticket ticket, client->Pull(table, keys, ps::Rows(row.data(), spec.dim)));
  TRY(client->Wait(ticket, kAnswerTimeout));
  return row;
}

std::string RowText(const std::vector<float>& row) {
  std::string text;
  for (size_t i = 0; i < row.size(); ++i)
    text += fmt::format("{}{}", row[i], i + 1 == row.size() ? "\n" : i % 8 == 7 ? "\n" : " ");
  return text;
}

Result<std::string> Answer(ps::Admin* admin, const View& view, const TablesArguments& arguments,
                           const std::string& job, bool as_json) {
  if (arguments.table.empty()) {
    return as_json ? JsonLines(OverviewJson(view)) : OverviewText(view);
  }
  TRY_ASSIGN(const TableView* table, FindTable(view, arguments.table, job));
  if (!arguments.row) {
    json::object out = TableJson(*table);
    out["hot_keys"] = HotJson(view, arguments.table);
    return as_json ? JsonLines(out) : TableText(view, *table);
  }
  TRY_ASSIGN(const std::vector<float> row,
             PullRow(&admin->client(), table->sum.spec, *arguments.row));
  if (!as_json) return RowText(row);
  json::array values(row.begin(), row.end());
  return JsonLine(json::object{
      {"table", arguments.table}, {"row", *arguments.row}, {"values", std::move(values)}});
}

std::string MovedText(const ps::RebalanceInfo& done) {
  std::vector<std::vector<std::string>> rows = {{"SERVER", "BEFORE", "NOW"}};
  for (size_t server = 0; server < done.before.size(); ++server) {
    rows.push_back({std::to_string(server), Bytes(done.before[server]), Bytes(done.after[server])});
  }
  if (done.moves == 0) return Table(rows) + "\nNothing to move.\n";
  return Table(rows) +
         fmt::format(
             "\n{} shards moved, {} sent; longest time without service of a shard: {:.1f} ms\n",
             done.moves, Bytes(done.bytes_sent), Milliseconds(done.longest_stall));
}

json::object MovedJson(const ps::RebalanceInfo& done) {
  return {{"before", json::array(done.before.begin(), done.before.end())},
          {"after", json::array(done.after.begin(), done.after.end())},
          {"moves", done.moves},
          {"bytes_sent", done.bytes_sent},
          {"longest_stall_ms", Milliseconds(done.longest_stall)}};
}

// Connects as an observer, performs a requested move of rows, and formats the servers' reports.
Result<std::string> QueryServers(const Context& context, const TablesArguments& arguments) {
  TRY_ASSIGN(std::vector<controller::EngineInstance> engines, ConfiguredEngines());
  TRY_ASSIGN(const std::unique_ptr<Session> session, Session::Open(std::move(engines)));
  TRY_ASSIGN(const JobRecord job, session->store().FindJob(arguments.job));
  if (job::IsFinal(job.state) || job.state == job::JobState::kPending) return NotRunning(job);
  TRY_ASSIGN(const framework::ClusterDescription cluster, AskCoordinator(session.get(), job));
  View view;
  TRY_ASSIGN(view.servers, ServersOf(cluster, job, arguments.role));
  FixedMembers members(view.servers);
  ps::ClientOptions options;
  options.connect_timeout = kAnswerTimeout;
  options.reconnect_timeout = kAnswerTimeout;
  TRY_ASSIGN(options.token, controller::ReadToken(session->home().job_dir(job.id)));
  TRY_ASSIGN(const std::unique_ptr<ps::Admin> admin,
             ps::Admin::Connect(std::move(options), &members));
  if (arguments.rebalance || !arguments.drain.empty()) {
    TRY_ASSIGN(const ps::RebalanceInfo done,
               admin->RebalanceShards({.drain = arguments.drain}, kMoveTimeout));
    return context.json ? JsonLines(MovedJson(done)) : MovedText(done);
  }
  TRY_ASSIGN(view.reports, admin->Describe(kAnswerTimeout));
  view.servers.resize(view.reports.size());
  AddUp(&view);
  return Answer(admin.get(), view, arguments, job.id, context.json);
}

Status ReadRow(TablesArguments* arguments) {
  if (!arguments->row_text) return Status::Ok();
  const std::string& text = *arguments->row_text;
  uint64_t key = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument(fmt::format("--row: got {}, expected a key: a whole number from 0 to {}",
                                       text, UINT64_MAX));
  }
  if (arguments->table.empty())
    return InvalidArgument(
        "--row: got no table, expected its name before it: shoal tables JOB NAME --row KEY");
  arguments->row = key;
  return Status::Ok();
}

int Tables(const Context& context, const TablesArguments& arguments) {
  const Result<std::string> text = QueryServers(context, arguments);
  if (!text.ok()) return PrintError(text.status());
  return PrintResult(*text);
}

constexpr const char* kTablesFooter = R"help(Examples:
  shoal tables word2vec-7f3a9c                     all tables, the servers, the most requested keys
  shoal tables word input                          one table and its distribution over the servers
  shoal tables word input --row 17                 current values of row 17
  shoal tables word input --row 17 --json | jq .values
  shoal tables word --rebalance                    balance the servers while the job trains
  shoal tables word --drain 1                      move all rows off server 1

PUSHED and PULLED count rows since the servers started. A row of a sparse table has its initial
value until the first push. Inspection neither changes nor pauses the job; requests for a row that
is being moved wait for some milliseconds.)help";

}  // namespace

void AddTables(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<TablesArguments>();
  CLI::App* sub = app.add_subcommand("tables", "Inspect the parameter servers of a running job");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_option("NAME", arguments->table, "Show this table only");
  sub->add_option("--row", arguments->row_text, "Show the row with this key");
  sub->add_flag("--rebalance", arguments->rebalance,
                "Move rows until the servers' sizes differ by at most 5 %");
  sub->add_option("--drain", arguments->drain,
                  "Move all rows of this server to the other servers, evenly");
  sub->add_option("--role", arguments->role, "Role of the parameter servers")
      ->capture_default_str();
  sub->footer(kTablesFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      if (const Status bad = ReadRow(arguments.get()); !bad.ok()) return PrintError(bad);
      if (arguments->rebalance && !arguments->drain.empty())
        return PrintError(InvalidArgument(
            "got --rebalance and --drain, expected one of them: --drain alone empties its servers "
            "and balances the others"));
      if (!arguments->table.empty() && (arguments->rebalance || !arguments->drain.empty()))
        return PrintError(InvalidArgument(
            "--rebalance and --drain move rows of all tables: omit the table's name"));
      return Tables(context, *arguments);
    };
  });
}

}  // namespace shoal::cli
