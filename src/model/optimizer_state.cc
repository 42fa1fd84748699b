// optimizer.bin: what a training needs to continue a model (docs/formats/optimizer-state.md).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/file.h"
#include "base/id.h"
#include "model/factor_model.h"
#include "model/model_files.h"

namespace shoal::model {
namespace {

constexpr std::string_view kMagic = "SHOALOPT";
constexpr uint32_t kVersion = 1;
constexpr size_t kMaxFile = size_t{256} << 30;

Status MalformedState(std::string_view what) {
  return InvalidArgument(fmt::format("optimizer.bin {}", what));
}

bool IsSeen(const float* row, uint32_t width) {
  return std::any_of(row, row + width, [](float value) { return value != 0; });
}

// A weight, and squares, which are not negative.
bool IsStateRow(const float* row, uint32_t width) {
  return std::isfinite(row[0]) && std::all_of(row + 1, row + width, [](float squares) {
           return std::isfinite(squares) && squares >= 0;
         });
}

struct StateHeader {
  uint32_t width = 0;
  uint64_t end = 0;
  uint64_t count = 0;
  std::vector<float> biases;
};

Result<StateHeader> ReadStateHeader(ByteReader* reader, const FactorModel& model) {
  StateHeader header;
  std::string_view magic;
  uint32_t version = 0, classes = 0;
  if (!reader->GetRaw(kMagic.size(), &magic).ok() || magic != kMagic)
    return MalformedState("does not begin as one");
  if (!reader->Get(&version).ok() || version != kVersion)
    return MalformedState(fmt::format("is of version {}, expected {}", version, kVersion));
  if (!reader->Get(&header.width).ok() || !reader->Get(&classes).ok() ||
      !reader->Get(&header.end).ok() || !reader->Get(&header.count).ok())
    return MalformedState("ends inside its header");
  if (header.width != 2 + model.width() || classes != model.linear.classes() ||
      header.end != model.linear.weights.size() || header.count > header.end)
    return MalformedState("is that of a model of another size");
  header.biases.resize(size_t{2} * classes);
  for (float& value : header.biases) {
    if (!reader->Get(&value).ok()) return MalformedState("ends inside its header");
  }
  for (uint32_t c = 0; c < classes; ++c) {
    if (!IsStateRow(header.biases.data() + size_t{2} * c, 2))
      return MalformedState("has a bias that is no number");
  }
  return header;
}

}  // namespace

std::string EncodeOptimizerState(const FactorModel& model) {
  const OptimizerState& state = model.optimizer;
  std::vector<uint32_t> features;
  for (uint64_t i = 0; i < model.linear.weights.size(); ++i) {
    if (IsSeen(state.rows.data() + i * state.width, state.width))
      features.push_back(static_cast<uint32_t>(i));
  }
  std::string bytes;
  const size_t row = state.width * sizeof(float);
  bytes.reserve(64 + state.biases.size() * 4 + features.size() * (4 + row));
  ByteWriter writer(&bytes);
  writer.PutRaw(kMagic.data(), kMagic.size());
  writer.Put(kVersion);
  writer.Put(state.width);
  writer.Put(static_cast<uint32_t>(state.biases.size() / 2));
  writer.Put<uint64_t>(model.linear.weights.size());
  writer.Put<uint64_t>(features.size());
  for (const float value : state.biases) writer.Put(value);
  writer.PutRaw(reinterpret_cast<const char*>(features.data()), 4 * features.size());
  for (const uint32_t feature : features) {
    writer.PutRaw(
        reinterpret_cast<const char*>(state.rows.data() + uint64_t{feature} * state.width), row);
  }
  writer.Put(Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

Status DecodeOptimizerState(std::string_view bytes, FactorModel* model) {
  ByteReader reader(bytes);
  TRY_ASSIGN(StateHeader header, ReadStateHeader(&reader, *model));
  const size_t row = header.width * sizeof(float);
  const uint64_t expected = header.count * (4 + row) + 4;
  if (reader.remaining() != expected) {
    return MalformedState(
        fmt::format("has {} bytes behind its header, expected {}", reader.remaining(), expected));
  }
  uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - 4, 4);
  if (sum != Crc32c(bytes.data(), bytes.size() - 4)) return MalformedState("has a wrong checksum");
  OptimizerState state;
  state.width = header.width;
  state.biases = std::move(header.biases);
  try {
    state.rows = ZeroedFloats(header.end * header.width);
  } catch (const std::exception&) {  // bad_alloc, length_error
    return MalformedState("is of more features than there is memory for");
  }
  const char* const features = bytes.data() + bytes.size() - expected;
  const char* const rows = features + 4 * header.count;
  uint64_t next = 0;
  for (uint64_t i = 0; i < header.count; ++i) {
    uint32_t feature = 0;
    std::memcpy(&feature, features + 4 * i, 4);
    if (feature < next || feature >= header.end) return MalformedState("has features out of order");
    float* const to = state.rows.data() + uint64_t{feature} * header.width;
    std::memcpy(to, rows + row * i, row);
    if (!IsStateRow(to, header.width)) return MalformedState("has a value that is no number");
    next = feature + 1ull;
  }
  model->optimizer = std::move(state);
  return Status::Ok();
}

Status ReadOptimizerState(const std::filesystem::path& directory, FactorModel* model) {
  const std::filesystem::path path = directory / "optimizer.bin";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return NotFound("there is no optimizer.bin in " + directory.string());
  TRY_ASSIGN(const std::string bytes, ReadFile(path, kMaxFile));
  const Status decoded = DecodeOptimizerState(bytes, model);
  if (!decoded.ok()) return DataLoss(path.string() + ": " + decoded.message());
  return CheckModelFile(directory, "optimizer.bin", bytes);
}

}  // namespace shoal::model
