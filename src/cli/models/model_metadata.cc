#include "cli/models/model_metadata.h"

#include <fmt/format.h>

#include <utility>

namespace shoal::cli {

std::string MetadataText(const json::object& object, std::string_view name) {
  const json::value* const found = object.if_contains(name);
  if (found == nullptr) return "";
  return found->is_string() ? std::string(found->as_string()) : ToText(*found);
}

std::vector<std::string> MetadataList(const json::object* object, std::string_view name) {
  std::vector<std::string> list;
  const json::value* const found = object == nullptr ? nullptr : object->if_contains(name);
  if (found == nullptr || !found->is_array()) return list;
  for (const json::value& item : found->as_array()) {
    if (item.is_string()) list.emplace_back(item.as_string());
  }
  return list;
}

std::string MeasuresText(const json::object& quality) {
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

std::string EffectUnit(std::string_view loss) {
  if (loss == "squared" || loss == "quantile") return "of the predicted number";
  if (loss == "poisson") return "of the logarithm of the predicted count";
  if (loss == "softmax") return "of a class's log-odds against the others";
  return loss == "hinge" ? "of the margin" : "of the log-odds";
}

}  // namespace shoal::cli
