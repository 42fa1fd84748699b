// Marathon: one app, a list of apps, or nested groups of apps, as JSON (read as YAML). Apps with
// DMLC_ROLE in their environment are the roles of a ps-lite job.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "import/conversion/importer.h"
#include "import/marathon/marathon_health.h"
#include "import/marathon/marathon_settings.h"
#include "import/marathon/marathon_variables.h"
#include "import/marathon/trailing_sleep.h"
#include "job/spec/cluster_reference.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::Framework;
using job::RestartWhen;
using job::SuccessRule;

constexpr int kMaxDepth = 16;
constexpr size_t kMostPorts = 15;
constexpr size_t kLongestPort = 15;
constexpr size_t kMostOrders = 256;

// Fields that Marathon's API adds to a running app.
constexpr UnsupportedField kApp[] = {
    {"taskStats", "how its tasks fare", "a new run has its own", true},
    {"tasksStats", "how its tasks fare", "a new run has its own", true},
    {"tasksStaged", "how many tasks begin", "a new run has its own", true},
    {"tasksRunning", "how many tasks run", "a new run has its own", true},
    {"tasksHealthy", "how many tasks are well", "a new run has its own", true},
    {"tasksUnhealthy", "how many tasks are not well", "a new run has its own", true},
    {"tasks", "which tasks run", "a new run has its own", true},
    {"lastTaskFailure", "how a task failed", "a new run has its own", true},
    {"readinessCheckResults", "which tasks are ready", "a new run has its own", true},
    {"deployments", "which changes are under way", "a new run has its own", true},
    {"networkBandwidth", "how much of the network it gets", "it is not limited", true},
};

constexpr UnsupportedField kGroup[] = {
    {"pods", "pods of several containers", "make each container an app of its own"},
};

// "/ml/word2vec/worker" → "worker".
std::string LastOf(const std::string& id) {
  const size_t end = id.find_last_not_of('/');
  if (end == std::string::npos) return "app";
  const size_t slash = id.rfind('/', end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return id.substr(begin, end + 1 - begin);
}

// "train" in the group "/ml" is "/ml/train".
std::string Absolute(const std::string& base, const std::string& id) {
  if (id.empty() || id.front() == '/') return id;
  return base + (base.empty() || base.back() != '/' ? "/" : "") + id;
}

// The value of an environment variable of an app; nullptr if it is missing or not a text.
const job::Node* EnvOf(const job::Node& app, const char* name) {
  const job::Node* env = app.Find("env");
  const job::Node* found = env == nullptr ? nullptr : env->Find(name);
  return found != nullptr && found->kind == job::Node::Kind::kScalar ? found : nullptr;
}

// True if an app in this subtree sets DMLC_ROLE.
bool IsPsLite(const job::Node& node, int depth = 0) {
  if (EnvOf(node, "DMLC_ROLE") != nullptr) return true;
  if (depth > kMaxDepth) return false;
  if (node.kind == job::Node::Kind::kList) {
    return std::any_of(node.items.begin(), node.items.end(),
                       [&](const job::Node& item) { return IsPsLite(item, depth + 1); });
  }
  for (const char* name : {"apps", "groups"}) {
    const job::Node* below = node.Find(name);
    if (below != nullptr && IsPsLite(*below, depth + 1)) return true;
  }
  return false;
}

// Imports one document: each app becomes a role. Run reads all apps and groups, then resolves
// dependencies and settings that concern the whole job.
class MarathonReader {
 public:
  MarathonReader(const job::Node& document, JobBuilder* builder)
      : document_(document), builder_(builder) {}

  void Run();

 private:
  void ReadGroup(FieldReader group, const std::string& base, int depth);
  void ReadApp(FieldReader app, const std::string& base);
  // The command, arguments, or the image's entry point.
  void ReadCommand(FieldReader* app, job::Role* role);
  void ReadResources(FieldReader* app, job::Role* role);
  void ReadEnvironment(FieldReader* app, job::Role* role);
  void ReadContainer(FieldReader* app, job::Role* role);
  void ReadVolumes(FieldReader* container, const std::string& at);
  void ReadPorts(FieldReader* app, job::Role* role);
  // Adds a declared port; reports fixed numbers, because Shoal leases free ports.
  void AddPort(FieldReader* port, const std::string& number_field, bool required, job::Role* role);
  void NamePort(const std::string& name, int64_t declared, FieldReader* from, job::Role* role);
  void ReportPortNumber(const std::string& field, int64_t number, bool required, size_t index,
                        FieldReader* port);
  void ReadRestart(FieldReader* app, job::Role* role);
  void ReadDependencies(FieldReader* section, const std::string& id);
  void SetOrder();
  std::string DefinePortVariables(job::Role* role, const std::string& id);
  // Compares DMLC_NUM_… in the file with the number of tasks.
  void CheckCounts();

  // A dependency between two apps or groups, resolved when all apps are known.
  struct Order {
    std::string id;
    std::string after;
    job::SourceLocation place;
    std::string field;
  };

  const job::Node& document_;
  JobBuilder* const builder_;
  // A port under both names.
  struct MarathonPort {
    std::string name;   // the app's
    std::string plain;  // the role's
    int64_t declared;   // the number in PORT_NUMBER; 0: none
  };

  std::map<std::string, std::string> ids_;                  // role → app id
  std::map<std::string, std::vector<MarathonPort>> ports_;  // of a role
  std::vector<Order> orders_;
  MarathonSettings settings_;
  std::map<std::string, std::pair<int, job::SourceLocation>>
      counts_;  // DMLC_NUM_… → value in the file
};

void MarathonReader::Run() {
  const bool ps_lite = IsPsLite(document_);
  builder_->job()->framework = ps_lite ? Framework::kPsLite : Framework::kGeneric;
  if (document_.kind == job::Node::Kind::kList) {
    for (const job::Node& item : document_.items) {
      if (item.kind == job::Node::Kind::kMap) {
        ReadGroup(FieldReader(item, "", "", builder_->diagnostics()), "/", 0);
      } else {
        builder_->diagnostics()->AddError(item.place, "",
                                          "got " + job::DescribeNode(item) + ", expected an app");
      }
    }
  } else {
    ReadGroup(FieldReader(document_, "", "", builder_->diagnostics()), "/", 0);
  }
  job::Job& job = *builder_->job();
  if (job.roles.empty()) {
    if (builder_->diagnostics()->ok()) {
      builder_->diagnostics()->AddError(document_.place, "",
                                        "got no app, expected at least one in apps");
    }
    return;
  }
  settings_.AddToJob(builder_);
  CheckCounts();
  SetOrder();
  if (ps_lite && builder_->FindRole("worker") != nullptr) {
    builder_->SetSuccess(SuccessRule::kAll, {"worker"});
  } else if (!ps_lite) {
    std::vector<std::string> all;
    for (const job::Role& role : job.roles) all.push_back(role.name);
    builder_->SetSuccess(SuccessRule::kAll, all);
  }
  builder_->diagnostics()->AddLoss(
      document_.place, "",
      "Marathon keeps apps running and starts also tasks again that have ended with 0; not kept: a "
      "job's task that has ended well has ended, and the job ends with its tasks",
      "success");
}

// Reads a group, or an app without a group.
void MarathonReader::ReadGroup(FieldReader group, const std::string& base, int depth) {
  const bool is_group = group.HasField("apps") || group.HasField("groups");
  const std::string id = group.ReadText("id").value_or("");
  if (builder_->job()->name.empty()) builder_->SetName(ToRoleName(id, 63));
  if (!is_group) return ReadApp(group, base);
  if (depth > kMaxDepth) return group.AddError("groups", "got groups nested too deep");

  const std::string whole = Absolute(base, id);
  ReadDependencies(&group, whole);
  for (FieldReader& app : group.ReadObjects("apps")) ReadApp(app, whole);
  for (FieldReader& below : group.ReadObjects("groups")) ReadGroup(below, whole, depth + 1);
  group.ReportUnread("MarathonGroupUpdate", kGroup);
}

// Dependencies of an app, or of a group, which apply to all of its apps.
void MarathonReader::ReadDependencies(FieldReader* section, const std::string& id) {
  const std::string parent = id.substr(0, id.rfind('/') + 1);
  for (const std::string& other : section->ReadTexts("dependencies")) {
    if (orders_.size() >= kMostOrders) return;
    orders_.push_back({id, Absolute(parent, other), section->PlaceOf("dependencies"),
                       section->PathOf("dependencies")});
  }
}

// Call when all apps are known. Marathon waits until dependencies are healthy; `after` waits until
// they are ready.
void MarathonReader::SetOrder() {
  const auto in = [](const std::string& app, const std::string& id) {
    return app == id || app.starts_with(id + "/");
  };
  for (const Order& order : orders_) {
    bool found = false;
    for (const auto& [later, later_id] : ids_) {
      if (!in(later_id, order.id)) continue;
      job::Role* role = builder_->FindRole(later);
      if (role == nullptr) continue;
      std::vector<std::string>& roles = role->after.roles;
      for (const auto& [earlier, earlier_id] : ids_) {
        if (!in(earlier_id, order.after) || earlier == later) continue;
        found = true;
        if (std::find(roles.begin(), roles.end(), earlier) == roles.end()) roles.push_back(earlier);
      }
    }
    if (found) continue;
    builder_->diagnostics()->AddLoss(order.place, order.field,
                                     "it was started after " + job::PrintableText(order.after) +
                                         "; not kept: no app of that name is in the file",
                                     "roles");
  }
}

void MarathonReader::ReadApp(FieldReader app, const std::string& base) {
  const std::string id = Absolute(base, app.ReadText("id").value_or(""));
  const auto& roles = builder_->job()->roles;
  std::string name = LastOf(id);
  const job::Node* env = app.ReadNode("env");
  const job::Node* dmlc = env == nullptr ? nullptr : env->Find("DMLC_ROLE");
  if (dmlc != nullptr && dmlc->kind == job::Node::Kind::kScalar) {
    name = dmlc->text;
    if (builder_->FindRole(name) != nullptr) {
      return app.AddError("env", "got a second app with DMLC_ROLE " + job::PrintableText(name) +
                                     ", expected one for each role; give it more instances");
    }
  }

  job::Role* role = builder_->AddRole(name, app.place(), app.path());
  app.set_at("roles." + role->name);
  role->replicas = static_cast<int>(app.ReadInteger("instances", 0, job::kMaxReplicas).value_or(1));
  settings_.ReadApp(&app, role->name);
  ReadResources(&app, role);
  ReadEnvironment(&app, role);
  ReadContainer(&app, role);
  ReadPorts(&app, role);
  ReadCommand(&app, role);
  ReadRestart(&app, role);
  if (builder_->job()->framework != Framework::kPsLite) SetMarathonVariables(app, id, role);
  ReadMarathonHealth(&app, DefinePortVariables(role, id), role);
  ReadDependencies(&app, id);
  ids_[role->name] = id;
  if (const auto grace = app.ReadNumber("taskKillGracePeriodSeconds", 0, 3600)) {
    auto& limit = builder_->job()->limits.stop_grace;
    const std::chrono::milliseconds wanted(static_cast<int64_t>(std::llround(*grace * 1000)));
    limit = roles.size() == 1 ? wanted : std::max(limit, wanted);
  }
  ReportNetworks(&app, "MarathonNetwork");
  app.ReportUnread("MarathonApp", kApp);
}

void MarathonReader::ReadCommand(FieldReader* app, job::Role* role) {
  const auto line = app->ReadText("cmd");
  const std::vector<std::string> words = app->ReadTexts("args");
  if (line && !words.empty()) {
    app->AddError("args", "got args beside cmd, expected one of the two");
  } else if (line && !line->empty()) {
    role->command = {"sh", "-c", StripTrailingSleep(*line)};
    if (role->command.back() != *line) {
      app->AddLoss("cmd",
                   "its end " + job::PrintableText(line->substr(role->command[2].size())) +
                       " kept Marathon from starting it again; left out: a task that has ended has "
                       "ended; if the program goes on by itself, let it stay in the foreground");
    }
  } else if (!words.empty() && !app->HasField("container")) {
    role->command = words;
  } else {
    builder_->SetEntryPoint(role, words, app, words.empty() ? "" : "args");
  }
}

void MarathonReader::ReadResources(FieldReader* app, job::Role* role) {
  // Marathon's defaults of an app.
  role->resources.cpu = app->ReadNumber("cpus", 0, job::kMaxCpus).value_or(1);
  const double most = static_cast<double>(job::kMaxMemoryBytes >> 20);
  const double mib = app->ReadNumber("mem", 1, most).value_or(128);
  role->resources.memory_bytes = static_cast<int64_t>(std::ceil(mib)) << 20;
  role->resources.gpu = static_cast<int>(app->ReadInteger("gpus", 0, job::kMaxGpus).value_or(0));
}

void MarathonReader::ReadEnvironment(FieldReader* app, job::Role* role) {
  auto env = app->ReadObject("env");
  if (!env) return;
  env->set_at("roles." + role->name + ".env");
  for (const auto& [key, node] : env->ReadAll()) {
    if (key.text == "DMLC_NUM_WORKER" || key.text == "DMLC_NUM_SERVER") {
      const auto number = env->ReadInteger(key.text, 0, job::kMaxReplicas);
      counts_[key.text] = {static_cast<int>(number.value_or(-1)), node->place};
    }
    if (settings_.ReadSecret(key.text, *node, &*env)) continue;
    if (node->kind == job::Node::Kind::kMap) {
      env->AddLoss(key.text, key.text + " came from a secret; not kept: give it with --set roles." +
                                 role->name + ".env." + key.text + "=VALUE");
    } else if (node->kind == job::Node::Kind::kList) {
      env->AddError(key.text, "got a list, expected a text");
    } else {
      FieldReader at(*node, env->PathOf(key.text), env->at(), builder_->diagnostics());
      builder_->SetVariable(role, key.text, job::EscapeReferences(node->text), &at);
    }
  }
}

void MarathonReader::ReadContainer(FieldReader* app, job::Role* role) {
  auto container = app->ReadObject("container");
  if (!container) return;
  if (auto docker = container->ReadObject("docker")) {
    if (const auto image = docker->ReadText("image")) builder_->SetImage(*image, *role, &*docker);
    for (FieldReader& port : docker->ReadObjects("portMappings"))
      AddPort(&port, "hostPort", false, role);
    const auto network = docker->ReadText("network");
    if (network && *network != "HOST") {
      docker->AddLoss("network", "its tasks had the network " + job::PrintableText(*network) +
                                     "; not kept: they share their machine's");
    }
    settings_.ReadDocker(&*docker, role->name);
    docker->ReportUnread("MarathonDockerContainer");
  }
  for (FieldReader& port : container->ReadObjects("portMappings"))
    AddPort(&port, "hostPort", false, role);
  ReadVolumes(&*container, "roles." + role->name + ".command");
  container->ReportUnread("MarathonContainer");
}

void MarathonReader::ReadVolumes(FieldReader* container, const std::string& at) {
  for (FieldReader& volume : container->ReadObjects("volumes")) {
    volume.set_at(at);
    const std::string inside = volume.ReadText("containerPath").value_or("");
    const std::string host = volume.ReadText("hostPath").value_or("");
    if (!host.empty() && host == inside) {
      // Same meaning in both systems.
    } else if (!host.empty()) {
      volume.AddLoss("hostPath", "the program found the host's " + host + " at " + inside +
                                     "; not kept: tasks see the machine's own files; let it read " +
                                     host);
    } else {
      volume.AddLoss("containerPath", "the program found a volume at " + inside +
                                          "; not kept: tasks see the machine's own files; have the "
                                          "data at that path");
    }
    volume.ReportUnread("MarathonAppVolume");
  }
}

// Adds a port. The role's name for it is made unique.
void MarathonReader::NamePort(const std::string& name, int64_t declared, FieldReader* from,
                              job::Role* role) {
  std::vector<MarathonPort>& ports = ports_[role->name];
  if (ports.size() >= kMostPorts) {
    return from->AddError("", "got more than " + std::to_string(kMostPorts) +
                                  " ports, expected fewer: a task has so many at most");
  }
  const auto taken = [&](const std::string& one) {
    return std::any_of(role->ports.begin(), role->ports.end(),
                       [&](const job::Port& port) { return port.name == one; });
  };
  std::string plain = ToRoleName(name, kLongestPort);
  const std::string number = std::to_string(ports.size());
  for (const char* prefix : {"port", "port-", "p-"}) {
    if (plain.empty() || taken(plain)) plain = prefix + number;
  }
  ports.push_back({name.empty() ? plain : name, plain, declared});
  role->ports.push_back({plain, false});
}

void MarathonReader::ReportPortNumber(const std::string& field, int64_t number, bool required,
                                      size_t index, FieldReader* port) {
  if (number == 0) return;
  port->AddLoss(field,
                "port " + std::to_string(number) +
                    (required ? " itself was asked for (requirePorts)" : " was the service's") +
                    "; not kept: Shoal leases a free port and tells it in PORT" +
                    std::to_string(index),
                !required);
}

void MarathonReader::AddPort(FieldReader* port, const std::string& number_field, bool required,
                             job::Role* role) {
  port->set_at("roles." + role->name + ".ports");
  const int64_t number = port->ReadInteger(number_field, 0, 65535).value_or(0);
  const int64_t inside = port->ReadInteger("containerPort", 0, 65535).value_or(0);
  if (port->ReadText("protocol").value_or("tcp").find("udp") != std::string::npos) {
    port->AddLoss("protocol", "it was a port for UDP; not kept: Shoal leases ports for TCP");
  }
  const std::string name = port->ReadText("name").value_or("");
  const bool mapping = number_field == "hostPort";
  port->ReportUnread(mapping ? "MarathonContainerPortMapping" : "MarathonPortDefinition");
  const size_t index = role->ports.size();
  NamePort(name, mapping ? inside : number, port, role);
  // A host port that a mapping names is that port.
  ReportPortNumber(number_field, number, required || mapping, index, port);
  if (inside == 0) return;
  port->AddLoss("containerPort", "the program listened at port " + std::to_string(inside) +
                                     " in a network of its container's own; not kept: tasks share "
                                     "their machine's; let it listen at $PORT" +
                                     std::to_string(index));
}

void MarathonReader::ReadPorts(FieldReader* app, job::Role* role) {
  const bool required = app->ReadFlag("requirePorts").value_or(false);
  for (FieldReader& port : app->ReadObjects("portDefinitions"))
    AddPort(&port, "port", required, role);
  const job::Node* ports = app->ReadNode("ports");
  // An app that names none has one, Marathon's default; an empty list asks for none.
  const bool none = ports == nullptr && !app->HasField("portDefinitions") && role->ports.empty();
  if (none) NamePort("default", 0, app, role);
  if (ports == nullptr) return;
  if (ports->kind != job::Node::Kind::kList) {
    return app->AddError("ports",
                         "got " + job::DescribeNode(*ports) + ", expected a list of numbers");
  }
  FieldReader told = *app;
  told.set_at("roles." + role->name + ".ports");
  for (const job::Node& port : ports->items) {
    const auto number = job::ParseInteger(port.text);
    if (!number || *number < 0 || *number > 65535) {
      return app->AddError("ports",
                           "got " + job::DescribeNode(port) + ", expected a port, or 0 for any");
    }
    NamePort("", *number, app, role);
    ReportPortNumber("ports", *number, required, role->ports.size() - 1, &told);
  }
}

void MarathonReader::ReadRestart(FieldReader* app, job::Role* role) {
  role->restart.when = RestartWhen::kAlways;
  role->restart.limit = kUnlimitedRestarts;
  role->restart.backoff = std::chrono::seconds(1);
  role->restart.backoff_max = std::chrono::seconds(300);
  if (const auto seconds = app->ReadNumber("backoffSeconds", 0, 3600)) {
    role->restart.backoff = std::chrono::milliseconds(std::llround(*seconds * 1000));
  }
  if (const auto seconds = app->ReadNumber("maxLaunchDelaySeconds", 0, INT32_MAX)) {
    const double most = 3600;  // of backoff_max
    role->restart.backoff_max =
        std::chrono::milliseconds(std::llround(std::min(*seconds, most) * 1000));
    if (*seconds > most)
      app->AddLoss("maxLaunchDelaySeconds",
                   "a failed task waited up to " + std::to_string(std::llround(*seconds)) +
                       " s; not kept: it waits at most an hour",
                   true);
  }
  role->restart.backoff_max = std::max(role->restart.backoff_max, role->restart.backoff);
}

// Defines Marathon's variables for ports (PORT0 …) for programs that read them; the framework
// serves ps-lite programs. Returns the shell prefix before the command; may be empty.
std::string MarathonReader::DefinePortVariables(job::Role* role, const std::string& id) {
  if (builder_->job()->framework == Framework::kPsLite) {
    // ps-lite programs have one port each by preset; further ports stay.
    role->ports.clear();
    return "";
  }
  role->env.try_emplace("HOST", "{{shoal.host}}");
  if (role->ports.empty() || role->command.empty()) {
    if (!role->ports.empty()) {
      builder_->diagnostics()->AddLoss(
          {}, id,
          "PORT0 … are not set before an image's own entry point; its ports "
          "are in SHOAL_PORT_…: give it a command that reads them",
          "roles." + role->name);
    }
    return "";
  }
  std::string sets = "export";
  // The app's own variables take precedence.
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!role->env.contains(name)) sets += " " + name + "=" + value;
  };
  std::string list;
  add("PORT", "$SHOAL_PORT");
  const std::vector<MarathonPort>& ports = ports_[role->name];
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string value = "$SHOAL_PORT_" + ToVariableName(ports[i].plain);
    add("PORT" + std::to_string(i), value);
    add("PORT_" + ToVariableName(ports[i].name), value);
    if (ports[i].declared != 0) add("PORT_" + std::to_string(ports[i].declared), value);
    list += (list.empty() ? "" : ",") + value;
  }
  add("PORTS", list);
  if (sets == "export") return "";
  PrependStatement(sets, role);
  return sets;
}

// Shoal sets DMLC_NUM_… from the number of tasks; different numbers in the file are reported.
void MarathonReader::CheckCounts() {
  for (const auto& [variable, count] : counts_) {
    const std::string name = variable == "DMLC_NUM_WORKER" ? "worker" : "server";
    const job::Role* role = builder_->FindRole(name);
    const int there = role == nullptr ? 0 : role->replicas;
    if (count.first == there) continue;
    builder_->diagnostics()->AddLoss(
        count.second, variable,
        "said " + std::to_string(count.first) + ", and the apps make " + std::to_string(there) +
            "; programs are told " + std::to_string(there) + "; change roles." + name + ".replicas",
        "roles." + name + ".replicas");
  }
}

class Marathon final : public Importer {
 public:
  std::string DetectKind(const job::Node& document) const override {
    if (document.kind == job::Node::Kind::kList) {
      return !document.items.empty() && IsApp(document.items[0]) ? "list of Marathon apps" : "";
    }
    if (document.kind != job::Node::Kind::kMap || document.Find("roles") != nullptr) return "";
    if (document.Find("apps") != nullptr || document.Find("groups") != nullptr) {
      return "Marathon group";
    }
    return IsApp(document) ? "Marathon app" : "";
  }
  void Import(const job::Node& document, JobBuilder* builder) const override {
    MarathonReader(document, builder).Run();
  }

 private:
  static bool IsApp(const job::Node& node) {
    if (node.kind != job::Node::Kind::kMap || node.Find("id") == nullptr) return false;
    for (const char* field : {"cmd", "args", "container", "instances", "apps", "groups"}) {
      if (node.Find(field) != nullptr) return true;
    }
    return false;
  }
};

}  // namespace

const Importer& MarathonImporter() {
  static const Marathon importer;
  return importer;
}

}  // namespace shoal::importer
