#include "cli/models/show_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/jobs/job_text.h"
#include "cli/models/model_metadata.h"
#include "cli/terminal/report.h"
#include "learn/sparse/describe.h"
#include "model/factor_model.h"
#include "model/save_model.h"

namespace shoal::cli {
namespace {

using learn::sparse::FeatureEffect;
using learn::sparse::ModelDescription;

std::string TextIn(const json::object& object, std::string_view name) {
  return EscapedUtf8(MetadataText(object, name));
}

std::string Number(double value) { return fmt::format("{:.4g}", value); }

std::string LabelText(const json::object& columns) {
  std::string text = TextIn(columns, "label");
  const std::vector<std::string> classes = MetadataList(&columns, "classes");
  if (classes.size() == 2)
    return text +
           fmt::format(": {} (1) or {} (0)", EscapedUtf8(classes[1]), EscapedUtf8(classes[0]));
  for (size_t i = 0; i < std::min<size_t>(classes.size(), 12); ++i)
    text += (i == 0 ? ": " : ", ") + EscapedUtf8(classes[i]);
  return text + (classes.size() > 12 ? fmt::format(", … ({})", classes.size()) : "");
}

std::string EffectsText(const ModelDescription& model, bool scaled) {
  std::vector<std::vector<std::string>> rows;
  if (scaled) {
    rows.push_back({"FEATURE", "EFFECT", "PER UNIT", "MEAN", "DEVIATION"});
  } else {
    rows.push_back({"FEATURE", "WEIGHT"});
  }
  if (!model.classes.empty()) rows.back().insert(rows.back().begin(), "CLASS");
  for (const FeatureEffect& effect : model.effects) {
    std::vector<std::string> row{EscapedUtf8(effect.name), fmt::format("{:+.4g}", effect.weight)};
    if (effect.scaled) {
      row.insert(row.end(), {fmt::format("{:+.4g}", effect.per_unit), Number(effect.mean),
                             Number(effect.deviation)});
    }
    if (!model.classes.empty()) row.insert(row.begin(), EscapedUtf8(effect.class_name));
    rows.push_back(std::move(row));
  }
  return Table(rows);
}

std::string TextOf(const std::string& path, const json::object& metadata,
                   const ModelDescription& model, uint32_t factors) {
  std::vector<std::vector<std::string>> facts = {
      {"model", TextIn(metadata, "algorithm") + " in " + EscapedUtf8(path)}};
  const json::object* const data = FindObject(metadata, "data");
  const json::object* const columns = data == nullptr ? nullptr : FindObject(*data, "columns");
  if (columns != nullptr) facts.push_back({"label", LabelText(*columns)});
  const json::object* const target = FindObject(metadata, "target");
  const std::string loss = target == nullptr ? "logistic" : TextIn(*target, "loss");
  facts.push_back({"loss", loss});
  if (const auto* training = FindObject(metadata, "training"); training != nullptr)
    facts.push_back({"trained on", TextIn(*training, "examples") + " examples"});
  for (const std::string& file : MetadataList(data, "files"))
    facts.push_back({"", EscapedUtf8(file)});
  if (const auto* quality = FindObject(metadata, "held_out"); quality != nullptr)
    facts.push_back({"held out", MeasuresText(*quality)});
  if (model.classes.empty()) facts.push_back({"bias", Number(model.bias)});
  std::string weights = fmt::format("{} are not 0", model.nonzero);
  if (model.unnamed > 0)
    weights += fmt::format("; {} belong to classes that no file names (--data)", model.unnamed);
  facts.push_back({"weights", weights});
  if (factors > 0)
    facts.push_back({"pairs", fmt::format("{} factors for each feature, not shown", factors)});
  const bool scaled = columns != nullptr && columns->contains("scaling");
  std::string text = Table(facts) + "\n" + EffectsText(model, scaled);
  if (scaled && !model.effects.empty()) {
    text += "\nEFFECT: change " + EffectUnit(loss) +
            " by one deviation of a number, or by a class or a missing cell.\n";
  }
  return text;
}

json::object JsonOf(const json::object& metadata, const ModelDescription& model) {
  json::array effects;
  for (const FeatureEffect& effect : model.effects) {
    json::object one{{"feature", EscapedUtf8(effect.name)}, {"effect", effect.weight}};
    if (!model.classes.empty()) one["class"] = EscapedUtf8(effect.class_name);
    if (effect.scaled) {
      one["per_unit"] = effect.per_unit;
      one["mean"] = effect.mean;
      one["deviation"] = effect.deviation;
    }
    effects.push_back(std::move(one));
  }
  json::object out = metadata;
  out["bias"] = model.bias;
  out["nonzero"] = model.nonzero;
  out["unnamed"] = model.unnamed;
  out["strongest"] = std::move(effects);
  return out;
}

}  // namespace

bool IsModelDirectory(const std::string& path) {
  std::error_code ignored;  // then it is none
  return std::filesystem::is_regular_file(std::filesystem::path(path) / "model.json", ignored);
}

Result<DescribedModel> DescribeModelAt(const ShowModelArguments& arguments) {
  DescribedModel described;
  TRY_ASSIGN(described.metadata, model::ReadModelMetadata(arguments.model));
  if (TextIn(described.metadata, "algorithm") == "word2vec") {
    return InvalidArgument(
        arguments.model +
        " holds word vectors; `shoal nearest` and `shoal analogy` show what they "
        "know");
  }
  TRY_ASSIGN(const model::FactorModel model, model::ReadFactorModel(arguments.model));
  described.factors = model.factors;
  learn::sparse::DescribeOptions options;
  options.limit = static_cast<size_t>(arguments.top);
  options.files = arguments.data.empty()
                      ? MetadataList(FindObject(described.metadata, "data"), "files")
                      : arguments.data;
  TRY_ASSIGN(described.description,
             learn::sparse::DescribeModel(model, described.metadata, options));
  return described;
}

int ShowModel(const Context& context, const ShowModelArguments& arguments) {
  const Result<DescribedModel> model = DescribeModelAt(arguments);
  if (!model.ok()) return PrintError(model.status());
  const auto& [metadata, factors, description] = *model;
  if (context.json) return PrintResult(ToPrettyText(JsonOf(metadata, description)) + "\n");
  return PrintResult(TextOf(arguments.model, metadata, description, factors));
}

}  // namespace shoal::cli
