#include "cli/commands/show_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/jobs/job_text.h"
#include "cli/terminal/report.h"
#include "learn/sparse/describe.h"
#include "model/factor_model.h"
#include "model/save_model.h"

namespace shoal::cli {
namespace {

using learn::sparse::FeatureEffect;
using learn::sparse::ModelDescription;

std::string TextIn(const json::object& object, std::string_view name) {
  const json::value* const found = object.if_contains(name);
  if (found == nullptr) return "";
  return found->is_string() ? EscapedUtf8(found->as_string()) : ToText(*found);
}

std::vector<std::string> ListIn(const json::object* object, std::string_view name) {
  std::vector<std::string> list;
  const json::value* const found = object == nullptr ? nullptr : object->if_contains(name);
  if (found == nullptr || !found->is_array()) return list;
  for (const json::value& item : found->as_array()) {
    if (item.is_string()) list.emplace_back(item.as_string());
  }
  return list;
}

std::string Number(double value) { return fmt::format("{:.4g}", value); }

std::string QualityText(const json::object& quality) {
  std::string text;
  for (const auto& [name, shown] : {std::pair{"auc", "AUC"},
                                    {"r2", "R²"},
                                    {"rmse", "RMSE"},
                                    {"mae", "MAE"},
                                    {"pinball", "pinball loss"},
                                    {"coverage", "coverage"},
                                    {"deviance", "Poisson deviance"},
                                    {"hinge", "hinge loss"},
                                    {"log_loss", "log-loss"},
                                    {"accuracy", "accuracy"},
                                    {"macro_f1", "macro F1"}}) {
    const json::value* const found = quality.if_contains(name);
    if (found == nullptr || !found->is_number()) continue;
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", shown, found->to_number<double>());
  }
  return text;
}

std::string LabelText(const json::object& columns) {
  std::string text = TextIn(columns, "label");
  const std::vector<std::string> classes = ListIn(&columns, "classes");
  if (classes.size() == 2)
    return text +
           fmt::format(": {} (1) or {} (0)", EscapedUtf8(classes[1]), EscapedUtf8(classes[0]));
  for (size_t i = 0; i < std::min<size_t>(classes.size(), 12); ++i)
    text += (i == 0 ? ": " : ", ") + EscapedUtf8(classes[i]);
  return text + (classes.size() > 12 ? fmt::format(", … ({})", classes.size()) : "");
}

// What the effects are of.
std::string UnitText(const std::string& loss) {
  if (loss == "squared" || loss == "quantile") return "of the predicted number";
  if (loss == "poisson") return "of the logarithm of the predicted count";
  if (loss == "softmax") return "of a class's log-odds against the others";
  return loss == "hinge" ? "of the margin" : "of the log-odds";
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
  for (const std::string& file : ListIn(data, "files")) facts.push_back({"", EscapedUtf8(file)});
  if (const auto* quality = FindObject(metadata, "held_out"); quality != nullptr)
    facts.push_back({"held out", QualityText(*quality)});
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
    text += "\nEFFECT: change " + UnitText(loss) +
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

int ShowModel(const Context& context, const ShowModelArguments& arguments) {
  const Result<json::object> metadata = model::ReadModelMetadata(arguments.model);
  if (!metadata.ok()) return PrintError(metadata.status());
  if (TextIn(*metadata, "algorithm") == "word2vec") {
    return PrintError(InvalidArgument(arguments.model +
                                      " holds word vectors; `shoal nearest` and `shoal analogy` "
                                      "show what they know"));
  }
  const Result<model::FactorModel> model = model::ReadFactorModel(arguments.model);
  if (!model.ok()) return PrintError(model.status());
  learn::sparse::DescribeOptions options;
  options.limit = static_cast<size_t>(arguments.top);
  options.files =
      arguments.data.empty() ? ListIn(FindObject(*metadata, "data"), "files") : arguments.data;
  const auto description = learn::sparse::DescribeModel(*model, *metadata, options);
  if (!description.ok()) return PrintError(description.status());
  if (context.json) return PrintResult(ToPrettyText(JsonOf(*metadata, *description)) + "\n");
  return PrintResult(TextOf(arguments.model, *metadata, *description, model->factors));
}

}  // namespace shoal::cli
