// `shoal models` and `shoal rollback`: the registry of models.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "cli/jobs/registry_place.h"
#include "cli/models/model_commands.h"
#include "cli/models/model_metadata.h"
#include "cli/terminal/report.h"
#include "serving/registry/history_json.h"

namespace shoal::cli {
namespace {

using serving::ModelHistory;
using serving::ModelReference;
using serving::ModelVersion;
using serving::VersionJson;

struct ModelsArguments {
  RegistryOptions registry;
  std::string reference;
  std::vector<std::string> references;  // of ls and compare
  std::string tag;
  std::string path;
  std::string to;
  std::string name;
  bool remove = false;
  int keep = 0;
};

constexpr size_t kShownDigest = 12;

// What it measures, by the best that model.json has.
std::string QualityOf(const ModelVersion& version) {
  for (const char* const name : {"held_out", "validation"}) {
    const json::object* const measures = FindObject(version.metadata, name);
    if (measures == nullptr) continue;
    std::string text = MeasuresText(*measures);
    if (!text.empty()) return text;
  }
  return "";
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

Result<std::vector<std::string>> ChosenNames(serving::Models* models,
                                             const ModelsArguments& arguments) {
  if (arguments.references.empty()) return models->Names();
  TRY_ASSIGN(const ModelReference reference,
             serving::ParseModelReference(arguments.references.front()));
  return std::vector<std::string>{reference.name};
}

Status List(const Context& context, const ModelsArguments& arguments) {
  TRY_ASSIGN(const OpenedRegistry registry, OpenModels(context, arguments.registry));
  TRY_ASSIGN(const auto names, ChosenNames(registry.models.get(), arguments));
  std::string text;
  for (const std::string& name : names) {
    TRY_ASSIGN(const ModelHistory history, registry.models->Read(name));
    for (const ModelVersion& version : history.versions()) {
      if (version.deleted) continue;
      if (context.json) {
        text += JsonLine(VersionJson(name, version, history));
        continue;
      }
      text +=
          fmt::format("{:<24} {:<20} {:>10}  {}{}{}\n", fmt::format("{}@{}", name, version.number),
                      version.created.substr(0, 19), BytesText(version.bytes()), QualityOf(version),
                      history.TagsOf(version.number).empty() ? "" : "  ",
                      fmt::join(history.TagsOf(version.number), " "));
    }
  }
  if (text.empty() && !context.json)
    text = "no models in " + registry.models->place() + "; a training adds its model\n";
  return PrintOut(text);
}

struct Found {
  OpenedRegistry registry;
  ModelReference reference;
  ModelHistory history;
  ModelVersion version;
};

Result<Found> FindVersion(const Context& context, const RegistryOptions& registry,
                          const std::string& text) {
  Found found;
  TRY_ASSIGN(found.reference, serving::ParseModelReference(text));
  TRY_ASSIGN(found.registry, OpenModels(context, registry));
  TRY_ASSIGN(found.version, found.registry.models->Find(found.reference));
  TRY_ASSIGN(found.history, found.registry.models->Read(found.reference.name));
  return found;
}

constexpr size_t kLongValue = 100;

std::string Shortened(const std::string& text) {
  return EscapedUtf8(text.size() <= kLongValue ? text : text.substr(0, kLongValue) + "…");
}

Status Show(const Context& context, const ModelsArguments& arguments) {
  TRY_ASSIGN(const Found found, FindVersion(context, arguments.registry, arguments.reference));
  const ModelVersion& version = found.version;
  if (context.json)
    return PrintOut(JsonLine(VersionJson(found.reference.name, version, found.history)));
  std::string text = fmt::format("{}@{}\n", found.reference.name, version.number);
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<10} {}\n", name, EscapedUtf8(value));
  };
  line("created", version.created.substr(0, 19) + (version.by.empty() ? "" : " by " + version.by));
  line("tags", fmt::format("{}", fmt::join(found.history.TagsOf(version.number), ", ")));
  line("job", version.job);
  line("from", version.source);
  line("quality", QualityOf(version));
  line("digest", version.digest);
  for (const serving::VersionFile& file : version.files)
    text += fmt::format("  {:<24} {:>10}  {}\n", EscapedUtf8(file.name), BytesText(file.bytes),
                        file.sha256.substr(0, kShownDigest));
  for (const auto& [name, value] : serving::FlatFields(version.metadata))
    text += fmt::format("  {} = {}\n", EscapedUtf8(name), Shortened(value));
  return PrintOut(text);
}

Status Compare(const Context& context, const ModelsArguments& arguments) {
  TRY_ASSIGN(const Found first, FindVersion(context, arguments.registry, arguments.references[0]));
  TRY_ASSIGN(const Found second, FindVersion(context, arguments.registry, arguments.references[1]));
  const serving::Differences differing = serving::Compare(first.version, second.version);
  const std::string a = fmt::format("{}@{}", first.reference.name, first.version.number);
  const std::string b = fmt::format("{}@{}", second.reference.name, second.version.number);
  if (context.json) return PrintOut(JsonLine(serving::DifferencesJson(a, b, differing)));
  std::string text = differing.empty() ? fmt::format("{} and {} are equal\n", a, b)
                                       : fmt::format("{:<40} {:<28} {}\n", "", a, b);
  for (const auto& [name, values] : differing) {
    text += fmt::format("{:<40} {:<28} {}\n", EscapedUtf8(name),
                        values.first.empty() ? "-" : Shortened(values.first),
                        values.second.empty() ? "-" : Shortened(values.second));
  }
  return PrintOut(text);
}

Status Confirm(const Context& context, json::object event, const std::string& text) {
  return PrintOut(context.json ? JsonLine(event) : text + "\n");
}

Status Tag(const Context& context, const ModelsArguments& arguments) {
  TRY_ASSIGN(const ModelReference reference, serving::ParseModelReference(arguments.reference));
  TRY_ASSIGN(const OpenedRegistry registry, OpenModels(context, arguments.registry));
  if (arguments.remove) {
    TRY(registry.models->Tag(reference.name, arguments.tag, 0, RegistryUser()));
    return Confirm(context,
                   {{"model", reference.name}, {"tag", arguments.tag}, {"version", nullptr}},
                   fmt::format("the tag {} of {} is removed", arguments.tag, reference.name));
  }
  TRY_ASSIGN(const ModelVersion version, registry.models->Find(reference));
  TRY(registry.models->Tag(reference.name, arguments.tag, version.number, RegistryUser()));
  return Confirm(
      context, {{"model", reference.name}, {"tag", arguments.tag}, {"version", version.number}},
      fmt::format("{}@{} has the tag {}", reference.name, version.number, arguments.tag));
}

Status Promote(const Context& context, const ModelsArguments& arguments) {
  TRY_ASSIGN(const Found found, FindVersion(context, arguments.registry, arguments.reference));
  const std::string& name = found.reference.name;
  if (arguments.to.empty()) {
    TRY(found.registry.models->Tag(name, std::string(serving::kPromoted), found.version.number,
                                   RegistryUser()));
    return Confirm(context, {{"model", name}, {"promoted", found.version.number}},
                   fmt::format("{}@{} is promoted", name, found.version.number));
  }
  TRY_ASSIGN(const OpenedRegistry other, OpenRegistry(arguments.to));
  TRY_ASSIGN(const TempDir scratch, TempDir::Create());
  TRY_ASSIGN(const auto directory,
             found.registry.models->Fetch(name, found.version, scratch.path()));
  TRY_ASSIGN(const ModelVersion added,
             other.models->Add(name, directory.string(),
                               {.by = RegistryUser(),
                                .job = found.version.job,
                                .source = fmt::format("{}@{} of {}", name, found.version.number,
                                                      found.registry.models->place())}));
  TRY(other.models->Tag(name, std::string(serving::kPromoted), added.number, RegistryUser()));
  return Confirm(context,
                 {{"model", name}, {"promoted", added.number}, {"registry", other.models->place()}},
                 fmt::format("{}@{} is {}@{} of {}, and promoted there", name, found.version.number,
                             name, added.number, other.models->place()));
}

Status Export(const Context& context, const ModelsArguments& arguments) {
  TRY_ASSIGN(const Found found, FindVersion(context, arguments.registry, arguments.reference));
  TRY(found.registry.models->Export(found.reference.name, found.version, arguments.path));
  return Confirm(
      context,
      {{"model", found.reference.name},
       {"version", found.version.number},
       {"directory", arguments.path}},
      fmt::format("{}@{} is in {}", found.reference.name, found.version.number, arguments.path));
}

Status Import(const Context& context, const ModelsArguments& arguments) {
  TRY_ASSIGN(const OpenedRegistry registry, OpenModels(context, arguments.registry));
  const std::string name =
      arguments.name.empty() ? serving::NameForPath(arguments.path) : arguments.name;
  TRY_ASSIGN(const ModelVersion version,
             registry.models->Add(name, arguments.path, {.by = RegistryUser()}));
  return Confirm(context, VersionJson(name, version, ModelHistory()),
                 fmt::format("{} is {}@{}", arguments.path, name, version.number));
}

Status Delete(const Context& context, const ModelsArguments& arguments) {
  TRY_ASSIGN(const ModelReference reference, serving::ParseModelReference(arguments.reference));
  TRY_ASSIGN(const OpenedRegistry registry, OpenModels(context, arguments.registry));
  if (reference.version.empty() == (arguments.keep == 0)) {
    return InvalidArgument(
        "expected NAME@VERSION, or NAME with --keep N, the number of newest versions that stay");
  }
  std::vector<uint64_t> doomed;
  if (arguments.keep > 0) {
    TRY_ASSIGN(const ModelHistory history, registry.models->Read(reference.name));
    int kept = 0;
    for (auto version = history.versions().rbegin(); version != history.versions().rend();
         ++version) {
      if (version->deleted || kept++ < arguments.keep || !history.TagsOf(version->number).empty())
        continue;
      doomed.push_back(version->number);
    }
    std::reverse(doomed.begin(), doomed.end());
  } else {
    TRY_ASSIGN(const ModelVersion version, registry.models->Find(reference));
    doomed.push_back(version.number);
  }
  for (const uint64_t number : doomed)
    TRY(registry.models->Delete(reference.name, number, RegistryUser()));
  return Confirm(
      context, {{"model", reference.name}, {"deleted", json::array(doomed.begin(), doomed.end())}},
      doomed.empty() ? "there is nothing to delete"
                     : fmt::format("deleted of {}: {}", reference.name, fmt::join(doomed, ", ")));
}

Status Rollback(const Context& context, const ModelsArguments& arguments) {
  const std::string& name = arguments.reference;
  TRY_ASSIGN(const OpenedRegistry registry, OpenModels(context, arguments.registry));
  TRY_ASSIGN(const uint64_t version, registry.models->Rollback(name, RegistryUser()));
  return Confirm(context, {{"model", name}, {"promoted", version}},
                 fmt::format("{}@{} is promoted again", name, version));
}

using Action = Status (*)(const Context&, const ModelsArguments&);

// Makes a subcommand that runs `action`.
CLI::App* AddAction(CLI::App* to, const char* name, const char* about, Action action,
                    const std::shared_ptr<ModelsArguments>& arguments, Run* chosen) {
  CLI::App* const sub = to->add_subcommand(name, about);
  AddRegistryOptions(sub, &arguments->registry);
  if (to->get_parent() != nullptr) sub->fallthrough();  // --json is the parent's
  sub->callback([action, arguments, chosen] {
    *chosen = [action, arguments](const Context& context) {
      const Status done = action(context, *arguments);
      return done.ok() ? 0 : PrintError(done);
    };
  });
  return sub;
}

void AddReference(CLI::App* sub, ModelsArguments* arguments, const char* about) {
  sub->add_option("MODEL", arguments->reference, about)->required()->type_name("");
}

constexpr const char* kModelsFooter = R"help(Examples:
  shoal models ls
  shoal models show ages@2
  shoal models compare ages@1 ages@2
  shoal models tag ages@2 candidate
  shoal models promote ages@2
  shoal models export ages@2 ./ages-2
  shoal models import ./ages-2 --name ages
  shoal models delete ages --keep 5

Every job that succeeds and has outputs.model adds a version, which nothing changes any more. A model
is NAME@3, NAME@TAG, or NAME: the version with the tag promoted, else the newest. A version with a
tag is protected from deletion. With a server, by --server or `shoal login`, the models are those of
a team. docs/serving.md has the registry and how models are served.)help";

}  // namespace

void AddModels(CLI::App& app, Run* chosen) {
  CLI::App* const models = app.add_subcommand("models", "Versions of trained models");
  models->require_subcommand(1);
  models->footer(kModelsFooter);
  const auto make = [] { return std::make_shared<ModelsArguments>(); };
  auto list = make();
  AddAction(models, "ls", "List models and their versions", List, list, chosen)
      ->add_option("NAME", list->references, "Only this model")
      ->expected(0, 1)
      ->type_name("");
  auto show = make();
  AddReference(AddAction(models, "show", "Show a version", Show, show, chosen), show.get(),
               "NAME@VERSION");
  auto compare = make();
  AddAction(models, "compare", "Show how two versions differ", Compare, compare, chosen)
      ->add_option("MODEL", compare->references, "Two of NAME@VERSION")
      ->required()
      ->expected(2)
      ->type_name("");
  auto tag = make();
  CLI::App* sub = AddAction(models, "tag", "Give a version a name", Tag, tag, chosen);
  AddReference(sub, tag.get(), "NAME@VERSION");
  sub->add_option("TAG", tag->tag, "The tag, which then names only this version")
      ->required()
      ->type_name("");
  sub->add_flag("--remove", tag->remove, "Remove the tag");
  auto promote = make();
  sub = AddAction(models, "promote", "Make a version the one that is served", Promote, promote,
                  chosen);
  AddReference(sub, promote.get(), "NAME@VERSION");
  sub->add_option("--to", promote->to, "Copy it to this registry and promote it there")
      ->type_name("PLACE");
  auto exported = make();
  sub = AddAction(models, "export", "Copy a version's files", Export, exported, chosen);
  AddReference(sub, exported.get(), "NAME@VERSION");
  sub->add_option("DIR", exported->path, "New directory or folder of a store")
      ->required()
      ->type_name("");
  auto import = make();
  sub = AddAction(models, "import", "Add a version from files", Import, import, chosen);
  sub->add_option("DIR", import->path, "Directory or folder of a store with a model")
      ->required()
      ->type_name("");
  sub->add_option("--name", import->name, "Its name [that of the directory]")->type_name("NAME");
  auto removed = make();
  sub = AddAction(models, "delete", "Delete versions without tags", Delete, removed, chosen);
  AddReference(sub, removed.get(), "NAME@VERSION, or NAME with --keep");
  sub->add_option("--keep", removed->keep, "Delete all versions but this many newest and tagged")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("N");
}

void AddRollback(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ModelsArguments>();
  CLI::App* const sub = AddAction(&app, "rollback", "Promote the version that was promoted before",
                                  Rollback, arguments, chosen);
  AddReference(sub, arguments.get(), "Name of the model");
  sub->footer(R"help(Examples:
  shoal rollback ages

Servers that follow the model (`shoal publish ages`) answer with that version within seconds, without
failing a request. Again, it goes back one version more.)help");
}

}  // namespace shoal::cli
