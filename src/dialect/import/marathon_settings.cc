#include "dialect/import/marathon_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "job/fields.h"

namespace shoal::dialect {
namespace {

constexpr size_t kMostUris = 256;
constexpr size_t kLongestUser = 256;
constexpr Unkept kSecret[] = {{"scope", "which programs may see it", "all of the job's may"}};
constexpr const char* kEngine = "marathon";
constexpr std::string_view kHeeds = "; other engines than marathon do not heed it";

// [["rack", "LIKE", "r1"]] → "rack:LIKE:r1"; empty if it cannot be said so.
std::string Constraint(const job::Node& node) {
  std::string text;
  if (node.kind != job::Node::Kind::kList || node.items.size() < 2 || node.items.size() > 3)
    return "";
  for (size_t i = 0; i < node.items.size(); ++i) {
    const job::Node& part = node.items[i];
    const bool colon = i < 2 && part.text.find(':') != std::string::npos;
    if (part.kind != job::Node::Kind::kScalar || part.text.empty() || colon) return "";
    text += (i == 0 ? "" : ":") + part.text;
  }
  return text;
}

}  // namespace

void MarathonSettings::Say(Section* section, const std::string& name, const std::string& role,
                           std::vector<std::string> value, const char* field) {
  said_[field].push_back({role, std::move(value), section->PlaceOf(name), section->PathOf(name)});
}

void MarathonSettings::ReadApp(Section* app, const std::string& role) {
  ++apps_;
  ReadConstraints(app, role);
  ReadArtifacts(app);
  ReadSources(app);
  if (app->Has("acceptedResourceRoles"))
    Say(app, "acceptedResourceRoles", role, app->Texts("acceptedResourceRoles"), "accepted_roles");
  if (const auto user = app->Text("user"); user && !user->empty() && user->size() <= kLongestUser)
    Say(app, "user", role, {*user}, "user");
  const job::Node* strategy = app->Take("unreachableStrategy");
  if (strategy != nullptr && strategy->kind == job::Node::Kind::kMap) {
    auto unreachable = app->Sub("unreachableStrategy");
    const auto seconds = unreachable->Number("inactiveAfterSeconds", 0, 1e6);
    unreachable->Rest("MarathonUnreachableEnabled");
    if (seconds) {
      const auto text = std::to_string(std::llround(*seconds)) + "s";
      Say(app, "unreachableStrategy", role, {text}, "unreachable");
    }
  } else if (strategy != nullptr) {
    app->Lose("unreachableStrategy",
              "its lost tasks were never replaced; not kept: they are after marathon.unreachable");
  }
}

void MarathonSettings::ReadConstraints(Section* app, const std::string& role) {
  const job::Node* node = app->Take("constraints");
  if (node == nullptr) return;
  std::vector<std::string> texts;
  for (const job::Node& item : node->items) {
    const std::string text = Constraint(item);
    if (!text.empty()) {
      texts.push_back(text);
    } else {
      app->Lose("constraints", "got " + job::Tell(item) +
                                   "; not kept: a constraint is [field, operator, value] here");
    }
  }
  Say(app, "constraints", role, std::move(texts), "constraints");
}

void MarathonSettings::ReadArtifacts(Section* app) {
  const auto add = [&](const std::string& name, const std::string& uri) {
    if (fetch_field_.empty()) {
      fetch_place_ = app->PlaceOf(name);
      fetch_field_ = app->PathOf(name);
    }
    const bool known = std::find(fetch_.begin(), fetch_.end(), uri) != fetch_.end();
    if (!known && fetch_.size() < kMostUris) fetch_.push_back(uri);
  };
  for (Section& artifact : app->Subs("fetch")) {
    artifact.set_at("marathon.fetch");
    if (const auto uri = artifact.Text("uri")) add("fetch", *uri);
    artifact.Rest("MarathonArtifact");
  }
  for (const char* name : {"uris", "storeUrls"}) {
    for (const std::string& uri : app->Texts(name)) add(name, uri);
  }
}

// The environment is read after it.
void MarathonSettings::ReadSources(Section* app) {
  sources_.clear();
  auto secrets = app->Sub("secrets");
  if (!secrets) return;
  for (const auto& [key, node] : secrets->All()) {
    if (node->kind != job::Node::Kind::kMap) continue;
    Section one(*node, secrets->PathOf(key.text), "marathon.secrets", app->notes());
    if (const auto source = one.Text("source")) sources_[key.text] = *source;
    one.Rest("MarathonSecretDef", kSecret);
  }
}

bool MarathonSettings::ReadSecret(const std::string& variable, const job::Node& value,
                                  Section* env) {
  const job::Node* name = value.kind == job::Node::Kind::kMap ? value.Find("secret") : nullptr;
  if (name == nullptr || name->kind != job::Node::Kind::kScalar) return false;
  const auto source = sources_.find(name->text);
  if (source == sources_.end()) return false;
  if (!IsVariableName(variable) || job::IsReservedVariable(variable)) return false;
  const auto [known, fresh] = secrets_.emplace(variable, source->second);
  if (!fresh && known->second != source->second) return false;
  env->KeepFor(kEngine, variable,
               "it comes from the secret " + job::Shown(source->second) +
                   ", kept in marathon.secrets for all roles" + std::string(kHeeds) +
                   ": give them " + env->at() + "." + variable);
  return true;
}

void MarathonSettings::ReadDocker(Section* docker, const std::string& role) {
  if (const auto pull = docker->Flag("forcePullImage"); pull.value_or(false))
    Say(docker, "forcePullImage", role, {"true"}, "force_pull");
  if (const auto all = docker->Flag("privileged"); all.value_or(false))
    Say(docker, "privileged", role, {"true"}, "privileged");
  std::vector<std::string> texts;
  for (Section& parameter : docker->Subs("parameters")) {
    const std::string key = parameter.Text("key").value_or("");
    texts.push_back(key + "=" + parameter.Text("value").value_or(""));
    parameter.Rest("MarathonDockerParameter");
  }
  if (!texts.empty()) Say(docker, "parameters", role, std::move(texts), "parameters");
}

void MarathonSettings::Settle(JobBuilder* builder) {
  job::Marathon& block = builder->job()->marathon;
  for (const auto& [field, said] : said_) {
    const Said& first = said.front();
    const bool same = said.size() == apps_ &&
                      std::all_of(said.begin(), said.end(),
                                  [&](const Said& one) { return one.value == first.value; });
    const std::string at = "marathon." + field;
    const bool minor = field == "force_pull" || field == "unreachable";
    if (!same) {
      for (const Said& one : said) {
        builder->notes()->Add(
            {one.place, one.field,
             "not kept: not all apps say it alike, and a job has one " + at + " for all roles",
             "roles." + one.role, minor, ""});
      }
      continue;
    }
    builder->notes()->Add(
        {first.place, first.field, "kept in " + at + std::string(kHeeds), at, minor, kEngine});
    if (field == "constraints") block.constraints = first.value;
    if (field == "accepted_roles") block.accepted_roles = first.value;
    if (field == "user") block.user = first.value[0];
    if (field == "parameters") block.parameters = first.value;
    if (field == "privileged") block.privileged = true;
    if (field == "force_pull") block.force_pull = true;
    if (field == "unreachable")
      block.unreachable = std::chrono::seconds(std::atoll(first.value[0].c_str()));
  }
  block.secrets = secrets_;
  block.fetch = fetch_;
  if (fetch_.empty()) return;
  builder->notes()->Add({fetch_place_, fetch_field_,
                         "what it downloads is kept in marathon.fetch for all roles" +
                             std::string(kHeeds) + ": have it on the machine there",
                         "marathon.fetch", false, kEngine});
  for (job::Role& role : builder->job()->roles) {
    // As Marathon's own tasks begin.
    if (!role.command.empty()) SayBefore("cd \"${MESOS_SANDBOX:-.}\"", &role);
  }
}

void TellNetworks(Section* app, std::string_view definition) {
  for (Section& network : app->Subs("networks")) {
    const std::string mode = network.Text("mode").value_or("container");
    for (const char* field : {"name", "labels"}) network.Take(field);
    network.Rest(definition);
    network.Lose(
        "",
        "its tasks had the network " + job::Shown(mode) + "; not kept: they share their machine's",
        mode == "host");
  }
}

}  // namespace shoal::dialect
