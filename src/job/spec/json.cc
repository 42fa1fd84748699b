#include "job/spec/json.h"

#include <charconv>
#include <chrono>
#include <limits>

#include "job/spec/enum_names.h"
#include "job/spec/json_fields.h"
#include "job/spec/schedule_json.h"
#include "job/spec/triggers_json.h"

namespace shoal::job {
namespace {

constexpr size_t kMaxJsonBytes = size_t{16} << 20;

// The shortest text that reads back as the same double. Boost.JSON's number parser may be off by
// one unit in the last place.
std::string Exact(double value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : "0";
}

json::array Texts(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

json::object TextMap(const std::map<std::string, std::string>& map) {
  json::object object;
  for (const auto& [key, text] : map) object[key] = text;
  return object;
}

// Encoders of the parts of a job. Every field is written, in the order of the struct.
json::object Encode(const Ready& ready) {
  return {{"by", NameOfValue(kReadyBys, ready.by)},
          {"port", ready.port},
          {"path", ready.path},
          {"command", Texts(ready.command)},
          {"line", ready.line},
          {"every_ms", ready.every.count()},
          {"timeout_ms", ready.timeout.count()}};
}

json::object Encode(const Health& health) {
  return {{"by", NameOfValue(kReadyBys, health.by)},
          {"port", health.port},
          {"path", health.path},
          {"command", Texts(health.command)},
          {"grace_ms", health.grace.count()},
          {"every_ms", health.every.count()},
          {"timeout_ms", health.timeout.count()},
          {"failures", health.failures}};
}

template <typename Rule>
json::array Rules(const std::vector<Rule>& rules, const char* field, std::string Rule::*text) {
  json::array array;
  for (const Rule& rule : rules) {
    array.push_back(
        json::object{{field, rule.*text}, {"action", NameOfValue(kEndActions, rule.action)}});
  }
  return array;
}

// Slurm settings common to role and job.
json::object EncodeSlurmSettings(const SlurmSettings& slurm) {
  return {{"partition", slurm.partition},
          {"account", slurm.account},
          {"qos", slurm.qos},
          {"constraint", slurm.constraint},
          {"reservation", slurm.reservation},
          {"gpu_type", slurm.gpu_type},
          {"nodes", slurm.nodes},
          {"options", Texts(slurm.options)}};
}

// Kubernetes settings common to role and job.
json::object EncodePodSettings(const PodSettings& ask) {
  json::object object{{"labels", TextMap(ask.labels)},
                      {"annotations", TextMap(ask.annotations)},
                      {"node_selector", TextMap(ask.node_selector)},
                      {"tolerations", Texts(ask.tolerations)},
                      {"service_account", ask.service_account},
                      {"image_pull_secrets", Texts(ask.image_pull_secrets)},
                      {"priority_class", ask.priority_class},
                      {"runtime_class", ask.runtime_class},
                      {"volumes", Texts(ask.volumes)},
                      {"affinity", ask.affinity},
                      {"topology_spread", ask.topology_spread},
                      {"security_context", ask.security_context},
                      {"container_security_context", ask.container_security_context}};
  if (ask.host_network) object["host_network"] = *ask.host_network;
  return object;
}

// A role with all its parts; the inverse of Decode(object, Role*).
json::object Encode(const Role& role) {
  json::object object;
  object["name"] = role.name;
  object["replicas"] = role.replicas;
  if (role.min_replicas) object["min"] = *role.min_replicas;
  if (role.max_replicas) object["max"] = *role.max_replicas;
  object["processes"] = role.processes;
  object["cpu"] = Exact(role.resources.cpu);
  object["memory_bytes"] = role.resources.memory_bytes;
  object["gpu"] = role.resources.gpu;
  if (role.resources.cpu_request > 0) object["cpu_request"] = Exact(role.resources.cpu_request);
  if (role.resources.memory_request > 0) {
    object["memory_request"] = role.resources.memory_request;
  }
  object["command"] = Texts(role.command);
  if (!role.args.empty()) object["args"] = Texts(role.args);
  object["env"] = TextMap(role.env);
  json::array ports;
  for (const Port& port : role.ports) {
    ports.push_back(json::object{{"name", port.name}, {"plain", port.plain}});
  }
  object["ports"] = std::move(ports);
  object["follows"] = role.follows;
  const Restart& restart = role.restart;
  object["restart"] = json::object{
      {"when", NameOfValue(kRestartWhens, restart.when)},
      {"limit", restart.limit},
      {"scope", NameOfValue(kRestartScopes, restart.scope)},
      {"backoff_ms", restart.backoff.count()},
      {"backoff_max_ms", restart.backoff_max.count()},
  };
  object["after"] = json::object{{"roles", Texts(role.after.roles)},
                                 {"when", NameOfValue(kAfterWhens, role.after.when)}};
  object["ready"] = Encode(role.ready);
  if (role.health != Health()) object["health"] = Encode(role.health);
  object["on_exit"] = Rules(role.on_exit, "code", &ExitRule::code);
  object["on_log"] = Rules(role.on_log, "line", &LogRule::line);
  object["checkpoint_signal"] = NameOfValue(kCheckpointSignals, role.checkpoint_signal);
  if (role.slurm != SlurmSettings()) object["slurm"] = EncodeSlurmSettings(role.slurm);
  if (role.kubernetes != PodSettings()) object["kubernetes"] = EncodePodSettings(role.kubernetes);
  return object;
}

json::object Encode(const DataSource& data) {
  json::object object;
  object["name"] = data.name;
  object["sources"] = Texts(data.sources);
  object["format"] = data.format;
  object["shard_by"] = data.shard_by;
  if (!data.table.empty()) object["table"] = data.table;
  if (!data.columns.empty()) object["columns"] = Texts(data.columns);
  return object;
}

json::object Encode(const Limits& limits) {
  json::object object{{"gather_ms", limits.gather.count()},
                      {"deadline_ms", limits.deadline.count()},
                      {"stall_ms", limits.stall.count()},
                      {"stop_grace_ms", limits.stop_grace.count()},
                      {"coordinator_timeout_ms", limits.coordinator_timeout.count()}};
  if (limits.restarts) object["restarts"] = *limits.restarts;
  object["on_stall"] = NameOfValue(kOnStalls, limits.on_stall);
  object["keep_records_ms"] = limits.keep_records.count();
  return object;
}

json::object EncodeLearn(const std::map<std::string, LearnValue>& learn) {
  json::object object;
  for (const auto& [key, value] : learn) {
    object[key] =
        json::object{{"text", value.text}, {"line", value.line}, {"column", value.column}};
  }
  return object;
}

// ---- Decoding -----------------------------------------------------------------------------------

Status DecodeCpu(const json::object& object, const char* field, double* out) {
  TRY_ASSIGN(const std::string text, GetString(object, field));
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  if (error != std::errc() || stop != end || !(*out >= 0 && *out <= kMaxCpus)) {
    return Wrong(field, "a number from 0 to 65536 as text");
  }
  return Status::Ok();
}

Status DecodePorts(const json::object& object, std::vector<Port>* out) {
  TRY_ASSIGN(const json::array* ports, GetArray(object, "ports"));
  for (const json::value& item : *ports) {
    if (!item.is_object()) return Wrong("ports", "an array of objects");
    Port port;
    TRY_ASSIGN(port.name, GetString(item.get_object(), "name"));
    TRY_ASSIGN(port.plain, GetBool(item.get_object(), "plain"));
    out->push_back(std::move(port));
  }
  return Status::Ok();
}

// Decoders of the parts of a job. Each checks types and ranges; the first error is returned.
Status Decode(const json::object& object, Restart* restart) {
  TRY(GetEnum(object, "when", kRestartWhens, &restart->when));
  TRY(GetIn(object, "limit", 0, kInt, &restart->limit));
  TRY(GetEnum(object, "scope", kRestartScopes, &restart->scope));
  TRY(GetMs(object, "backoff_ms", &restart->backoff));
  return GetMs(object, "backoff_max_ms", &restart->backoff_max);
}

Status Decode(const json::object& object, Ready* ready) {
  TRY(GetEnum(object, "by", kReadyBys, &ready->by));
  TRY_ASSIGN(ready->port, GetString(object, "port"));
  TRY_ASSIGN(ready->path, GetString(object, "path"));
  TRY(GetTexts(object, "command", &ready->command));
  TRY_ASSIGN(ready->line, GetString(object, "line"));
  TRY(GetMs(object, "every_ms", &ready->every));
  return GetMs(object, "timeout_ms", &ready->timeout);
}

Status Decode(const json::object& object, Health* health) {
  TRY(GetEnum(object, "by", kReadyBys, &health->by));
  TRY_ASSIGN(health->port, GetString(object, "port"));
  TRY_ASSIGN(health->path, GetString(object, "path"));
  TRY(GetTexts(object, "command", &health->command));
  TRY(GetMs(object, "grace_ms", &health->grace));
  TRY(GetMs(object, "every_ms", &health->every));
  TRY(GetMs(object, "timeout_ms", &health->timeout));
  return GetIn(object, "failures", 1, kInt, &health->failures);
}

template <typename Rule>
Status DecodeRules(const json::object& object, std::string_view list, const char* field,
                   std::string Rule::*text, std::vector<Rule>* out) {
  TRY_ASSIGN(const json::array* rules, GetArray(object, list));
  for (const json::value& item : *rules) {
    if (!item.is_object()) return Wrong(list, "an array of objects");
    Rule rule;
    TRY_ASSIGN(rule.*text, GetString(item.get_object(), field));
    TRY(GetEnum(item.get_object(), "action", kEndActions, &rule.action));
    out->push_back(std::move(rule));
  }
  return Status::Ok();
}

// A job stored by a version without these fields has their neutral values.
Status DecodeOrder(const json::object& object, Role* role) {
  if (!object.contains("after")) return Status::Ok();
  TRY_ASSIGN(const json::object* after, GetObject(object, "after"));
  TRY(GetTexts(*after, "roles", &role->after.roles));
  TRY(GetEnum(*after, "when", kAfterWhens, &role->after.when));
  TRY_ASSIGN(const json::object* ready, GetObject(object, "ready"));
  TRY(Decode(*ready, &role->ready).With("ready"));
  if (object.contains("health")) {
    TRY_ASSIGN(const json::object* health, GetObject(object, "health"));
    TRY(Decode(*health, &role->health).With("health"));
  }
  TRY(DecodeRules(object, "on_exit", "code", &ExitRule::code, &role->on_exit));
  return DecodeRules(object, "on_log", "line", &LogRule::line, &role->on_log);
}

Status DecodeSlurmSettings(const json::object& fields, SlurmSettings* slurm) {
  TRY_ASSIGN(slurm->partition, GetString(fields, "partition"));
  TRY_ASSIGN(slurm->account, GetString(fields, "account"));
  TRY_ASSIGN(slurm->qos, GetString(fields, "qos"));
  TRY_ASSIGN(slurm->constraint, GetString(fields, "constraint"));
  TRY_ASSIGN(slurm->reservation, GetString(fields, "reservation"));
  TRY_ASSIGN(slurm->gpu_type, GetString(fields, "gpu_type"));
  TRY(GetIn(fields, "nodes", 0, kMaxTasks, &slurm->nodes));
  return GetTexts(fields, "options", &slurm->options);
}

Status DecodePodSettings(const json::object& fields, PodSettings* ask) {
  TRY(GetTextMap(fields, "labels", &ask->labels));
  if (fields.contains("annotations")) {
    TRY(GetTextMap(fields, "annotations", &ask->annotations));
  }
  TRY(GetTextMap(fields, "node_selector", &ask->node_selector));
  TRY(GetTexts(fields, "tolerations", &ask->tolerations));
  TRY_ASSIGN(ask->service_account, GetString(fields, "service_account"));
  TRY(GetTexts(fields, "image_pull_secrets", &ask->image_pull_secrets));
  TRY_ASSIGN(ask->priority_class, GetString(fields, "priority_class"));
  TRY(GetTexts(fields, "volumes", &ask->volumes));
  if (fields.contains("host_network")) {
    TRY_ASSIGN(ask->host_network, GetBool(fields, "host_network"));
  }
  // Jobs stored by earlier versions lack some of these.
  ask->runtime_class = GetStringOr(fields, "runtime_class", "");
  ask->affinity = GetStringOr(fields, "affinity", "");
  ask->topology_spread = GetStringOr(fields, "topology_spread", "");
  ask->security_context = GetStringOr(fields, "security_context", "");
  ask->container_security_context = GetStringOr(fields, "container_security_context", "");
  return Status::Ok();
}

Status Decode(const json::object& object, Role* role) {
  TRY_ASSIGN(role->name, GetString(object, "name"));
  TRY(GetIn(object, "replicas", 0, kMaxReplicas, &role->replicas));
  TRY(GetOptional(object, "min", kMaxReplicas, &role->min_replicas));
  TRY(GetOptional(object, "max", kMaxReplicas, &role->max_replicas));
  TRY(GetIn(object, "processes", 1, kInt, &role->processes));
  TRY(DecodeCpu(object, "cpu", &role->resources.cpu));
  TRY(GetIn(object, "memory_bytes", 0, kMaxMemoryBytes, &role->resources.memory_bytes));
  TRY(GetIn(object, "gpu", 0, kMaxGpus, &role->resources.gpu));
  if (object.contains("cpu_request")) {
    TRY(DecodeCpu(object, "cpu_request", &role->resources.cpu_request));
  }
  if (object.contains("memory_request")) {
    TRY(GetIn(object, "memory_request", 0, kMaxMemoryBytes, &role->resources.memory_request));
  }
  TRY(GetTexts(object, "command", &role->command));
  if (object.contains("args")) TRY(GetTexts(object, "args", &role->args));
  TRY(GetTextMap(object, "env", &role->env));
  TRY(DecodePorts(object, &role->ports));
  TRY_ASSIGN(role->follows, GetString(object, "follows"));
  TRY(DecodeOrder(object, role));
  if (object.contains("checkpoint_signal")) {
    TRY(GetEnum(object, "checkpoint_signal", kCheckpointSignals, &role->checkpoint_signal));
  }
  if (object.contains("slurm")) {
    TRY_ASSIGN(const json::object* slurm, GetObject(object, "slurm"));
    TRY(DecodeSlurmSettings(*slurm, &role->slurm).With("slurm"));
  }
  if (object.contains("kubernetes")) {
    TRY_ASSIGN(const json::object* kubernetes, GetObject(object, "kubernetes"));
    TRY(DecodePodSettings(*kubernetes, &role->kubernetes).With("kubernetes"));
  }
  TRY_ASSIGN(const json::object* restart, GetObject(object, "restart"));
  return Decode(*restart, &role->restart).With("restart");
}

Status Decode(const json::object& object, DataSource* data) {
  TRY_ASSIGN(data->name, GetString(object, "name"));
  TRY(GetTexts(object, "sources", &data->sources));
  TRY_ASSIGN(data->format, GetString(object, "format"));
  TRY_ASSIGN(data->shard_by, GetString(object, "shard_by"));
  data->table = GetStringOr(object, "table", "");
  if (object.contains("columns")) TRY(GetTexts(object, "columns", &data->columns));
  return Status::Ok();
}

template <typename Item>
Status DecodeItems(const json::object& object, std::string_view field, std::vector<Item>* out) {
  TRY_ASSIGN(const json::array* array, GetArray(object, field));
  for (const json::value& item : *array) {
    if (!item.is_object()) return Wrong(field, "an array of objects");
    Item decoded;
    TRY(Decode(item.get_object(), &decoded)
            .With(std::string(field) + "[" + std::to_string(out->size()) + "]"));
    out->push_back(std::move(decoded));
  }
  return Status::Ok();
}

Status DecodeLearn(const json::object& object, std::map<std::string, LearnValue>* out) {
  TRY_ASSIGN(const json::object* learn, GetObject(object, "learn"));
  for (const auto& [key, item] : *learn) {
    if (!item.is_object()) return Wrong("learn", "an object of objects");
    LearnValue value;
    TRY_ASSIGN(value.text, GetString(item.get_object(), "text"));
    TRY(GetIn(item.get_object(), "line", 0, kInt, &value.line));
    TRY(GetIn(item.get_object(), "column", 0, kInt, &value.column));
    out->emplace(std::string(key), std::move(value));
  }
  return Status::Ok();
}

Status DecodeSuccess(const json::object& object, Success* success) {
  TRY_ASSIGN(const json::object* rule, GetObject(object, "success"));
  TRY(GetEnum(*rule, "rule", kSuccessRules, &success->rule));
  TRY(GetTexts(*rule, "roles", &success->roles));
  return GetIn(*rule, "count", 0, kInt, &success->count);
}

Status DecodeLimits(const json::object& object, Limits* limits) {
  TRY_ASSIGN(const json::object* fields, GetObject(object, "limits"));
  TRY(GetMs(*fields, "gather_ms", &limits->gather));
  TRY(GetMs(*fields, "deadline_ms", &limits->deadline));
  TRY(GetMs(*fields, "stall_ms", &limits->stall));
  TRY(GetMs(*fields, "stop_grace_ms", &limits->stop_grace));
  TRY(GetOptional(*fields, "restarts", 1'000'000, &limits->restarts));
  if (fields->contains("on_stall")) {
    TRY(GetEnum(*fields, "on_stall", kOnStalls, &limits->on_stall));
    TRY(GetMs(*fields, "keep_records_ms", &limits->keep_records));
  }
  return GetMs(*fields, "coordinator_timeout_ms", &limits->coordinator_timeout);
}

Status DecodeContainer(const json::object& job, Container* container) {
  TRY_ASSIGN(const json::object* object, GetObject(job, "container"));
  TRY(GetTexts(*object, "volumes", &container->volumes));
  TRY_ASSIGN(container->work_dir, GetString(*object, "work_dir"));
  TRY_ASSIGN(container->user, GetString(*object, "user"));
  TRY_ASSIGN(container->pids, GetInt(*object, "pids"));
  TRY_ASSIGN(container->shm_bytes, GetInt(*object, "shm"));
  container->own_network = GetBoolOr(*object, "own_network", false);
  if (container->pids < 0 || container->shm_bytes < 0)
    return InvalidArgument("field 'container': pids and shm may not be negative");
  return Status::Ok();
}

json::object Encode(const Slurm& slurm) {
  json::object object = EncodeSlurmSettings(slurm);
  object["time_ms"] = slurm.time.count();
  object["save_before_ms"] = slurm.save_before.count();
  object["requeue"] = slurm.requeue;
  object["exclusive"] = slurm.exclusive;
  return object;
}

Status DecodeSlurm(const json::object& object, Slurm* slurm) {
  if (!object.contains("slurm")) return Status::Ok();  // nothing was asked for
  TRY_ASSIGN(const json::object* fields, GetObject(object, "slurm"));
  TRY(DecodeSlurmSettings(*fields, slurm));
  TRY(GetMs(*fields, "time_ms", &slurm->time));
  TRY(GetMs(*fields, "save_before_ms", &slurm->save_before));
  TRY_ASSIGN(slurm->requeue, GetBool(*fields, "requeue"));
  TRY_ASSIGN(slurm->exclusive, GetBool(*fields, "exclusive"));
  return Status::Ok();
}

json::object Encode(const Marathon& marathon) {
  return {{"url", marathon.url},
          {"group", marathon.group},
          {"authorities", marathon.authorities},
          {"containerizer", marathon.containerizer},
          {"program", marathon.program},
          {"user", marathon.user},
          {"constraints", Texts(marathon.constraints)},
          {"fetch", Texts(marathon.fetch)},
          {"accepted_roles", Texts(marathon.accepted_roles)},
          {"parameters", Texts(marathon.parameters)},
          {"secrets", TextMap(marathon.secrets)},
          {"backoff_ms", marathon.backoff.count()},
          {"longest_backoff_ms", marathon.longest_backoff.count()},
          {"unreachable_ms", marathon.unreachable.count()},
          {"port", marathon.port},
          {"privileged", marathon.privileged},
          {"force_pull", marathon.force_pull}};
}

Status DecodeMarathon(const json::object& object, Marathon* marathon) {
  if (!object.contains("marathon")) return Status::Ok();  // nothing was asked for
  TRY_ASSIGN(const json::object* fields, GetObject(object, "marathon"));
  TRY_ASSIGN(marathon->url, GetString(*fields, "url"));
  TRY_ASSIGN(marathon->group, GetString(*fields, "group"));
  TRY_ASSIGN(marathon->authorities, GetString(*fields, "authorities"));
  TRY_ASSIGN(marathon->containerizer, GetString(*fields, "containerizer"));
  TRY_ASSIGN(marathon->program, GetString(*fields, "program"));
  TRY_ASSIGN(marathon->user, GetString(*fields, "user"));
  TRY(GetTexts(*fields, "constraints", &marathon->constraints));
  TRY(GetTexts(*fields, "fetch", &marathon->fetch));
  TRY(GetTexts(*fields, "accepted_roles", &marathon->accepted_roles));
  TRY(GetTexts(*fields, "parameters", &marathon->parameters));
  TRY(GetTextMap(*fields, "secrets", &marathon->secrets));
  TRY(GetMs(*fields, "backoff_ms", &marathon->backoff));
  TRY(GetMs(*fields, "longest_backoff_ms", &marathon->longest_backoff));
  TRY(GetMs(*fields, "unreachable_ms", &marathon->unreachable));
  TRY(GetIn(*fields, "port", 0, UINT16_MAX, &marathon->port));
  TRY_ASSIGN(marathon->privileged, GetBool(*fields, "privileged"));
  TRY_ASSIGN(marathon->force_pull, GetBool(*fields, "force_pull"));
  return Status::Ok();
}

json::object Encode(const Kubernetes& kubernetes) {
  json::object object = EncodePodSettings(kubernetes);
  object["context"] = kubernetes.context;
  object["namespace"] = kubernetes.name_space;
  object["launcher"] = kubernetes.launcher;
  object["gpu_resource"] = kubernetes.gpu_resource;
  object["resources"] = Texts(kubernetes.resources);
  return object;
}

Status DecodeKubernetes(const json::object& object, Kubernetes* kubernetes) {
  if (!object.contains("kubernetes")) return Status::Ok();  // nothing was asked for
  TRY_ASSIGN(const json::object* fields, GetObject(object, "kubernetes"));
  TRY(DecodePodSettings(*fields, kubernetes));
  TRY_ASSIGN(kubernetes->context, GetString(*fields, "context"));
  TRY_ASSIGN(kubernetes->name_space, GetString(*fields, "namespace"));
  TRY_ASSIGN(kubernetes->launcher, GetString(*fields, "launcher"));
  TRY_ASSIGN(kubernetes->gpu_resource, GetString(*fields, "gpu_resource"));
  return GetTexts(*fields, "resources", &kubernetes->resources);
}

Status DecodeHead(const json::object& object, Job* job) {
  TRY_ASSIGN(job->file, GetString(object, "file"));
  TRY_ASSIGN(job->name, GetString(object, "name"));
  TRY(GetEnum(object, "framework", kFrameworks, &job->framework));
  TRY_ASSIGN(job->queue, GetString(object, "queue"));
  TRY(GetIn(object, "priority", -kInt, kInt, &job->priority));
  TRY_ASSIGN(job->image, GetString(object, "image"));
  if (object.contains("container")) TRY(DecodeContainer(object, &job->container));
  TRY_ASSIGN(job->files, GetString(object, "files"));
  TRY(GetTexts(object, "command", &job->command));
  TRY(GetTextMap(object, "env", &job->env));
  TRY_ASSIGN(job->store, GetString(object, "store"));
  return GetTextMap(object, "outputs", &job->outputs);
}

}  // namespace

// The fields in the order of struct Job.
json::object ToJson(const Job& job) {
  json::object object;
  object["file"] = job.file;
  object["name"] = job.name;
  object["framework"] = NameOfValue(kFrameworks, job.framework);
  object["queue"] = job.queue;
  object["priority"] = job.priority;
  object["image"] = job.image;
  if (job.container != Container{}) {
    object["container"] = json::object{{"volumes", Texts(job.container.volumes)},
                                       {"work_dir", job.container.work_dir},
                                       {"user", job.container.user},
                                       {"pids", job.container.pids},
                                       {"shm", job.container.shm_bytes},
                                       {"own_network", job.container.own_network}};
  }
  object["files"] = job.files;
  object["command"] = Texts(job.command);
  object["env"] = TextMap(job.env);
  object["learn"] = EncodeLearn(job.learn);
  json::array data;
  for (const DataSource& source : job.data) data.push_back(Encode(source));
  object["data"] = std::move(data);
  json::array roles;
  for (const Role& role : job.roles) roles.push_back(Encode(role));
  object["roles"] = std::move(roles);
  object["success"] = json::object{{"rule", NameOfValue(kSuccessRules, job.success.rule)},
                                   {"roles", Texts(job.success.roles)},
                                   {"count", job.success.count}};
  object["checkpoint"] =
      json::object{{"every_ms", job.checkpoint.every.count()}, {"keep", job.checkpoint.keep}};
  object["store"] = job.store;
  object["limits"] = Encode(job.limits);
  if (job.on_controller_loss) {
    object["on_controller_loss"] = NameOfValue(kControllerLosses, *job.on_controller_loss);
  }
  object["outputs"] = TextMap(job.outputs);
  if (job.slurm != Slurm()) object["slurm"] = Encode(job.slurm);
  if (job.kubernetes != Kubernetes()) object["kubernetes"] = Encode(job.kubernetes);
  if (job.marathon != Marathon()) object["marathon"] = Encode(job.marathon);
  if (job.schedule != Schedule()) object["schedule"] = EncodeSchedule(job.schedule);
  if (job.triggers != Triggers()) object["triggers"] = EncodeTriggers(job.triggers);
  return object;
}

Result<Job> FromJson(const json::object& object) {
  Job job;
  TRY(DecodeHead(object, &job));
  TRY(DecodeLearn(object, &job.learn));
  TRY(DecodeItems(object, "data", &job.data));
  TRY(DecodeItems(object, "roles", &job.roles));
  TRY(DecodeSuccess(object, &job.success));
  TRY_ASSIGN(const json::object* checkpoint, GetObject(object, "checkpoint"));
  TRY(GetMs(*checkpoint, "every_ms", &job.checkpoint.every));
  TRY(GetIn(*checkpoint, "keep", 1, kInt, &job.checkpoint.keep));
  TRY(DecodeLimits(object, &job.limits));
  if (object.contains("on_controller_loss")) {
    OnControllerLoss loss{};
    TRY(GetEnum(object, "on_controller_loss", kControllerLosses, &loss));
    job.on_controller_loss = loss;
  }
  TRY(DecodeSlurm(object, &job.slurm));
  TRY(DecodeKubernetes(object, &job.kubernetes));
  TRY(DecodeMarathon(object, &job.marathon));
  if (object.contains("schedule")) {
    TRY_ASSIGN(const json::object* schedule, GetObject(object, "schedule"));
    TRY(DecodeSchedule(*schedule, &job.schedule).With("schedule"));
  }
  if (object.contains("triggers")) {
    TRY_ASSIGN(const json::object* triggers, GetObject(object, "triggers"));
    TRY(DecodeTriggers(*triggers, &job.triggers).With("triggers"));
  }
  return job;
}

std::string ToJsonText(const Job& job) { return ToText(ToJson(job)); }

Result<Job> FromJsonText(std::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return ResourceExhausted("a job's JSON may have 16 MiB, got " + std::to_string(text.size()) +
                             " bytes");
  }
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  return FromJson(object);
}

}  // namespace shoal::job
