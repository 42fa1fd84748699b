// The features of a tf.train.Example as fields.
#include "data/formats/fields.h"
#include "data/formats/tf_example.h"

namespace shoal::data {
namespace {

using Kind = TableCell::Kind;

class TfExampleFields final : public FieldReader {
 public:
  std::string Read(std::string_view record, FieldVisitor* visitor) override {
    Result<TfExample> example = DecodeTfExample(record);
    if (!example.ok()) return "a tf.train.Example: " + example.status().message();
    example_ = std::move(*example);
    for (const auto& [name, feature] : example_) {
      values_.clear();
      if (const auto* texts = std::get_if<std::vector<std::string>>(&feature)) {
        for (const std::string& text : *texts)
          values_.push_back({.kind = Kind::kText, .text = text});
      } else if (const auto* floats = std::get_if<std::vector<float>>(&feature)) {
        for (const float value : *floats)
          values_.push_back({.kind = Kind::kFloat, .real = static_cast<double>(value)});
      } else {
        for (const int64_t value : std::get<std::vector<int64_t>>(feature))
          values_.push_back({.kind = Kind::kInteger, .integer = value});
      }
      if (values_.size() == 1) {
        visitor->Value(name, values_.front());
      } else {
        visitor->List(name, values_);
      }
    }
    return "";
  }

 private:
  TfExample example_;
  std::vector<TableCell> values_;
};

}  // namespace

std::unique_ptr<FieldReader> MakeTfExampleFields() { return std::make_unique<TfExampleFields>(); }

}  // namespace shoal::data
