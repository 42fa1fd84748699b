#include "job/file/write_yaml.h"

#include <charconv>

#include "job/execution/plan.h"
#include "job/file/decode.h"
#include "job/file/trigger_fields.h"
#include "job/spec/cluster_reference.h"
#include "job/spec/enum_names.h"
#include "job/text/units.h"

namespace shoal::job {
namespace {

Node Number(int64_t value) { return PlainScalar(std::to_string(value)); }

Node Real(double value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return PlainScalar(error == std::errc() ? std::string(buffer, end) : "0");
}

Node Time(std::chrono::milliseconds value) { return PlainScalar(DurationText(value.count())); }

Node TextMap(const std::map<std::string, std::string>& map) {
  Node node;
  node.kind = Node::Kind::kMap;
  for (const auto& [key, text] : map) AddField(&node, key, TextScalar(text));
  return node;
}

// Variables, with secrets in their short form.
Node EnvironmentMap(const std::map<std::string, std::string>& env) {
  Node node;
  node.kind = Node::Kind::kMap;
  for (const auto& [variable, text] : env) {
    const auto secret = WholeSecret(text);
    Node value = TextScalar(text);
    if (secret) {
      value = Node();
      value.kind = Node::Kind::kMap;
      AddField(&value, secret->to == ReferenceTo::kSecretFile ? "secret_file" : "secret",
               TextScalar(secret->text));
    }
    AddField(&node, variable, std::move(value));
  }
  return node;
}

void AddUnlessEmpty(Node* map, const char* key, const std::string& text) {
  if (!text.empty()) AddField(map, key, TextScalar(text));
}

void AddUnlessEmpty(Node* map, const char* key, Node section) {
  if (!section.items.empty()) AddField(map, key, std::move(section));
}

// The roles as the parser completes them when they give nothing but `follows`, on which the
// framework's presets depend.
Job Baseline(const Job& job, bool follows) {
  JobDraft draft;
  draft.job.file = job.file;
  draft.job.name = job.name;
  draft.job.framework = job.framework;
  draft.job.command = job.command;
  draft.job.learn = job.learn;
  draft.job.success = job.success;
  draft.places.at["success"] = {};
  draft.places.at["roles"] = {};
  for (const Role& role : job.roles) {
    Role& bare = draft.job.roles.emplace_back();
    bare.name = role.name;
    bare.replicas = role.replicas;
    draft.places.at["roles." + role.name] = {};
    if (!follows) continue;
    bare.follows = role.follows;
    draft.places.at["roles." + role.name + ".follows"] = {};
  }
  ApplyDefaults(&draft);
  return std::move(draft.job);
}

Node ResourcesNode(const Resources& resources) {
  Node node;
  if (resources.cpu > 0) AddField(&node, "cpu", Real(resources.cpu));
  if (resources.memory_bytes > 0) {
    AddField(&node, "memory", PlainScalar(SizeText(resources.memory_bytes)));
  }
  if (resources.gpu > 0) AddField(&node, "gpu", Number(resources.gpu));
  Node requests;
  if (resources.cpu_request > 0) AddField(&requests, "cpu", Real(resources.cpu_request));
  if (resources.memory_request > 0) {
    AddField(&requests, "memory", PlainScalar(SizeText(resources.memory_request)));
  }
  AddUnlessEmpty(&node, "requests", std::move(requests));
  return node;
}

Node PortsNode(const std::vector<Port>& ports) {
  Node node;
  node.kind = Node::Kind::kList;
  for (const Port& port : ports) {
    if (!port.plain) {
      node.items.push_back(TextScalar(port.name));
      continue;
    }
    Node section;
    AddField(&section, "name", TextScalar(port.name));
    AddField(&section, "plain", PlainScalar("true"));
    node.items.push_back(std::move(section));
  }
  return node;
}

Node RestartNode(const Restart& restart, const Restart& base) {
  Node node;
  if (restart.when != base.when)
    AddField(&node, "when", PlainScalar(std::string(NameOf(restart.when))));
  if (restart.limit != base.limit) AddField(&node, "limit", Number(restart.limit));
  if (restart.scope != base.scope) {
    AddField(&node, "scope", PlainScalar(std::string(NameOf(restart.scope))));
  }
  if (restart.backoff != base.backoff) AddField(&node, "backoff", Time(restart.backoff));
  if (restart.backoff_max != base.backoff_max) {
    AddField(&node, "backoff_max", Time(restart.backoff_max));
  }
  return node;
}

Node RolesNode(const std::vector<std::string>& roles) {
  return roles.size() == 1 ? TextScalar(roles[0]) : TextListNode(roles);
}

Node AfterNode(const After& after) {
  Node node;
  if (after.roles.empty()) return node;
  AddField(&node, "role", RolesNode(after.roles));
  if (after.when != After{}.when) {
    AddField(&node, "when", PlainScalar(std::string(NameOfValue(kAfterWhens, after.when))));
  }
  return node;
}

Node ReadyNode(const Ready& ready) {
  const Ready usual;
  Node node;
  switch (ready.by) {
    case ReadyBy::kStart:
      return node;
    case ReadyBy::kTcp:
      AddField(&node, "tcp", TextScalar(ready.port));
      break;
    case ReadyBy::kHttp: {
      Node http;
      AddField(&http, "port", TextScalar(ready.port));
      if (ready.path != usual.path) AddField(&http, "path", TextScalar(ready.path));
      AddField(&node, "http", std::move(http));
      break;
    }
    case ReadyBy::kCommand:
      AddField(&node, "command", TextListNode(ready.command));
      break;
    case ReadyBy::kLog:
      AddField(&node, "log", TextScalar(ready.line));
      break;
  }
  if (ready.every != usual.every) AddField(&node, "every", Time(ready.every));
  if (ready.timeout != usual.timeout) AddField(&node, "timeout", Time(ready.timeout));
  return node;
}

Node HealthNode(const Health& health) {
  const Health usual;
  Ready probe;  // what the two have alike
  probe.by = health.by;
  probe.port = health.port;
  probe.path = health.path;
  probe.command = health.command;
  Node node = ReadyNode(probe);
  if (health.by == ReadyBy::kStart) return node;
  if (health.grace != usual.grace) AddField(&node, "grace", Time(health.grace));
  if (health.every != usual.every) AddField(&node, "every", Time(health.every));
  if (health.timeout != usual.timeout) AddField(&node, "timeout", Time(health.timeout));
  if (health.failures != usual.failures) AddField(&node, "failures", Number(health.failures));
  return node;
}

Node RuleNode(const char* key, Node what, EndAction action) {
  Node node;
  AddField(&node, key, std::move(what));
  AddField(&node, "action", PlainScalar(std::string(NameOfValue(kEndActions, action))));
  return node;
}

Node ExitRulesNode(const std::vector<ExitRule>& rules) {
  Node node;
  node.kind = Node::Kind::kList;
  for (const ExitRule& rule : rules) {
    node.items.push_back(RuleNode("code", PlainScalar(rule.code), rule.action));
  }
  return node;
}

Node LogRulesNode(const std::vector<LogRule>& rules) {
  Node node;
  node.kind = Node::Kind::kList;
  for (const LogRule& rule : rules) {
    node.items.push_back(RuleNode("line", TextScalar(rule.line), rule.action));
  }
  return node;
}

// Slurm settings common to role and job.
Node SlurmSettingsNode(const SlurmSettings& slurm) {
  Node node;
  AddUnlessEmpty(&node, "partition", slurm.partition);
  AddUnlessEmpty(&node, "account", slurm.account);
  AddUnlessEmpty(&node, "qos", slurm.qos);
  AddUnlessEmpty(&node, "constraint", slurm.constraint);
  AddUnlessEmpty(&node, "reservation", slurm.reservation);
  AddUnlessEmpty(&node, "gpu_type", slurm.gpu_type);
  if (slurm.nodes != 0) AddField(&node, "nodes", Number(slurm.nodes));
  if (!slurm.options.empty()) AddField(&node, "options", TextListNode(slurm.options));
  return node;
}

// In the file's form, "NAME=VALUE".
std::vector<std::string> Joined(const std::map<std::string, std::string>& pairs) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : pairs) texts.push_back(name + "=" + value);
  return texts;
}

// Kubernetes settings common to role and job.
void AddPods(const PodSettings& ask, Node* node) {
  const auto add_list = [&](const char* name, const std::vector<std::string>& texts) {
    if (!texts.empty()) AddField(node, name, TextListNode(texts));
  };
  add_list("labels", Joined(ask.labels));
  add_list("annotations", Joined(ask.annotations));
  add_list("node_selector", Joined(ask.node_selector));
  add_list("tolerations", ask.tolerations);
  AddUnlessEmpty(node, "service_account", ask.service_account);
  add_list("image_pull_secrets", ask.image_pull_secrets);
  AddUnlessEmpty(node, "priority_class", ask.priority_class);
  AddUnlessEmpty(node, "runtime_class", ask.runtime_class);
  add_list("volumes", ask.volumes);
  if (ask.host_network)
    AddField(node, "host_network", PlainScalar(*ask.host_network ? "true" : "false"));
  const auto add_pod_value = [&](const char* name, const std::string& text) {
    const Result<json::value> value = ParseJson(text.empty() ? "null" : text);
    if (value.ok() && !value->is_null()) AddField(node, name, FromJson(*value));
  };
  add_pod_value("affinity", ask.affinity);
  add_pod_value("topology_spread", ask.topology_spread);
  add_pod_value("security_context", ask.security_context);
  add_pod_value("container_security_context", ask.container_security_context);
}

Node PodsNode(const PodSettings& ask) {
  Node node;
  AddPods(ask, &node);
  return node;
}

Node RoleNode(const Role& role, const Role& base) {
  Node node;
  AddField(&node, "replicas", Number(role.replicas));
  if (role.min_replicas) AddField(&node, "min", Number(*role.min_replicas));
  if (role.max_replicas) AddField(&node, "max", Number(*role.max_replicas));
  if (role.processes != base.processes) AddField(&node, "processes", Number(role.processes));
  AddUnlessEmpty(&node, "resources", ResourcesNode(role.resources));
  if (role.command != base.command) AddField(&node, "command", TextListNode(role.command));
  if (!role.args.empty()) AddField(&node, "args", TextListNode(role.args));
  AddUnlessEmpty(&node, "env", EnvironmentMap(role.env));
  if (role.ports != base.ports) AddField(&node, "ports", PortsNode(role.ports));
  if (role.follows != base.follows) {
    AddField(&node, "follows", role.follows.empty() ? NullNode() : TextScalar(role.follows));
  }
  AddUnlessEmpty(&node, "restart", RestartNode(role.restart, base.restart));
  AddUnlessEmpty(&node, "on_exit", ExitRulesNode(role.on_exit));
  AddUnlessEmpty(&node, "on_log", LogRulesNode(role.on_log));
  if (role.checkpoint_signal != 0) {
    AddField(&node, "checkpoint_signal",
             PlainScalar(std::string(NameOfValue(kCheckpointSignals, role.checkpoint_signal))));
  }
  AddUnlessEmpty(&node, "after", AfterNode(role.after));
  AddUnlessEmpty(&node, "ready", ReadyNode(role.ready));
  AddUnlessEmpty(&node, "health", HealthNode(role.health));
  AddUnlessEmpty(&node, "slurm", SlurmSettingsNode(role.slurm));
  AddUnlessEmpty(&node, "kubernetes", PodsNode(role.kubernetes));
  return node;
}

Node RolesOf(const Job& job) {
  const Job without = Baseline(job, false);
  const Job with = Baseline(job, true);
  Node node;
  for (const Role& role : job.roles) {
    const Role* bare = with.FindRole(role.name);
    const Role* alone = without.FindRole(role.name);
    Role base = bare != nullptr ? *bare : Role{};
    base.follows = alone != nullptr ? alone->follows : "";
    AddField(&node, role.name, RoleNode(role, base));
  }
  return node;
}

Node DataNode(const Job& job) {
  Node node;
  for (const DataSource& data : job.data) {
    Node section;
    if (data.table.empty()) {
      AddField(&section, "source",
               data.sources.size() == 1 ? TextScalar(data.sources[0]) : TextListNode(data.sources));
    } else {
      AddField(&section, "table", TextScalar(data.table));
      if (!data.columns.empty()) AddField(&section, "columns", TextListNode(data.columns));
    }
    AddField(&section, "format", PlainScalar(data.format));
    AddUnlessEmpty(&section, "shard_by", data.shard_by);
    AddField(&node, data.name, std::move(section));
  }
  return node;
}

Node SuccessNode(const Success& success) {
  Node node;
  if (success.rule == SuccessRule::kCount) {
    AddField(&node, "count", Number(success.count));
    AddField(&node, "of", RolesNode(success.roles));
  } else {
    AddField(&node, std::string(NameOf(success.rule)), RolesNode(success.roles));
  }
  return node;
}

Node LimitsNode(const Limits& limits) {
  const Limits usual;
  Node node;
  const auto add = [&](const char* key, auto member) {
    if (limits.*member != usual.*member) AddField(&node, key, Time(limits.*member));
  };
  add("gather", &Limits::gather);
  add("deadline", &Limits::deadline);
  add("stall", &Limits::stall);
  add("stop_grace", &Limits::stop_grace);
  if (limits.restarts) AddField(&node, "restarts", Number(*limits.restarts));
  add("coordinator_timeout", &Limits::coordinator_timeout);
  if (limits.on_stall != usual.on_stall) {
    AddField(&node, "on_stall", PlainScalar(std::string(NameOfValue(kOnStalls, limits.on_stall))));
  }
  add("keep_records", &Limits::keep_records);
  return node;
}

Node CheckpointNode(const Checkpoint& checkpoint) {
  Node node;
  if (checkpoint.every.count() > 0) AddField(&node, "every", Time(checkpoint.every));
  if (checkpoint.keep != Checkpoint{}.keep) AddField(&node, "keep", Number(checkpoint.keep));
  return node;
}

Node ContainerNode(const Container& container) {
  Node node;
  if (!container.volumes.empty()) AddField(&node, "volumes", TextListNode(container.volumes));
  AddUnlessEmpty(&node, "work_dir", container.work_dir);
  AddUnlessEmpty(&node, "user", container.user);
  if (container.pids > 0) AddField(&node, "pids", Number(container.pids));
  if (container.shm_bytes > 0) AddField(&node, "shm", Number(container.shm_bytes));
  if (container.own_network) AddUnlessEmpty(&node, "network", "job");
  return node;
}

Node SlurmNode(const Slurm& slurm) {
  const Slurm usual;
  Node node = SlurmSettingsNode(slurm);
  if (slurm.time != usual.time) AddField(&node, "time", Time(slurm.time));
  if (slurm.save_before != usual.save_before)
    AddField(&node, "save_before", Time(slurm.save_before));
  if (!slurm.requeue) AddField(&node, "requeue", PlainScalar("false"));
  if (slurm.exclusive) AddField(&node, "exclusive", PlainScalar("true"));
  return node;
}

Node MarathonNode(const Marathon& marathon) {
  const Marathon usual;
  Node node;
  AddUnlessEmpty(&node, "url", marathon.url);
  if (marathon.group != usual.group) AddField(&node, "group", TextScalar(marathon.group));
  AddUnlessEmpty(&node, "authorities", marathon.authorities);
  AddUnlessEmpty(&node, "containerizer", marathon.containerizer);
  AddUnlessEmpty(&node, "program", marathon.program);
  AddUnlessEmpty(&node, "user", marathon.user);
  const auto list = [&](const char* name, const std::vector<std::string>& texts) {
    if (!texts.empty()) AddField(&node, name, TextListNode(texts));
  };
  list("constraints", marathon.constraints);
  list("fetch", marathon.fetch);
  list("accepted_roles", marathon.accepted_roles);
  list("parameters", marathon.parameters);
  AddUnlessEmpty(&node, "secrets", TextMap(marathon.secrets));
  if (marathon.backoff != usual.backoff) AddField(&node, "backoff", Time(marathon.backoff));
  if (marathon.longest_backoff != usual.longest_backoff)
    AddField(&node, "longest_backoff", Time(marathon.longest_backoff));
  if (marathon.unreachable != usual.unreachable)
    AddField(&node, "unreachable", Time(marathon.unreachable));
  if (marathon.port != usual.port) AddField(&node, "port", Number(marathon.port));
  if (marathon.privileged) AddField(&node, "privileged", PlainScalar("true"));
  if (marathon.force_pull) AddField(&node, "force_pull", PlainScalar("true"));
  return node;
}

Node ScheduleNode(const Schedule& schedule) {
  const Schedule usual;
  Node node;
  if (schedule.cron.empty()) return node;
  AddField(&node, "cron", TextScalar(schedule.cron));
  if (schedule.time_zone != usual.time_zone)
    AddField(&node, "time_zone", TextScalar(schedule.time_zone));
  if (schedule.concurrency != usual.concurrency)
    AddField(&node, "concurrency",
             PlainScalar(std::string(NameOfValue(kConcurrencies, schedule.concurrency))));
  if (schedule.missed != usual.missed)
    AddField(&node, "missed", PlainScalar(std::string(NameOfValue(kMissedRuns, schedule.missed))));
  if (schedule.start_deadline != usual.start_deadline)
    AddField(&node, "start_deadline", Time(schedule.start_deadline));
  if (!schedule.enabled) AddField(&node, "enabled", PlainScalar("false"));
  AddUnlessEmpty(&node, "secrets", TextMap(schedule.secrets));
  return node;
}

Node KubernetesNode(const Kubernetes& kubernetes) {
  Node node;
  AddUnlessEmpty(&node, "context", kubernetes.context);
  AddUnlessEmpty(&node, "namespace", kubernetes.name_space);
  AddUnlessEmpty(&node, "launcher", kubernetes.launcher);
  if (kubernetes.gpu_resource != Kubernetes().gpu_resource)
    AddField(&node, "gpu_resource", TextScalar(kubernetes.gpu_resource));
  if (!kubernetes.resources.empty())
    AddField(&node, "resources", TextListNode(kubernetes.resources));
  AddPods(kubernetes, &node);
  return node;
}

Node LearnNode(const Job& job) {
  Node node;
  for (const auto& [key, value] : job.learn) AddField(&node, key, TextScalar(value.text));
  return node;
}

}  // namespace

std::string WriteYaml(const Job& job, const Comments& comments) {
  const Job usual;
  Node node;
  AddField(&node, "name", TextScalar(job.name));
  AddField(&node, "framework", PlainScalar(std::string(NameOf(job.framework))));
  if (job.queue != usual.queue) AddField(&node, "queue", TextScalar(job.queue));
  if (job.priority != usual.priority) AddField(&node, "priority", Number(job.priority));
  AddUnlessEmpty(&node, "image", job.image);
  AddUnlessEmpty(&node, "container", ContainerNode(job.container));
  AddUnlessEmpty(&node, "files", job.files);
  if (!job.command.empty()) AddField(&node, "command", TextListNode(job.command));
  AddUnlessEmpty(&node, "env", EnvironmentMap(job.env));
  AddUnlessEmpty(&node, "learn", LearnNode(job));
  AddUnlessEmpty(&node, "data", DataNode(job));
  AddField(&node, "roles", RolesOf(job));
  AddField(&node, "success", SuccessNode(job.success));
  AddUnlessEmpty(&node, "checkpoint", CheckpointNode(job.checkpoint));
  AddUnlessEmpty(&node, "store", job.store);
  AddUnlessEmpty(&node, "limits", LimitsNode(job.limits));
  if (job.on_controller_loss) {
    AddField(&node, "on_controller_loss",
             PlainScalar(std::string(NameOf(*job.on_controller_loss))));
  }
  AddUnlessEmpty(&node, "outputs", TextMap(job.outputs));
  AddUnlessEmpty(&node, "slurm", SlurmNode(job.slurm));
  AddUnlessEmpty(&node, "kubernetes", KubernetesNode(job.kubernetes));
  AddUnlessEmpty(&node, "marathon", MarathonNode(job.marathon));
  AddUnlessEmpty(&node, "after", AfterNode(job.triggers));
  AddUnlessEmpty(&node, "matrix", MatrixNode(job.triggers));
  AddUnlessEmpty(&node, "sweep", SweepNode(job.triggers));
  AddUnlessEmpty(&node, "schedule", ScheduleNode(job.schedule));
  return EmitYaml(node, comments);
}

}  // namespace shoal::job
