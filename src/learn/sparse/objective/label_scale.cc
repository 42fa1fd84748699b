#include "learn/sparse/objective/label_scale.h"

#include <fmt/format.h>

namespace shoal::learn::sparse {

Result<LabelScale> LabelScaleOf(LossKind kind, const data::ColumnSummary& labels) {
  const double deviation = std::sqrt(labels.variance());
  if (labels.numbers > 0 && !(deviation > 0)) {
    return FailedPrecondition(
        fmt::format("label: all {} examples have {}; expected different numbers", labels.numbers,
                    labels.mean()));
  }
  if (kind == LossKind::kPoisson) return LabelScale{0, labels.mean()};
  return LabelScale{labels.mean(), deviation};
}

json::object ToJson(const Target& target) {
  json::object object{{"loss", NameOf(target.loss.kind)}};
  if (target.loss.kind == LossKind::kQuantile) object["quantile"] = target.loss.quantile;
  if (target.loss.predicts_numbers()) {
    object["mean"] = target.scale.mean;
    object["deviation"] = target.scale.deviation;
  }
  if (target.classes.empty()) return object;
  json::array classes;
  for (const std::string& name : target.classes) classes.emplace_back(name);
  object["classes"] = std::move(classes);
  return object;
}

Result<Target> TargetFromJson(const json::object& metadata) {
  Target target;
  const json::object* const object = FindObject(metadata, "target");
  if (object == nullptr) return target;
  const Result<LossKind> kind = LossKindOf(GetStringOr(*object, "loss", ""));
  if (!kind.ok()) return DataLoss("model.json: target." + kind.status().message());
  target.loss.kind = *kind;
  target.loss.quantile = static_cast<float>(GetDoubleOr(*object, "quantile", 0.5));
  target.scale.mean = GetDoubleOr(*object, "mean", 0);
  target.scale.deviation = GetDoubleOr(*object, "deviation", 1);
  if (!std::isfinite(target.scale.mean) || !std::isfinite(target.scale.deviation) ||
      !(target.scale.deviation > 0))
    return DataLoss(
        "model.json: target: mean and deviation are not finite, or deviation is not positive");
  const json::value* const classes = object->if_contains("classes");
  if (classes == nullptr) return target;
  if (!classes->is_array()) return DataLoss("model.json: target.classes is no list");
  for (const json::value& name : classes->as_array()) {
    if (!name.is_string()) return DataLoss("model.json: target.classes: a name is no text");
    target.classes.emplace_back(name.as_string());
  }
  return target;
}

}  // namespace shoal::learn::sparse
