#include "data/formats/tf_example.h"

#include <cstring>
#include <utility>

#include "base/utf8.h"

namespace shoal::data {
namespace {

constexpr uint64_t kVarint = 0;
constexpr uint64_t kFixed64 = 1;
constexpr uint64_t kLengthDelimited = 2;
constexpr uint64_t kFixed32 = 5;
constexpr int kWireBits = 3;

Status CutOff() { return DataLoss("the example is cut off"); }

// A protocol buffer's fields, one after the other.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  Result<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return CutOff();
      const auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return DataLoss("a number of the example has more than ten bytes");
  }

  Result<std::string_view> Bytes(size_t size) {
    if (size > rest_.size()) return CutOff();
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  Result<std::string_view> Delimited() {
    TRY_ASSIGN(const uint64_t size, Varint());
    if (size > rest_.size()) return CutOff();
    return Bytes(static_cast<size_t>(size));
  }

  // The number of the next field, and its wire type.
  Result<std::pair<uint64_t, uint64_t>> Tag() {
    TRY_ASSIGN(const uint64_t tag, Varint());
    if (tag >> kWireBits == 0) return DataLoss("the example has a field without a number");
    return std::pair(tag >> kWireBits, tag & ((1u << kWireBits) - 1));
  }

  Status Skip(uint64_t type) {
    switch (type) {
      case kVarint:
        return Varint().status();
      case kFixed64:
        return Bytes(8).status();
      case kLengthDelimited:
        return Delimited().status();
      case kFixed32:
        return Bytes(4).status();
      default:
        return DataLoss("the example has a field of an unknown type");
    }
  }

 private:
  std::string_view rest_;
};

// Calls use(field, bytes) for each length-delimited field with a number from 1 to `most`; others
// are skipped.
template <typename Use>
Status ForEachDelimited(std::string_view message, uint64_t most, const Use& use) {
  ProtoReader reader(message);
  while (!reader.done()) {
    TRY_ASSIGN(const auto tag, reader.Tag());
    if (tag.second != kLengthDelimited || tag.first == 0 || tag.first > most) {
      TRY(reader.Skip(tag.second));
      continue;
    }
    TRY_ASSIGN(const std::string_view bytes, reader.Delimited());
    TRY(use(tag.first, bytes));
  }
  return Status::Ok();
}

Result<std::vector<std::string>> DecodeBytesList(std::string_view bytes) {
  std::vector<std::string> values;
  TRY(ForEachDelimited(bytes, 1, [&](uint64_t, std::string_view value) {
    values.emplace_back(value);
    return Status::Ok();
  }));
  return values;
}

Status AppendFloats(std::string_view packed, std::vector<float>* values) {
  if (packed.size() % sizeof(float) != 0) return DataLoss("a list of floats is cut off");
  const size_t before = values->size();
  values->resize(before + packed.size() / sizeof(float));
  if (!packed.empty()) std::memcpy(values->data() + before, packed.data(), packed.size());
  return Status::Ok();
}

Result<std::vector<float>> DecodeFloatList(std::string_view bytes) {
  std::vector<float> values;
  ProtoReader reader(bytes);
  while (!reader.done()) {
    TRY_ASSIGN(const auto tag, reader.Tag());
    if (tag == std::pair<uint64_t, uint64_t>(1, kLengthDelimited)) {
      TRY_ASSIGN(const std::string_view packed, reader.Delimited());
      TRY(AppendFloats(packed, &values));
    } else if (tag == std::pair<uint64_t, uint64_t>(1, kFixed32)) {
      TRY_ASSIGN(const std::string_view one, reader.Bytes(sizeof(float)));
      TRY(AppendFloats(one, &values));
    } else {
      TRY(reader.Skip(tag.second));
    }
  }
  return values;
}

Result<std::vector<int64_t>> DecodeIntList(std::string_view bytes) {
  std::vector<int64_t> values;
  ProtoReader reader(bytes);
  while (!reader.done()) {
    TRY_ASSIGN(const auto tag, reader.Tag());
    if (tag == std::pair<uint64_t, uint64_t>(1, kLengthDelimited)) {
      TRY_ASSIGN(const std::string_view packed, reader.Delimited());
      ProtoReader numbers(packed);
      while (!numbers.done()) {
        TRY_ASSIGN(const uint64_t value, numbers.Varint());
        values.push_back(static_cast<int64_t>(value));
      }
    } else if (tag == std::pair<uint64_t, uint64_t>(1, kVarint)) {
      TRY_ASSIGN(const uint64_t value, reader.Varint());
      values.push_back(static_cast<int64_t>(value));
    } else {
      TRY(reader.Skip(tag.second));
    }
  }
  return values;
}

// Of its lists, of which at most one is there, the last counts.
Status DecodeFeature(std::string_view message, TfFeature* feature) {
  return ForEachDelimited(message, 3, [&](uint64_t field, std::string_view list) -> Status {
    if (field == 1) {
      TRY_ASSIGN(*feature, DecodeBytesList(list));
    } else if (field == 2) {
      TRY_ASSIGN(*feature, DecodeFloatList(list));
    } else {
      TRY_ASSIGN(*feature, DecodeIntList(list));
    }
    return Status::Ok();
  });
}

Status DecodeEntry(std::string_view message, TfExample* example) {
  std::string name;
  TfFeature feature;
  TRY(ForEachDelimited(message, 2, [&](uint64_t field, std::string_view value) -> Status {
    if (field == 2) return DecodeFeature(value, &feature);
    name = value;
    return Status::Ok();
  }));
  example->insert_or_assign(std::move(name), std::move(feature));
  return Status::Ok();
}

void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) *to += static_cast<char>(value | 0x80);
  *to += static_cast<char>(value);
}

void AppendDelimited(uint64_t field, std::string_view bytes, std::string* to) {
  AppendVarint(field << kWireBits | kLengthDelimited, to);
  AppendVarint(bytes.size(), to);
  *to += bytes;
}

std::string EncodeFeature(const TfFeature& feature) {
  std::string list;
  if (const auto* strings = std::get_if<std::vector<std::string>>(&feature)) {
    for (const std::string& one : *strings) AppendDelimited(1, one, &list);
  } else if (const auto* floats = std::get_if<std::vector<float>>(&feature)) {
    AppendDelimited(
        1, {reinterpret_cast<const char*>(floats->data()), floats->size() * sizeof(float)}, &list);
  } else {
    std::string packed;
    for (const int64_t one : std::get<std::vector<int64_t>>(feature))
      AppendVarint(static_cast<uint64_t>(one), &packed);
    AppendDelimited(1, packed, &list);
  }
  std::string bytes;
  AppendDelimited(feature.index() + 1, list, &bytes);
  return bytes;
}

}  // namespace

Result<TfExample> DecodeTfExample(std::string_view bytes) {
  TfExample example;
  TRY(ForEachDelimited(bytes, 1, [&](uint64_t, std::string_view features) {
    return ForEachDelimited(features, 1, [&](uint64_t, std::string_view entry) {
      return DecodeEntry(entry, &example);
    });
  }));
  return example;
}

std::string EncodeTfExample(const TfExample& example) {
  std::string features;
  for (const auto& [name, feature] : example) {
    std::string entry;
    AppendDelimited(1, name, &entry);
    AppendDelimited(2, EncodeFeature(feature), &entry);
    AppendDelimited(1, entry, &features);
  }
  std::string bytes;
  AppendDelimited(1, features, &bytes);
  return bytes;
}

json::object ToJson(const TfExample& example) {
  json::object object;
  for (const auto& [name, feature] : example) {
    json::array values;
    std::visit(
        [&values](const auto& list) {
          for (const auto& one : list) {
            if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::string>) {
              values.emplace_back(EscapedUtf8(one));
            } else {
              values.emplace_back(one);
            }
          }
        },
        feature);
    object[EscapedUtf8(name)] = std::move(values);
  }
  return object;
}

}  // namespace shoal::data
