// Marathon: one app, a list of apps, or a group of apps and groups (JSON, which is read as YAML).
// Apps with DMLC_ROLE in their environment are the roles of a ps-lite job.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "dialect/import/idle_tail.h"
#include "dialect/import/importer.h"
#include "dialect/import/marathon_health.h"
#include "dialect/import/marathon_settings.h"
#include "job/units.h"

namespace shoal::dialect {
namespace {

using job::Framework;
using job::RestartWhen;
using job::SuccessRule;

constexpr int kForEver = 1000;
constexpr int kMaxDepth = 16;
constexpr size_t kMostPorts = 15;
constexpr size_t kLongestPort = 15;
constexpr size_t kMostOrders = 256;

// What Marathon gives back of an app that runs.
constexpr Unkept kApp[] = {
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

constexpr Unkept kGroup[] = {
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

const job::Node* EnvOf(const job::Node& app, const char* name) {
  const job::Node* env = app.Find("env");
  const job::Node* found = env == nullptr ? nullptr : env->Find(name);
  return found != nullptr && found->kind == job::Node::Kind::kScalar ? found : nullptr;
}

// True if some app below says which role of ps-lite it is.
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

class Reader {
 public:
  Reader(const job::Node& document, JobBuilder* builder) : document_(document), builder_(builder) {}

  void Run();

 private:
  void ReadGroup(Section group, const std::string& base, int depth);
  void ReadApp(Section app, const std::string& base);
  void ReadCommand(Section* app, job::Role* role);
  void ReadResources(Section* app, job::Role* role);
  void ReadEnvironment(Section* app, job::Role* role);
  void ReadContainer(Section* app, job::Role* role);
  void ReadVolumes(Section* container, const std::string& at);
  void ReadPorts(Section* app, job::Role* role);
  void AddPort(Section* port, const std::string& number_field, bool required, job::Role* role);
  void NamePort(const std::string& name, int64_t declared, Section* from, job::Role* role);
  void TellNumber(const std::string& field, int64_t number, bool required, size_t index,
                  Section* port);
  void ReadRestart(Section* app, job::Role* role);
  void ReadDependencies(Section* section, const std::string& id);
  void SetOrder();
  std::string WrapPorts(job::Role* role, const std::string& id);
  void CheckCounts();

  struct Order {
    std::string id;
    std::string after;
    job::Place place;
    std::string field;
  };

  const job::Node& document_;
  JobBuilder* const builder_;
  struct MarathonPort {
    std::string name;   // the app's
    std::string plain;  // the role's
    int64_t declared;   // the number in PORT_NUMBER; 0: none
  };

  std::map<std::string, std::string> ids_;                  // a role → its app's id
  std::map<std::string, std::vector<MarathonPort>> ports_;  // of a role
  std::vector<Order> orders_;
  MarathonSettings settings_;
  std::map<std::string, std::pair<int, job::Place>> counts_;  // DMLC_NUM_… → what a file says
};

void Reader::Run() {
  const bool ps_lite = IsPsLite(document_);
  builder_->job()->framework = ps_lite ? Framework::kPsLite : Framework::kGeneric;
  if (document_.kind == job::Node::Kind::kList) {
    for (const job::Node& item : document_.items) {
      if (item.kind == job::Node::Kind::kMap) {
        ReadGroup(Section(item, "", "", builder_->notes()), "/", 0);
      } else {
        builder_->notes()->Wrong(item.place, "", "got " + job::Tell(item) + ", expected an app");
      }
    }
  } else {
    ReadGroup(Section(document_, "", "", builder_->notes()), "/", 0);
  }
  job::Job& job = *builder_->job();
  if (job.roles.empty()) {
    if (builder_->notes()->ok()) {
      builder_->notes()->Wrong(document_.place, "", "got no app, expected at least one in apps");
    }
    return;
  }
  settings_.Settle(builder_);
  CheckCounts();
  SetOrder();
  if (ps_lite && builder_->FindRole("worker") != nullptr) {
    builder_->SetSuccess(SuccessRule::kAll, {"worker"});
  } else if (!ps_lite) {
    std::vector<std::string> all;
    for (const job::Role& role : job.roles) all.push_back(role.name);
    builder_->SetSuccess(SuccessRule::kAll, all);
  }
  builder_->notes()->Lose(
      document_.place, "",
      "Marathon keeps apps running and starts also tasks again that have ended with 0; not kept: a "
      "job's task that has ended well has ended, and the job ends with its tasks",
      "success");
}

// A group, or what is an app itself.
void Reader::ReadGroup(Section group, const std::string& base, int depth) {
  const bool is_group = group.Has("apps") || group.Has("groups");
  const std::string id = group.Text("id").value_or("");
  if (builder_->job()->name.empty()) builder_->SetName(PlainName(id, 63));
  if (!is_group) return ReadApp(group, base);
  if (depth > kMaxDepth) return group.Wrong("groups", "got groups nested too deep");

  const std::string whole = Absolute(base, id);
  ReadDependencies(&group, whole);
  for (Section& app : group.Subs("apps")) ReadApp(app, whole);
  for (Section& below : group.Subs("groups")) ReadGroup(below, whole, depth + 1);
  group.Rest("MarathonGroupUpdate", kGroup);
}

// Of an app, or of a group for all apps in it.
void Reader::ReadDependencies(Section* section, const std::string& id) {
  const std::string parent = id.substr(0, id.rfind('/') + 1);
  for (const std::string& other : section->Texts("dependencies")) {
    if (orders_.size() >= kMostOrders) return;
    orders_.push_back({id, Absolute(parent, other), section->PlaceOf("dependencies"),
                       section->PathOf("dependencies")});
  }
}

// When all apps are known. Marathon waits until those before are healthy; `after` waits until they
// are ready.
void Reader::SetOrder() {
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
    builder_->notes()->Lose(order.place, order.field,
                            "it was started after " + job::Shown(order.after) +
                                "; not kept: no app of that name is in the file",
                            "roles");
  }
}

void Reader::ReadApp(Section app, const std::string& base) {
  const std::string id = Absolute(base, app.Text("id").value_or(""));
  const auto& roles = builder_->job()->roles;
  std::string name = LastOf(id);
  const job::Node* env = app.Take("env");
  const job::Node* dmlc = env == nullptr ? nullptr : env->Find("DMLC_ROLE");
  if (dmlc != nullptr && dmlc->kind == job::Node::Kind::kScalar) {
    name = dmlc->text;
    if (builder_->FindRole(name) != nullptr) {
      return app.Wrong("env", "got a second app with DMLC_ROLE " + job::Shown(name) +
                                  ", expected one for each role; give it more instances");
    }
  }

  job::Role* role = builder_->AddRole(name, app.place(), app.path());
  app.set_at("roles." + role->name);
  role->replicas = static_cast<int>(app.Integer("instances", 0, job::kMaxReplicas).value_or(1));
  settings_.ReadApp(&app, role->name);
  ReadResources(&app, role);
  ReadEnvironment(&app, role);
  ReadContainer(&app, role);
  ReadPorts(&app, role);
  ReadCommand(&app, role);
  ReadRestart(&app, role);
  ReadMarathonHealth(&app, WrapPorts(role, id), role);
  ReadDependencies(&app, id);
  ids_[role->name] = id;
  if (const auto grace = app.Number("taskKillGracePeriodSeconds", 0, 3600)) {
    auto& limit = builder_->job()->limits.stop_grace;
    const std::chrono::milliseconds wanted(static_cast<int64_t>(std::llround(*grace * 1000)));
    limit = roles.size() == 1 ? wanted : std::max(limit, wanted);
  }
  TellNetworks(&app, "MarathonNetwork");
  app.Rest("MarathonApp", kApp);
}

void Reader::ReadCommand(Section* app, job::Role* role) {
  const auto line = app->Text("cmd");
  const std::vector<std::string> words = app->Texts("args");
  if (line && !words.empty()) {
    app->Wrong("args", "got args beside cmd, expected one of the two");
  } else if (line && !line->empty()) {
    role->command = {"sh", "-c", WithoutIdleTail(*line)};
    if (role->command.back() != *line) {
      app->Lose("cmd",
                "its end " + job::Shown(line->substr(role->command[2].size())) +
                    " kept Marathon from starting it again; left out: a task that has ended has "
                    "ended; if the program goes on by itself, let it stay in the foreground");
    }
  } else if (!words.empty() && !app->Has("container")) {
    role->command = words;
  } else {
    builder_->SetEntryPoint(role, words, app, words.empty() ? "" : "args");
  }
}

void Reader::ReadResources(Section* app, job::Role* role) {
  role->resources.cpu = app->Number("cpus", 0, job::kMaxCpus).value_or(0);
  if (const auto mem = app->Number("mem", 1, static_cast<double>(job::kMaxMemoryBytes >> 20))) {
    role->resources.memory_bytes = static_cast<int64_t>(std::ceil(*mem)) << 20;
  }
  role->resources.gpu = static_cast<int>(app->Integer("gpus", 0, job::kMaxGpus).value_or(0));
}

void Reader::ReadEnvironment(Section* app, job::Role* role) {
  auto env = app->Sub("env");
  if (!env) return;
  env->set_at("roles." + role->name + ".env");
  for (const auto& [key, node] : env->All()) {
    if (key.text == "DMLC_NUM_WORKER" || key.text == "DMLC_NUM_SERVER") {
      const auto number = env->Integer(key.text, 0, job::kMaxReplicas);
      counts_[key.text] = {static_cast<int>(number.value_or(-1)), node->place};
    }
    if (settings_.ReadSecret(key.text, *node, &*env)) continue;
    if (node->kind == job::Node::Kind::kMap) {
      env->Lose(key.text, key.text + " came from a secret; not kept: give it with --set roles." +
                              role->name + ".env." + key.text + "=VALUE");
    } else if (node->kind == job::Node::Kind::kList) {
      env->Wrong(key.text, "got a list, expected a text");
    } else {
      Section at(*node, env->PathOf(key.text), env->at(), builder_->notes());
      builder_->SetVariable(role, key.text, node->text, &at);
    }
  }
}

void Reader::ReadContainer(Section* app, job::Role* role) {
  auto container = app->Sub("container");
  if (!container) return;
  if (auto docker = container->Sub("docker")) {
    if (const auto image = docker->Text("image")) builder_->SetImage(*image, *role, &*docker);
    for (Section& port : docker->Subs("portMappings")) AddPort(&port, "hostPort", false, role);
    const auto network = docker->Text("network");
    if (network && *network != "HOST") {
      docker->Lose("network", "its tasks had the network " + job::Shown(*network) +
                                  "; not kept: they share their machine's");
    }
    settings_.ReadDocker(&*docker, role->name);
    docker->Rest("MarathonDockerContainer");
  }
  for (Section& port : container->Subs("portMappings")) AddPort(&port, "hostPort", false, role);
  ReadVolumes(&*container, "roles." + role->name + ".command");
  container->Rest("MarathonContainer");
}

void Reader::ReadVolumes(Section* container, const std::string& at) {
  for (Section& volume : container->Subs("volumes")) {
    volume.set_at(at);
    const std::string inside = volume.Text("containerPath").value_or("");
    const std::string host = volume.Text("hostPath").value_or("");
    if (!host.empty() && host == inside) {
      // The same there and here.
    } else if (!host.empty()) {
      volume.Lose("hostPath", "the program found the host's " + host + " at " + inside +
                                  "; not kept: tasks see the machine's own files; let it read " +
                                  host);
    } else {
      volume.Lose("containerPath", "the program found a volume at " + inside +
                                       "; not kept: tasks see the machine's own files; have the "
                                       "data at that path");
    }
    volume.Rest("MarathonAppVolume");
  }
}

// One more port of the app's, by its name there; its name here is one that the role has not yet.
void Reader::NamePort(const std::string& name, int64_t declared, Section* from, job::Role* role) {
  std::vector<MarathonPort>& ports = ports_[role->name];
  if (ports.size() >= kMostPorts) {
    return from->Wrong("", "got more than " + std::to_string(kMostPorts) +
                               " ports, expected fewer: a task has so many at most");
  }
  const auto taken = [&](const std::string& one) {
    return std::any_of(role->ports.begin(), role->ports.end(),
                       [&](const job::Port& port) { return port.name == one; });
  };
  std::string plain = PlainName(name, kLongestPort);
  const std::string number = std::to_string(ports.size());
  for (const char* prefix : {"port", "port-", "p-"}) {
    if (plain.empty() || taken(plain)) plain = prefix + number;
  }
  ports.push_back({name.empty() ? plain : name, plain, declared});
  role->ports.push_back({plain, false});
}

void Reader::TellNumber(const std::string& field, int64_t number, bool required, size_t index,
                        Section* port) {
  if (number == 0) return;
  port->Lose(field,
             "port " + std::to_string(number) +
                 (required ? " itself was asked for (requirePorts)" : " was the service's") +
                 "; not kept: Shoal leases a free port and tells it in PORT" +
                 std::to_string(index),
             !required);
}

void Reader::AddPort(Section* port, const std::string& number_field, bool required,
                     job::Role* role) {
  port->set_at("roles." + role->name + ".ports");
  const int64_t number = port->Integer(number_field, 0, 65535).value_or(0);
  const int64_t inside = port->Integer("containerPort", 0, 65535).value_or(0);
  if (port->Text("protocol").value_or("tcp").find("udp") != std::string::npos) {
    port->Lose("protocol", "it was a port for UDP; not kept: Shoal leases ports for TCP");
  }
  const std::string name = port->Text("name").value_or("");
  const bool mapping = number_field == "hostPort";
  port->Rest(mapping ? "MarathonContainerPortMapping" : "MarathonPortDefinition");
  const size_t index = role->ports.size();
  NamePort(name, mapping ? inside : number, port, role);
  // A port of the host that a mapping names is that port.
  TellNumber(number_field, number, required || mapping, index, port);
  if (inside == 0) return;
  port->Lose("containerPort", "the program listened at port " + std::to_string(inside) +
                                  " in a network of its container's own; not kept: tasks share "
                                  "their machine's; let it listen at $PORT" +
                                  std::to_string(index));
}

void Reader::ReadPorts(Section* app, job::Role* role) {
  const bool required = app->Flag("requirePorts").value_or(false);
  for (Section& port : app->Subs("portDefinitions")) AddPort(&port, "port", required, role);
  const job::Node* ports = app->Take("ports");
  if (ports == nullptr) return;
  if (ports->kind != job::Node::Kind::kList) {
    return app->Wrong("ports", "got " + job::Tell(*ports) + ", expected a list of numbers");
  }
  Section told = *app;
  told.set_at("roles." + role->name + ".ports");
  for (const job::Node& port : ports->items) {
    const auto number = job::ParseInteger(port.text);
    if (!number || *number < 0 || *number > 65535) {
      return app->Wrong("ports", "got " + job::Tell(port) + ", expected a port, or 0 for any");
    }
    NamePort("", *number, app, role);
    TellNumber("ports", *number, required, role->ports.size() - 1, &told);
  }
}

void Reader::ReadRestart(Section* app, job::Role* role) {
  role->restart.when = RestartWhen::kAlways;
  role->restart.limit = kForEver;
  role->restart.backoff = std::chrono::seconds(1);
  role->restart.backoff_max = std::chrono::seconds(300);
  if (const auto seconds = app->Number("backoffSeconds", 0, 3600)) {
    role->restart.backoff = std::chrono::milliseconds(std::llround(*seconds * 1000));
  }
  if (const auto seconds = app->Number("maxLaunchDelaySeconds", 0, 3600)) {
    role->restart.backoff_max = std::chrono::milliseconds(std::llround(*seconds * 1000));
  }
  role->restart.backoff_max = std::max(role->restart.backoff_max, role->restart.backoff);
}

// Marathon's own names for the ports, for programs that read them. ps-lite's get theirs by its
// framework. Gives the line that stands before the command now; may be empty.
std::string Reader::WrapPorts(job::Role* role, const std::string& id) {
  if (builder_->job()->framework == Framework::kPsLite) {
    // Its programs have one port each, by preset; further ones stay.
    role->ports.clear();
    return "";
  }
  if (!id.empty()) role->env.try_emplace("MARATHON_APP_ID", id);
  role->env.try_emplace("HOST", "{{shoal.host}}");
  if (role->ports.empty() || role->command.empty()) {
    if (!role->ports.empty()) {
      builder_->notes()->Lose({}, id,
                              "PORT0 … are not set before an image's own entry point; its ports "
                              "are in SHOAL_PORT_…: give it a command that reads them",
                              "roles." + role->name);
    }
    return "";
  }
  std::string sets = "export";
  // An app's own variables come first.
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!role->env.contains(name)) sets += " " + name + "=" + value;
  };
  std::string list;
  add("PORT", "$SHOAL_PORT");
  const std::vector<MarathonPort>& ports = ports_[role->name];
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string value = "$SHOAL_PORT_" + VariableName(ports[i].plain);
    add("PORT" + std::to_string(i), value);
    add("PORT_" + VariableName(ports[i].name), value);
    if (ports[i].declared != 0) add("PORT_" + std::to_string(ports[i].declared), value);
    list += (list.empty() ? "" : ",") + value;
  }
  add("PORTS", list);
  if (sets == "export") return "";
  SayBefore(sets, role);
  return sets;
}

// The numbers that Shoal tells are those of the roles; a file that says others is told.
void Reader::CheckCounts() {
  for (const auto& [variable, count] : counts_) {
    const std::string name = variable == "DMLC_NUM_WORKER" ? "worker" : "server";
    const job::Role* role = builder_->FindRole(name);
    const int there = role == nullptr ? 0 : role->replicas;
    if (count.first == there) continue;
    builder_->notes()->Lose(count.second, variable,
                            "said " + std::to_string(count.first) + ", and the apps make " +
                                std::to_string(there) + "; programs are told " +
                                std::to_string(there) + "; change roles." + name + ".replicas",
                            "roles." + name + ".replicas");
  }
}

class Marathon final : public Importer {
 public:
  std::string Recognise(const job::Node& document) const override {
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
    Reader(document, builder).Run();
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

}  // namespace shoal::dialect
