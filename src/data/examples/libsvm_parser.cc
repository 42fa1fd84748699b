// Parses lines of libsvm and libffm text into examples.
#include <algorithm>
#include <cstring>
#include <vector>

#include "data/examples/decimal.h"
#include "data/examples/example_parser.h"

namespace shoal::data {
namespace {

bool EndsToken(char c) { return IsBlank(c) || c == '\n' || c == '#'; }

constexpr const char* kPair = "NUMBER:VALUE, the feature's number and a finite value";
constexpr const char* kTriple = "FIELD:NUMBER:VALUE, the feature's number and a finite value";
constexpr const char* kNumber =
    "a feature number below 4294967295; with hash_bits any 64-bit number does";

constexpr const char* kField = "a field below 65536; with `fields` any 64-bit number does";

// Parses libsvm lines, or libffm lines with kFields.
template <bool kFields>
class LibsvmParser final : public ExampleParser {
 public:
  LibsvmParser(const ExampleOptions& options, ExampleSet* set)
      : options_(options), set_(*set), keeps_(kFields && options.keep_fields) {}

  ParseError Parse(const char* text, const char* newline) override {
    while (IsBlank(*text)) ++text;
    if (*text == '\n' || *text == '#') return {};
    float label = 0;
    const char* at = ParseLabel(text, newline, &label);
    if (at == nullptr) return {text, ExpectedLabel(options_)};
    // A feature takes at least three bytes: "1:1" and a blank.
    const size_t most = static_cast<size_t>(newline - at) / 3 + 1;
    set_.features.Reserve(most);
    if (!set_.values.empty()) set_.values.Reserve(most);
    if (keeps_) set_.fields.Reserve(most);
    begin_ = size_ = set_.features.size();
    rises_ = true;
    if (ParseError fault = ParseFeatures(at, newline); fault.at != nullptr) return fault;
    if (!rises_) Sort();
    Finish(label);
    return {};
  }

 private:
  const char* ParseLabel(const char* text, const char* newline, float* label) const {
    const char* const end = ParseReal(text, newline, label);
    if (end == nullptr || !EndsToken(*end)) return nullptr;
    return NormalizeLabel(options_, label) ? end : nullptr;
  }

  ParseError ParseFeatures(const char* at, const char* newline) {
    uint32_t* features = set_.features.data();
    uint64_t next = 0;  // the least number that rises
    for (;;) {
      while (IsBlank(*at)) ++at;
      if (*at == '\n' || *at == '#') return {};
      uint64_t number = 0;
      const char* colon = ParseDigits(at, &number);
      if constexpr (kFields) {
        if (keeps_ && colon != nullptr && !KeepField(number)) return {at, kField};
        if (colon != nullptr && *colon == ':') colon = ParseDigits(colon + 1, &number);
      }
      if (colon == nullptr || *colon != ':') return {at, kFields ? kTriple : kPair};
      const char* const value = colon + 1;
      if (options_.hash_bits > 0) {
        number = HashFeature(number, options_.hash_bits);
      } else if (number > kMaxFeature) {
        return {at, kNumber};
      }
      rises_ &= number >= next;
      next = number + 1;
      features[size_] = static_cast<uint32_t>(number);
      if (value[0] == '1' && EndsToken(value[1])) {
        if (!set_.values.empty()) set_.values[size_] = 1;
        at = value + 1;
      } else {
        const char* const pair = at;
        at = ParseValue(value, newline);
        if (at == nullptr) return {pair, kFields ? kTriple : kPair};
      }
      ++size_;
    }
  }

  const char* ParseValue(const char* text, const char* newline) {
    float value = 0;
    const char* const end = ParseReal(text, newline, &value);
    if (end == nullptr || !EndsToken(*end)) return nullptr;
    if (set_.values.empty()) StartValues(static_cast<size_t>(newline - text));
    set_.values[size_] = value;
    return end;
  }

  // Called at the first value other than 1: all earlier values were 1.
  void StartValues(size_t rest) {
    set_.values.Reserve(size_ + rest / 3 + 2);
    std::fill(set_.values.data(), set_.values.data() + size_, 1.0f);
    set_.values.SetSize(std::max<size_t>(size_, 1));
  }

  // Stores the field of the next feature.
  bool KeepField(uint64_t number) {
    const uint32_t field = FieldOf(options_, number);
    if (field >= kMaxFields) return false;
    set_.fields[size_] = static_cast<uint16_t>(field);
    set_.field_end = std::max(set_.field_end, field + 1);
    return true;
  }

  void Sort() {
    const bool ones = set_.values.empty();
    line_.clear();
    for (size_t i = begin_; i < size_; ++i) {
      line_.push_back(
          {set_.features[i], ones ? 1.0f : set_.values[i], keeps_ ? set_.fields[i] : uint16_t{0}});
    }
    const size_t before = line_.size();
    SortAndMerge(&line_);
    if (line_.size() < before && ones) StartValues(3 * before);
    size_ = begin_;
    for (const FeatureValue& one : line_) {
      set_.features[size_] = one.feature;
      if (!set_.values.empty()) set_.values[size_] = one.value;
      if (keeps_) set_.fields[size_] = one.field;
      ++size_;
    }
  }

  void Finish(float label) {
    set_.features.SetSize(size_);
    if (!set_.values.empty()) set_.values.SetSize(size_);
    if (keeps_) set_.fields.SetSize(size_);
    set_.labels.Push(label);
    set_.starts.Push(size_);
    if (size_ > begin_)
      set_.feature_end = std::max<uint64_t>(set_.feature_end, set_.features[size_ - 1] + 1ull);
  }

  const ExampleOptions& options_;
  ExampleSet& set_;
  const bool keeps_;  // fields
  std::vector<FeatureValue> line_;
  size_t begin_ = 0;  // of the line's features in the columns
  size_t size_ = 0;   // their end so far
  bool rises_ = true;
};

}  // namespace

std::unique_ptr<ExampleParser> MakeLibsvmParser(const ExampleOptions& options, ExampleSet* set) {
  if (options.format == ExampleFormat::kLibffm)
    return std::make_unique<LibsvmParser<true>>(options, set);
  return std::make_unique<LibsvmParser<false>>(options, set);
}

}  // namespace shoal::data
