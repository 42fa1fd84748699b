#include "import/marathon/marathon_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "job/file/fields.h"

namespace shoal::importer {
namespace {

constexpr size_t kMostUris = 256;
constexpr size_t kLongestUser = 256;
constexpr UnsupportedField kSecret[] = {
    {"scope", "which programs may see it", "all of the job's may"}};
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

void MarathonSettings::AddSetting(FieldReader* section, const std::string& name,
                                  const std::string& role, std::vector<std::string> value,
                                  const char* field) {
  settings_[field].push_back(
      {role, std::move(value), section->PlaceOf(name), section->PathOf(name)});
}

void MarathonSettings::ReadApp(FieldReader* app, const std::string& role) {
  ++apps_;
  ReadConstraints(app, role);
  ReadArtifacts(app);
  ReadSources(app);
  if (app->HasField("acceptedResourceRoles"))
    AddSetting(app, "acceptedResourceRoles", role, app->ReadTexts("acceptedResourceRoles"),
               "accepted_roles");
  if (const auto user = app->ReadText("user");
      user && !user->empty() && user->size() <= kLongestUser)
    AddSetting(app, "user", role, {*user}, "user");
  const job::Node* strategy = app->ReadNode("unreachableStrategy");
  if (strategy != nullptr && strategy->kind == job::Node::Kind::kMap) {
    auto unreachable = app->ReadObject("unreachableStrategy");
    const auto seconds = unreachable->ReadNumber("inactiveAfterSeconds", 0, 1e6);
    unreachable->ReportUnread("MarathonUnreachableEnabled");
    if (seconds) {
      const auto text = std::to_string(std::llround(*seconds)) + "s";
      AddSetting(app, "unreachableStrategy", role, {text}, "unreachable");
    }
  } else if (strategy != nullptr) {
    app->AddLoss(
        "unreachableStrategy",
        "its lost tasks were never replaced; not kept: they are after marathon.unreachable");
  }
}

void MarathonSettings::ReadConstraints(FieldReader* app, const std::string& role) {
  const job::Node* node = app->ReadNode("constraints");
  if (node == nullptr) return;
  std::vector<std::string> texts;
  for (const job::Node& item : node->items) {
    const std::string text = Constraint(item);
    if (!text.empty()) {
      texts.push_back(text);
    } else {
      app->AddLoss("constraints", "got " + job::DescribeNode(item) +
                                      "; not kept: a constraint is [field, operator, value] here");
    }
  }
  AddSetting(app, "constraints", role, std::move(texts), "constraints");
}

void MarathonSettings::ReadArtifacts(FieldReader* app) {
  const auto add = [&](const std::string& name, const std::string& uri) {
    if (fetch_field_.empty()) {
      fetch_place_ = app->PlaceOf(name);
      fetch_field_ = app->PathOf(name);
    }
    const bool known = std::find(fetch_.begin(), fetch_.end(), uri) != fetch_.end();
    if (!known && fetch_.size() < kMostUris) fetch_.push_back(uri);
  };
  for (FieldReader& artifact : app->ReadObjects("fetch")) {
    artifact.set_at("marathon.fetch");
    if (const auto uri = artifact.ReadText("uri")) add("fetch", *uri);
    artifact.ReportUnread("MarathonArtifact");
  }
  for (const char* name : {"uris", "storeUrls"}) {
    for (const std::string& uri : app->ReadTexts(name)) add(name, uri);
  }
}

// The environment, which refers to these, is read later.
void MarathonSettings::ReadSources(FieldReader* app) {
  sources_.clear();
  auto secrets = app->ReadObject("secrets");
  if (!secrets) return;
  for (const auto& [key, node] : secrets->ReadAll()) {
    if (node->kind != job::Node::Kind::kMap) continue;
    FieldReader one(*node, secrets->PathOf(key.text), "marathon.secrets", app->diagnostics());
    if (const auto source = one.ReadText("source")) sources_[key.text] = *source;
    one.ReportUnread("MarathonSecretDef", kSecret);
  }
}

bool MarathonSettings::ReadSecret(const std::string& variable, const job::Node& value,
                                  FieldReader* env) {
  const job::Node* name = value.kind == job::Node::Kind::kMap ? value.Find("secret") : nullptr;
  if (name == nullptr || name->kind != job::Node::Kind::kScalar) return false;
  const auto source = sources_.find(name->text);
  if (source == sources_.end()) return false;
  if (!IsVariableName(variable) || job::IsReservedVariable(variable)) return false;
  const auto [known, fresh] = secrets_.emplace(variable, source->second);
  if (!fresh && known->second != source->second) return false;
  env->AddLossExceptOn(kEngine, variable,
                       "it comes from the secret " + job::PrintableText(source->second) +
                           ", kept in marathon.secrets for all roles" + std::string(kHeeds) +
                           ": give them " + env->at() + "." + variable);
  return true;
}

void MarathonSettings::ReadDocker(FieldReader* docker, const std::string& role) {
  if (const auto pull = docker->ReadFlag("forcePullImage"); pull.value_or(false))
    AddSetting(docker, "forcePullImage", role, {"true"}, "force_pull");
  if (const auto all = docker->ReadFlag("privileged"); all.value_or(false))
    AddSetting(docker, "privileged", role, {"true"}, "privileged");
  std::vector<std::string> texts;
  for (FieldReader& parameter : docker->ReadObjects("parameters")) {
    const std::string key = parameter.ReadText("key").value_or("");
    texts.push_back(key + "=" + parameter.ReadText("value").value_or(""));
    parameter.ReportUnread("MarathonDockerParameter");
  }
  if (!texts.empty()) AddSetting(docker, "parameters", role, std::move(texts), "parameters");
}

void MarathonSettings::AddToJob(JobBuilder* builder) {
  job::Marathon& block = builder->job()->marathon;
  for (const auto& [field, said] : settings_) {
    const Setting& first = said.front();
    const bool same = said.size() == apps_ &&
                      std::all_of(said.begin(), said.end(),
                                  [&](const Setting& one) { return one.value == first.value; });
    const std::string at = "marathon." + field;
    const bool minor = field == "force_pull" || field == "unreachable";
    if (!same) {
      for (const Setting& one : said) {
        builder->diagnostics()->Add(
            {one.place, one.field,
             "not kept: not all apps say it alike, and a job has one " + at + " for all roles",
             "roles." + one.role, minor, ""});
      }
      continue;
    }
    builder->diagnostics()->Add(
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
  builder->diagnostics()->Add({fetch_place_, fetch_field_,
                               "what it downloads is kept in marathon.fetch for all roles" +
                                   std::string(kHeeds) + ": have it on the machine there",
                               "marathon.fetch", false, kEngine});
  for (job::Role& role : builder->job()->roles) {
    // The default network of Marathon tasks.
    if (!role.command.empty()) PrependStatement("cd \"${MESOS_SANDBOX:-.}\"", &role);
  }
}

void ReportNetworks(FieldReader* app, std::string_view definition) {
  for (FieldReader& network : app->ReadObjects("networks")) {
    const std::string mode = network.ReadText("mode").value_or("container");
    for (const char* field : {"name", "labels"}) network.ReadNode(field);
    network.ReportUnread(definition);
    network.AddLoss("",
                    "its tasks had the network " + job::PrintableText(mode) +
                        "; not kept: they share their machine's",
                    mode == "host");
  }
}

}  // namespace shoal::importer
