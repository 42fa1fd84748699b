#include "api/server/prepare_job.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "api/catalog/gates.h"
#include "api/catalog/table_access.h"
#include "base/access/directory_owner.h"
#include "base/id.h"
#include "base/private_files.h"
#include "controller/files/expand_data.h"
#include "controller/files/job_user.h"
#include "engine/kubernetes/network_policy.h"
#include "job/file/parse.h"
#include "learn/preflight.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

using controller::StoredSubmission;

Status CheckEngine(const Backend& backend, const std::string& engine) {
  if (!backend.engines->KindOf(engine).empty()) return Status::Ok();
  std::string names;
  for (const std::string& name : backend.engines->names())
    names += (names.empty() ? "" : ", ") + name;
  return InvalidArgument("engine: got " + engine + ", expected one of: " + names);
}

// The directory that relative paths of the job refer to: the one of the request, else one of the
// team.
Result<std::string> FolderOf(const Backend& backend, const StoredSubmission& source,
                             const std::optional<UserIds>& user) {
  const std::string& named = source.directory;
  if (!named.empty() && named.front() != '/')
    return InvalidArgument("directory: got " + named + ", expected an absolute path");
  if (!named.empty()) return named;
  return TeamFolder(backend, source.team, user);
}

// Parses the job file, with the fields that the team's policy sets. PermissionDenied if the file
// itself gives one of them another value.
Status ParseWithPolicy(const StoredSubmission& source, std::optional<size_t> member,
                       const Policy& policy, ParsedJob* parsed) {
  job::DocumentOptions options{source.set, source.document, member};
  const auto parse = [&](job::FieldLocations* locations) {
    return job::ParseDocument(source.text, kJobFileName, options, locations);
  };
  TRY_ASSIGN(parsed->job, parse(&parsed->locations));
  if (policy.fields.empty()) return Status::Ok();
  const std::vector<std::string> fixed = OverridesOf(policy);
  options.overrides.insert(options.overrides.end(), fixed.begin(), fixed.end());
  TRY_ASSIGN(job::Job with, parse(nullptr));
  const bool changes = !(with == parsed->job);
  for (const auto& [field, value] : policy.fields) {
    if (!changes || !parsed->locations.Has(field)) continue;
    // Another field may be the one that changes: what this one alone does decides.
    options.overrides = source.set;
    options.overrides.push_back(field + "=" + value);
    TRY_ASSIGN(const job::Job one, parse(nullptr));
    if (!(one == parsed->job))
      return PermissionDenied(parsed->locations.Prefix(kJobFileName, field) + field +
                              ": the team's policy sets it to " + value + "; leave it out");
  }
  parsed->job = std::move(with);
  return Status::Ok();
}

// Tasks elsewhere, or in a network of their own, do not reach a gate at the loopback.
Status CheckGateAddress(const Backend& backend, const ParsedJob& parsed, const std::string& data) {
  const std::string_view kind = backend.engines->KindOf(parsed.engine);
  const bool here = (kind == "local" || kind == "docker") && !parsed.job.container.own_network;
  const bool loopback =
      backend.tables.gate_address.starts_with("127.") || backend.tables.gate_address == "::1";
  if (here || !loopback) return Status::Ok();
  return FailedPrecondition("data." + data + ".table: the job reads it through a gate at " +
                            backend.tables.gate_address + ", which its tasks on engine " +
                            parsed.engine +
                            " do not reach; start the server with --gate-address ADDRESS, an "
                            "address of its machine that they do");
}

// Puts sources in place of the tables that the submitter may read.
Status AddTables(const Backend& backend, const StoredSubmission& source, ParsedJob* parsed) {
  TRY(Gates::CheckReserved(parsed->job));
  const auto is_table = [](const job::DataSource& data) { return !data.table.empty(); };
  if (std::ranges::none_of(parsed->job.data, is_table)) return Status::Ok();
  TRY_ASSIGN(const data::Asker asker, AskerOf(backend.people, source.user));
  TRY_ASSIGN(const std::vector<ResolvedTable> tables,
             ResolveTables(backend.tables.catalog, asker, parsed->job, &parsed->locations,
                           backend.clock->Wall()));
  for (const ResolvedTable& table : tables)
    if (table.gated) TRY(CheckGateAddress(backend, *parsed, table.data));
  SetSources(tables, &parsed->job);
  Gates::AddVariable(tables, &parsed->job);
  return Status::Ok();
}

// A team's name as the value of a label: such names are longer, or end in other characters, only
// rarely.
std::string TeamLabelOf(const std::string& team) {
  constexpr size_t kLongest = 63;
  const bool fits =
      team.size() <= kLongest && std::isalnum(static_cast<unsigned char>(team.back()));
  return fits ? team : "team-" + Sha256Hex(team).substr(0, 32);
}

// On Kubernetes the label of the team separates its pods from others (network_policy.h): only the
// server sets it, and pods in the nodes' network would be outside of it.
Status SeparateNetwork(const Policy& policy, const std::string& team, const std::string& kind,
                       ParsedJob* parsed) {
  if (kind != "kubernetes") return Status::Ok();
  const auto refuse = [&](const std::string& field, const std::string& sentence) {
    return PermissionDenied(parsed->locations.Prefix(kJobFileName, field) + field + ": " +
                            sentence);
  };
  const auto check = [&](const std::string& section, const job::PodSettings& settings) -> Status {
    if (settings.labels.contains(engine::kubernetes::kTeamLabel))
      return refuse(section + "labels", "got " + std::string(engine::kubernetes::kTeamLabel) +
                                            ", which the server sets; leave it out");
    if (policy.separate_network && settings.host_network.value_or(false))
      return refuse(section + "host_network",
                    "the team's policy separates its network, to which the nodes' network does not "
                    "belong; leave it out");
    return Status::Ok();
  };
  job::Job& job = parsed->job;
  TRY(check("kubernetes.", job.kubernetes));
  for (const job::Role& role : job.roles)
    TRY(check("roles." + role.name + ".kubernetes.", role.kubernetes));
  if (policy.separate_network && !team.empty())
    job.kubernetes.labels[engine::kubernetes::kTeamLabel] = TeamLabelOf(team);
  return Status::Ok();
}

}  // namespace

Result<std::string> TeamFolder(const Backend& backend, const std::string& team,
                               const std::optional<UserIds>& user) {
  // No team's name has a '+': a team whose user changes gets another directory.
  const std::string name = team + (user ? "+" + std::to_string(user->uid) : "");
  const fs::path folder = backend.home.root() / "work" / name;
  TRY(MakeDirectories(folder, 0700));
  if (user) TRY(controller::GiveDirectory(backend.home, folder, *user));
  return folder.string();
}

StoredSubmission SubmissionOf(const Backend& backend, const Call& call) {
  StoredSubmission source;
  source.text = call.arguments.Text("file");
  source.set = call.arguments.Texts("set");
  source.team = call.team;
  source.user = call.principal.user;
  source.engine = call.arguments.Text("engine");
  if (source.engine.empty()) source.engine = backend.default_engine;
  source.directory = call.arguments.Text("directory");
  return source;
}

Result<ParsedJob> PrepareJob(const Backend& backend, const StoredSubmission& source,
                             std::optional<size_t> member) {
  ParsedJob parsed;
  parsed.engine = source.engine;
  TRY(CheckEngine(backend, source.engine));
  TRY_ASSIGN(const Policy policy, backend.policies->Of(source.team));
  TRY(ParseWithPolicy(source, member, policy, &parsed));
  TRY(AddTables(backend, source, &parsed));
  TRY_ASSIGN(parsed.user, TaskUserOf(policy, backend.engines->KindOf(parsed.engine)));
  TRY_ASSIGN(const std::string folder, FolderOf(backend, source, parsed.user));
  job::ResolvePaths(parsed.locations, folder, folder, &parsed.job);
  TRY(CheckPolicy(policy, {.job = parsed.job,
                           .locations = parsed.locations,
                           .engine = parsed.engine,
                           .directory = source.directory}));
  TRY(SeparateNetwork(policy, source.team, backend.engines->KindOf(parsed.engine), &parsed));
  std::error_code error;
  if (fs::is_directory(folder, error)) parsed.directory = folder;
  if (!parsed.job.on_controller_loss) parsed.job.on_controller_loss = job::OnControllerLoss::kKeep;
  backend.engines->SetDefaults(parsed.engine, &parsed.job);
  if (!source.tree.empty()) parsed.job.files = (backend.home.root() / source.tree).string();
  // Of the command that submits a single job, patterns are replaced already.
  if (controller::ReadsLocalPaths(backend.engines->KindOf(parsed.engine), parsed.job)) {
    const FileAccessAs rights(parsed.user);
    controller::ExpandData(&parsed.job);
  }
  return parsed;
}

net::HttpServerReply JobProblem(const Status& status) {
  constexpr int kNoRoom = 507;
  if (status.code() == Code::kResourceExhausted) return Problem(kNoRoom, status.message());
  if (status.code() != Code::kInvalidArgument) return Problem(status);
  return Problem(ParseJobFileErrors(status.message(), kJobFileName));
}

controller::JobValidation ValidationOf(const Backend& backend, const ParsedJob& parsed) {
  const bool here = controller::ReadsLocalPaths(backend.engines->KindOf(parsed.engine), parsed.job);
  // Stores are asked by the job's workers, with the credentials of the job and not of the server.
  const bool local = here && !learn::UsesStores(parsed.job);
  const auto where = local ? learn::DataLocation::kLocal : learn::DataLocation::kRemote;
  return {.locations = parsed.locations,
          .learn = [where](const job::Job& job) { return learn::ValidateLearn(job, where); }};
}

}  // namespace shoal::api
