#include "job/file/reference_page.h"

#include "job/file/fields.h"
#include "job/file/pod_fields.h"
#include "job/file/trigger_fields.h"

namespace shoal::job {
namespace {

constexpr std::string_view kHead =
    R"(<!-- Made from the table of fields in src/job/file/fields.cc: change it there, then run SHOAL_REGENERATE=1 job_test. -->
# The job file

A job file is YAML. The shortest one has a command and a number of tasks:

```yaml
command: [echo, hello]
roles:
  task: {replicas: 4}
```

`shoal plan FILE` checks it and prints the tasks, `shoal run FILE` runs it, and `--set
roles.task.replicas=8` overrides a field for one run. Unknown or misspelt fields are errors with the
line, the column and the nearest valid name. `docs/job.schema.json` is the JSON Schema for editors.

Sizes are written `512Mi`, `2Gi` (powers of 1024) or `512M`, `1.5G` (powers of 1000), times `100ms`,
`60s`, `5m`, `4h`, `2d` or `1h30m`. `NAME` stands for a name of your choice.

Relative paths, in every field and on every engine, refer to the directory of the job file, and programs
start there; `--directory DIR` sets another directory. For a job from standard input (`shoal run -`), and
for paths given with `--set`, it is the working directory.

A field that the engine ignores gives a note before the job starts, or an error if ignoring it would change
which data is trained or where it is stored.

)";

constexpr std::string_view kTail = R"(## A job with its own program

```yaml
name: mnist
command: [python, train.py]
env: {OMP_NUM_THREADS: "1"}
roles:
  server: {replicas: 2, resources: {cpu: 1, memory: 2Gi}, ports: [ps], follows: worker}
  worker: {replicas: 4, resources: {cpu: 1, memory: 512Mi}, ports: [grpc],
           restart: {when: transient, limit: 3}}
success: {all: [worker]}
limits: {gather: 5m, deadline: 4h, stop_grace: 10s}
outputs: {model: mnist-model}
```

Each task finds the others in `SHOAL_CLUSTER` ([cluster description](formats/cluster.md)), its own role and
index in `SHOAL_ROLE` and `SHOAL_INDEX`, and its ports in `SHOAL_PORT` and `SHOAL_PORT_GRPC`. The servers are
stopped when the last worker has ended. `TMPDIR`, unless set in `env`, is `$SHOAL_SCRATCH`: an empty directory
of the attempt, removed after it. `HOME` is set to it, too, if it is missing or an unwritable `/`.

For programs that read other variables, `env` may refer to the cluster, which is known when all tasks have
joined:

```yaml
command: [python, train.py]
env: {PS_HOSTS: "{{shoal.addresses.server}}", NUM_WORKERS: "{{shoal.count.worker}}", TASK_INDEX: "{{shoal.index}}"}
roles:
  server: {replicas: 2, ports: [ps], follows: worker}
  worker: 4
```

| in a value | replaced by |
| --- | --- |
| `{{shoal.index}}`, `{{shoal.host}}` | the task's own index and host |
| `{{shoal.hosts.ROLE}}` | the hosts of a role's tasks in index order, separated by commas |
| `{{shoal.addresses.ROLE}}` | the same with the tasks' first ports, `127.0.0.1:4001,127.0.0.1:4002` |
| `{{shoal.count.ROLE}}` | the role's number of tasks |
| `{{shoal.secret.NAME}}` | the value of a secret ([secrets](secrets.md)); alone also written as `{secret: NAME}` |
| `{{shoal.secret_file.NAME}}` | the path of a file with the value, which only the task can read; also `{secret_file: NAME}` |
| `{{shoal.braces}}` | `{{`: `{{shoal.braces}}shoal.index}}` is the text `{{shoal.index}}` itself |

## A job with a built-in trainer

```yaml
name: text8-vectors
framework: shoal
learn: {algorithm: word2vec, dim: 100, window: 5, negative: 5}
data: {train: text8}
roles: {server: 2, worker: 4}
outputs: {model: vectors}
```

The role `server` holds the model and follows `worker`; both have default commands. With a single worker
and no server the worker holds the model itself.
)";

std::string ForPeople(std::string_view path) {
  std::string out;
  for (const char c : path) out += c == '*' ? std::string("NAME") : std::string(1, c);
  return out;
}

bool IsTop(const Field& field) { return field.path.find('.') == std::string_view::npos; }

std::string Row(const Field& field) {
  const bool section = field.type == Type::kSection || field.type == Type::kSections;
  std::string row = "| `" + ForPeople(field.path) + "` | ";
  row += section ? std::string(field.type == Type::kSection ? "section" : "named sections")
                 : Expected(field);
  return row + " | " + std::string(field.fallback) + " | " + std::string(field.doc) + " |\n";
}

// ---- JSON Schema --------------------------------------------------------------------------------

constexpr std::string_view kPlainName = "^[a-z]([a-z0-9-]*[a-z0-9])?$";

json::object Scalar() { return {{"type", json::array{"string", "number", "boolean"}}}; }

json::object ScalarOrNull() {
  return {{"type", json::array{"string", "number", "boolean", "null"}}};
}

// Of an environment variable: also {secret: NAME} and {secret_file: NAME}.
json::object VariableSchema() {
  const json::object name{{"type", "string"}, {"pattern", "^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"}};
  json::array either{ScalarOrNull()};
  for (const char* const key : {"secret", "secret_file"}) {
    either.push_back(json::object{{"type", "object"},
                                  {"properties", json::object{{key, name}}},
                                  {"required", json::array{key}},
                                  {"additionalProperties", false}});
  }
  return {{"anyOf", std::move(either)}};
}

json::object NonEmptyList(json::object items) {
  return {{"type", "array"}, {"items", std::move(items)}, {"minItems", 1}};
}

json::object OneOrList(json::object item) {
  json::object list = NonEmptyList(item);
  return {{"anyOf", json::array{std::move(item), std::move(list)}}};
}

json::object Named(json::object values, std::string_view pattern) {
  return {{"type", json::array{"object", "null"}},
          {"propertyNames", json::object{{"pattern", pattern}}},
          {"additionalProperties", std::move(values)}};
}

json::object NameSchema() { return {{"type", "string"}, {"pattern", kPlainName}}; }

json::object PortsSchema() {
  json::object port{{"type", "object"},
                    {"properties", json::object{{"name", NameSchema()},
                                                {"plain", json::object{{"type", "boolean"}}}}},
                    {"required", json::array{"name"}},
                    {"additionalProperties", false}};
  json::object item{{"anyOf", json::array{NameSchema(), std::move(port)}}};
  json::object list{{"type", "array"}, {"items", std::move(item)}, {"maxItems", 16}};
  json::object all{{"type", "object"},
                   {"properties", json::object{{"names", OneOrList(NameSchema())},
                                               {"plain", json::object{{"type", "boolean"}}}}},
                   {"additionalProperties", false}};
  return {{"anyOf", json::array{std::move(list), std::move(all)}}};
}

// A list of {key: text, action: one of these}.
json::object RulesSchema(std::string_view key, json::array actions) {
  json::object properties;
  properties[key] = json::object{{"type", json::array{"string", "integer"}}};
  properties["action"] = json::object{{"enum", std::move(actions)}};
  json::object rule{{"type", "object"},
                    {"properties", std::move(properties)},
                    {"required", json::array{key, "action"}},
                    {"additionalProperties", false}};
  return {{"type", "array"}, {"items", std::move(rule)}, {"maxItems", 64}};
}

json::object ChoiceSchema(const Field& field) {
  json::array choices;
  std::string choice;
  for (const char c : std::string(field.choices) + "|") {
    if (c != '|') {
      choice += c;
      continue;
    }
    choices.emplace_back(choice);
    choice.clear();
  }
  return {{"enum", std::move(choices)}};
}

json::object LearnSchema() {
  json::object schema = Named({{"type", json::array{"string", "number", "boolean", "null"}}},
                              "^[A-Za-z0-9][A-Za-z0-9_.-]*$");
  schema["properties"] = json::object{{"data", OneOrList(Scalar())}};
  return schema;
}

json::object SectionSchema(std::string_view path);

json::object SectionsSchema(const Field& field) {
  const std::string below = std::string(field.path) + ".*";
  json::object section = SectionSchema(below);
  const Field* shorthand = FindField(below + "." + std::string(field.shorthand));
  json::object either{{"anyOf", json::array{std::move(section)}}};
  if (shorthand != nullptr) {
    json::object plain = shorthand->type == Type::kInteger
                             ? json::object{{"type", "integer"},
                                            {"minimum", static_cast<int64_t>(shorthand->least)},
                                            {"maximum", static_cast<int64_t>(shorthand->most)}}
                             : OneOrList(Scalar());
    either["anyOf"].get_array().push_back(std::move(plain));
  }
  return Named(std::move(either), kPlainName);
}

// The schema of a field's type, without its description.
json::object TypeSchema(const Field& field) {
  switch (field.type) {
    case Type::kText:
      return Scalar();
    case Type::kName:
      return {{"type", json::array{"string", "number"}},
              {"pattern", "^[A-Za-z0-9][A-Za-z0-9_.-]*$"},
              {"maxLength", static_cast<int64_t>(field.most)}};
    case Type::kInteger:
      return {{"type", "integer"},
              {"minimum", static_cast<int64_t>(field.least)},
              {"maximum", static_cast<int64_t>(field.most)}};
    case Type::kNumber:
      return {{"type", "number"}, {"minimum", field.least}, {"maximum", field.most}};
    case Type::kSize:
      return {{"type", json::array{"string", "integer"}},
              {"pattern", "^[0-9]+(\\.[0-9]+)?(B|[kKMGT]B?|[KMGT]iB?)?$"}};
    case Type::kDuration:
      return {{"type", json::array{"string", "integer"}},
              {"pattern", "^(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+)$"},
              {"maximum", 0}};
    case Type::kChoice:
      return ChoiceSchema(field);
    case Type::kTexts:
      return OneOrList(Scalar());
    case Type::kCommand:
      return NonEmptyList(Scalar());
    case Type::kTextMap:
      return Named(ScalarOrNull(), kPlainName);
    case Type::kVariables:
      return Named(field.path.ends_with("env") ? VariableSchema() : ScalarOrNull(),
                   "^[A-Za-z_][A-Za-z0-9_]*$");
    case Type::kLearn:
      return LearnSchema();
    case Type::kRole:
      return NameSchema();
    case Type::kRoles:
      return OneOrList(NameSchema());
    case Type::kExitRules:
      return RulesSchema("code", {"retry", "fail", "ignore", "restart_job", "exclude_host"});
    case Type::kLogRules:
      return RulesSchema("line", {"retry", "fail", "restart_job", "exclude_host"});
    case Type::kPorts:
      return PortsSchema();
    case Type::kPodValue:
      return PodValueSchema(field.choices);
    case Type::kDependencies:
    case Type::kMatrix:
    case Type::kSweepParameters:
      return TriggerSchema(field);
    case Type::kSection:
      return SectionSchema(field.path);
    case Type::kSections:
      return SectionsSchema(field);
  }
  return {};
}

json::object SectionSchema(std::string_view path) {
  json::object properties;
  const std::string prefix = path.empty() ? std::string() : std::string(path) + ".";
  for (const std::string& name : FieldsBelow(path)) {
    const Field& field = *FindField(prefix + name);
    json::object schema = TypeSchema(field);
    schema["description"] =
        std::string(field.doc) + " Left out: " + std::string(field.fallback) + ".";
    properties[name] = std::move(schema);
  }
  return {{"type", json::array{"object", "null"}},
          {"properties", std::move(properties)},
          {"additionalProperties", false}};
}

}  // namespace

// The top level's table, then one table for each section, in the order of the field table.
std::string ReferencePage() {
  std::string page(kHead);
  page += "## Fields\n";
  for (const Field& field : Fields()) {
    const bool section = field.type == Type::kSection || field.type == Type::kSections;
    if (IsTop(field) && section) {
      page += "\n### " + std::string(field.path) + "\n\n" + std::string(field.doc) +
              " Left out: " + std::string(field.fallback) +
              ".\n\n| field | value | left out | meaning |\n| --- | --- | --- | --- |\n";
      for (const Field& inner : Fields()) {
        if (inner.path.starts_with(std::string(field.path) + ".")) page += Row(inner);
      }
    }
    if (&field == &Fields().front()) {
      page += "\n| field | value | left out | meaning |\n| --- | --- | --- | --- |\n";
      for (const Field& top : Fields()) {
        if (IsTop(top)) page += Row(top);
      }
    }
  }
  return page + "\n" + std::string(kTail);
}

json::object JobSchema() {
  json::object schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                      {"title", "Shoal job file"}};
  for (auto& [name, value] : SectionSchema("")) schema[name] = value;
  schema["type"] = "object";
  return schema;
}

}  // namespace shoal::job
