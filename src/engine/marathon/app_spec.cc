#include "engine/marathon/app_spec.h"

#include <algorithm>
#include <cstdlib>

#include "net/http_client.h"

namespace shoal::engine::marathon {
namespace {

constexpr size_t kLongestPart = 48;  // with its suffix below the 63 of a DNS label
constexpr const char* kOperators[] = {"UNIQUE", "CLUSTER", "GROUP_BY", "LIKE",
                                      "UNLIKE", "MAX_PER", "IS"};

// FNV-1a, folded to 32 bits.
uint32_t NumberOf(const std::string& name) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

std::string LastPart(const std::string& path) { return path.substr(path.rfind('/') + 1); }

json::array Texts(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

Status CheckConstraint(const std::string& text) {
  const json::array parts = Constraint(text);
  const bool known = parts.size() > 1 && std::find(std::begin(kOperators), std::end(kOperators),
                                                   parts[1].as_string()) != std::end(kOperators);
  if (known && !parts[0].as_string().empty()) return Status::Ok();
  return InvalidArgument("marathon.constraints: got \"" + text +
                         "\", expected FIELD:OPERATOR or FIELD:OPERATOR:VALUE with one of UNIQUE, "
                         "CLUSTER, GROUP_BY, LIKE, UNLIKE, MAX_PER, IS");
}

std::string Containerizer(const DesiredJob& job) {
  const std::string& asked = job.marathon.containerizer;
  if (asked.empty()) return job.image.empty() ? "none" : "docker";
  return asked;
}

json::object Environment(const DesiredJob& job) {
  json::object env = PassedVariables();
  const std::string service = CoordinatorService(job.marathon, job.job_id);
  if (const char* asked = std::getenv(kDnsVariable); asked != nullptr && !service.empty())
    env[kCoordinatorServiceVariable] = service + "@" + asked;
  return env;
}

json::object Volume(const Mount& mount) {
  return {{"hostPath", mount.source},
          {"containerPath", mount.target},
          {"mode", mount.read_only ? "RO" : "RW"}};
}

json::object Container(const DesiredJob& job, const std::string& program) {
  const bool docker = Containerizer(job) == "docker";
  json::object container{{"type", docker ? "DOCKER" : "MESOS"}};
  json::object image;
  if (!job.image.empty()) {
    image["image"] = job.image;
    image["forcePullImage"] = job.marathon.force_pull;
  }
  if (docker) {
    image["privileged"] = job.marathon.privileged;
    json::array parameters;
    for (const std::string& text : job.marathon.parameters) {
      const size_t at = text.find('=');
      parameters.push_back(
          json::object{{"key", text.substr(0, at)}, {"value", text.substr(at + 1)}});
    }
    image["parameters"] = std::move(parameters);
  }
  if (!image.empty()) container["docker"] = std::move(image);
  json::array volumes{Volume({job.job_dir, job.job_dir, false})};
  if (program[0] == '/') volumes.push_back(Volume({program, program, true}));
  for (const Mount& mount : job.container.mounts) volumes.push_back(Volume(mount));
  container["volumes"] = std::move(volumes);
  return container;
}

void AddResources(const std::string& role, const RoleRequirement& need, json::object* app) {
  constexpr double kLeastCpus = 0.1;
  const bool coordinator = IsCoordinator(role);
  const job::Resources& wants = need.resources;
  const int64_t usual = coordinator ? kCoordinatorMemory : kUsualMemory;
  const int64_t memory =
      wants.memory_bytes > 0 ? wants.memory_bytes : std::max(usual, wants.memory_request);
  const double wanted = wants.cpu_reserved();
  const double cpus = wanted > 0 ? wanted : coordinator ? kLeastCpus : 1;
  (*app)["cpus"] = std::max(cpus, kLeastCpus);
  (*app)["mem"] = (memory + (1 << 20) - 1) >> 20;
  (*app)["disk"] = 0;
  if (wants.gpu > 0) (*app)["gpus"] = wants.gpu;
}

// Health checks of an executor's program, by a command in its task (health_check.cc), which times
// out before Marathon does.
json::array HealthChecks(const job::Health& health, const std::string& command) {
  constexpr int64_t kLater = 2;  // seconds
  json::array checks;
  checks.push_back(json::object{{"protocol", "COMMAND"},
                                {"command", {{"value", command}}},
                                {"gracePeriodSeconds", CeilSeconds(health.grace)},
                                {"intervalSeconds", CeilSeconds(health.every)},
                                {"timeoutSeconds", CeilSeconds(health.timeout) + kLater},
                                {"maxConsecutiveFailures", health.failures}});
  return checks;
}

json::object MakeApp(const DesiredJob& job, const std::string& role, const RoleRequirement& need,
                     const std::string& program) {
  const job::Marathon& settings = job.marathon;
  const int64_t unreachable = CeilSeconds(settings.unreachable);
  const std::string own = "exec " + QuoteProgram(program) + " marathon ";
  const std::string place = ShellQuote(job.job_dir) + " " + ShellQuote(role);
  json::object app{
      {"id", AppId(GroupId(settings, job.job_id), role)},
      {"cmd", own + "hold " + place},
      {"instances", need.instances},
      {"labels", {{kJobLabel, job.job_id}, {kRoleLabel, role}, {kDirLabel, job.job_dir}}},
      {"backoffSeconds", CeilSeconds(settings.backoff)},
      {"maxLaunchDelaySeconds", CeilSeconds(settings.longest_backoff)},
      {"taskKillGracePeriodSeconds", 30},
      {"upgradeStrategy", {{"minimumHealthCapacity", 0}, {"maximumOverCapacity", 0}}},
      {"unreachableStrategy",
       {{"inactiveAfterSeconds", unreachable}, {"expungeAfterSeconds", unreachable}}}};
  json::object env = Environment(job);
  if (!settings.secrets.empty()) app["secrets"] = AddSecrets(settings.secrets, &env);
  app["env"] = std::move(env);
  AddResources(role, need, &app);
  json::array ports;
  if (IsCoordinator(role))
    ports.push_back(
        json::object{{"port", settings.port}, {"protocol", "tcp"}, {"name", "coordinator"}});
  app["portDefinitions"] = std::move(ports);
  if (IsCoordinator(role) && settings.port != 0) app["requirePorts"] = true;
  if (const auto health = job.health.find(role); health != job.health.end())
    app["healthChecks"] = HealthChecks(health->second, own + "health " + place);
  if (!settings.user.empty()) app["user"] = settings.user;
  if (!settings.accepted_roles.empty())
    app["acceptedResourceRoles"] = Texts(settings.accepted_roles);
  json::array constraints;
  for (const std::string& text : settings.constraints) constraints.push_back(Constraint(text));
  if (!constraints.empty() && !IsCoordinator(role)) app["constraints"] = std::move(constraints);
  if (!settings.fetch.empty()) app["fetch"] = Fetch(settings.fetch, program);
  if (Containerizer(job) != "none") {
    app["container"] = Container(job, program);
    app["networks"] = json::array{json::object{{"mode", "host"}}};
  }
  return app;
}

}  // namespace

std::string ShellQuote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string QuoteProgram(const std::string& program) {
  const bool fetched = program.find('/') == std::string::npos;
  return fetched ? "\"$MESOS_SANDBOX\"/" + ShellQuote(program) : ShellQuote(program);
}

int64_t CeilSeconds(std::chrono::milliseconds time) {
  return std::chrono::ceil<std::chrono::seconds>(time).count();
}

json::array Constraint(const std::string& text) {
  json::array parts;
  const size_t first = text.find(':');
  const size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  parts.emplace_back(text.substr(0, first));
  if (first == std::string::npos) return parts;
  parts.emplace_back(text.substr(first + 1, second - first - 1));
  if (second != std::string::npos) parts.emplace_back(text.substr(second + 1));
  return parts;
}

json::array Fetch(const std::vector<std::string>& uris, const std::string& program) {
  json::array fetch;
  for (const std::string& uri : uris) {
    json::object one{{"uri", uri}};
    if (LastPart(uri) == LastPart(program)) one["executable"] = true;
    fetch.push_back(std::move(one));
  }
  return fetch;
}

json::object PassedVariables() {
  json::object env;
  for (const char* name : {"LANG", "TZ", "SHOAL_LOG", "SHOAL_FAULTS", "SHOAL_ISOLATION"}) {
    if (const char* value = std::getenv(name); value != nullptr) env[name] = value;
  }
  return env;
}

json::object AddSecrets(const std::map<std::string, std::string>& wanted, json::object* env) {
  json::object secrets;
  for (const auto& [name, source] : wanted) {
    const std::string key = "secret" + std::to_string(secrets.size());
    (*env)[name] = json::object{{"secret", key}};
    secrets[key] = json::object{{"source", source}};
  }
  return secrets;
}

std::string PathPart(const std::string& name) {
  std::string part;
  for (const char c : name.substr(0, kLongestPart)) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    part += upper ? static_cast<char>(c - 'A' + 'a') : fine ? c : '-';
  }
  while (!part.empty() && part.back() == '-') part.pop_back();
  part.erase(0, part.find_first_not_of('-'));
  if (part == name) return part;
  constexpr const char* kDigits = "0123456789abcdef";
  uint32_t number = NumberOf(name);
  part += part.empty() ? "x" : "-";
  for (int i = 0; i < 8; ++i, number >>= 4) part += kDigits[number & 15];
  return part;
}

std::string GroupId(const job::Marathon& settings, const std::string& job_id) {
  return (settings.group == "/" ? "" : settings.group) + "/" + PathPart(job_id);
}

std::string AppId(const std::string& group, const std::string& role) {
  return group + "/" + PathPart(role);
}

std::string CoordinatorService(const job::Marathon& settings, const std::string& job_id) {
  constexpr size_t kLongestLabel = 62;  // a DNS label with its '_'
  std::string task;
  std::string part;
  for (const char c : AppId(GroupId(settings, job_id), kCoordinatorRole) + "/") {
    if (c != '/') {
      part += c;
      continue;
    }
    if (!part.empty()) task = part + (task.empty() ? "" : "-" + task);
    part.clear();
  }
  if (task.size() > kLongestLabel) return "";
  return std::string("_") + kCoordinatorRole + "._" + task + "._tcp.marathon.mesos";
}

Status CheckSettings(const DesiredJob& desired) {
  const job::Marathon& settings = desired.marathon;
  bool fine = settings.group.starts_with("/");
  std::string part;
  for (const char c : settings.group.substr(fine ? 1 : 0) + "/") {
    if (c != '/') {
      part += c;
      continue;
    }
    fine = fine && (PathPart(part) == part || settings.group == "/");
    part.clear();
  }
  if (!fine)
    return InvalidArgument("marathon.group: got \"" + settings.group +
                           "\", expected a path of lower case letters, digits and '-': /shoal");
  if (!settings.url.empty()) TRY(net::ParseUrl(settings.url).status().With("marathon.url"));
  for (const std::string& text : settings.constraints) TRY(CheckConstraint(text));
  for (const std::string& text : settings.parameters) {
    if (text.find('=') == std::string::npos || text[0] == '=')
      return InvalidArgument("marathon.parameters: got \"" + text + "\", expected KEY=VALUE");
  }
  const std::string kind = Containerizer(desired);
  if (kind != "docker" && (!settings.parameters.empty() || settings.privileged))
    return InvalidArgument(
        "marathon.parameters and marathon.privileged are Docker's: set marathon.containerizer to "
        "docker");
  if (kind == "docker" && desired.image.empty())
    return InvalidArgument("marathon.containerizer: docker needs the job's image");
  if (kind == "none" && !desired.image.empty())
    return InvalidArgument("marathon.containerizer: none cannot run the image " + desired.image +
                           "; take docker or mesos");
  if (desired.job_dir.empty() || desired.job_dir[0] != '/')
    return InvalidArgument("job " + desired.job_id + ": its directory must be an absolute path");
  return Status::Ok();
}

std::map<std::string, RoleRequirement> RoleRequirements(const DesiredJob& desired) {
  std::map<std::string, RoleRequirement> needs;
  for (const DesiredTask& task : desired.tasks) {
    RoleRequirement& need = needs[task.role];
    ++need.instances;
    need.resources.cpu = std::max(need.resources.cpu, task.resources.cpu);
    need.resources.memory_bytes =
        std::max(need.resources.memory_bytes, task.resources.memory_bytes);
    need.resources.cpu_request = std::max(need.resources.cpu_request, task.resources.cpu_request);
    need.resources.memory_request =
        std::max(need.resources.memory_request, task.resources.memory_request);
    need.resources.gpu = std::max(need.resources.gpu, task.resources.gpu);
  }
  return needs;
}

json::object MakeGroup(const DesiredJob& settings,
                       const std::map<std::string, RoleRequirement>& needs,
                       const std::string& program) {
  json::array apps;
  for (const auto& [role, need] : needs) apps.push_back(MakeApp(settings, role, need, program));
  return {{"id", GroupId(settings.marathon, settings.job_id)}, {"apps", std::move(apps)}};
}

}  // namespace shoal::engine::marathon
