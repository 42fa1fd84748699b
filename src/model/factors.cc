#include "model/factors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/file.h"
#include "base/id.h"
#include "model/model_files.h"

namespace shoal::model {
namespace {

constexpr std::string_view kMagic = "SHOALFAC";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeader = 24;  // magic, version, factors, count
constexpr size_t kMaxFile = size_t{256} << 30;

Status Malformed(std::string_view what) {
  return InvalidArgument(fmt::format("factors.bin {}", what));
}

bool IsZero(const float* row, uint32_t factors) {
  return std::all_of(row, row + factors, [](float value) { return value == 0; });
}

// libFM's own format (Rendle, libFM 1.4.2 manual): zeros too.
std::string TextOf(const FactorModel& model) {
  std::string text =
      fmt::format("#global bias W0\n{}\n#unary interactions Wj\n", model.linear.bias);
  for (const float weight : model.linear.weights)
    fmt::format_to(std::back_inserter(text), "{}\n", weight);
  text += "#pairwise interactions Vj,f\n";
  for (uint64_t i = 0; i < model.linear.weights.size(); ++i) {
    const float* const row = model.Row(i);
    fmt::format_to(std::back_inserter(text), "{}\n", fmt::join(row, row + model.factors, " "));
  }
  return text;
}

Result<std::string> WriteWithDigest(int fd, const std::string& bytes) {
  TRY(WriteAll(fd, bytes));
  return Sha256Hex(bytes);
}

}  // namespace

std::string EncodeFactors(const FactorModel& model) {
  std::vector<uint32_t> features;
  for (uint64_t i = 0; i < model.linear.weights.size(); ++i) {
    if (!IsZero(model.Row(i), model.factors)) features.push_back(static_cast<uint32_t>(i));
  }
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.PutRaw(kMagic.data(), kMagic.size());
  writer.Put(kVersion);
  writer.Put(model.factors);
  writer.Put<uint64_t>(features.size());
  const size_t row = model.factors * sizeof(float);
  bytes.reserve(kHeader + features.size() * (sizeof(uint32_t) + row) + sizeof(uint32_t));
  writer.PutRaw(reinterpret_cast<const char*>(features.data()), 4 * features.size());
  for (const uint32_t feature : features)
    writer.PutRaw(reinterpret_cast<const char*>(model.Row(feature)), row);
  writer.Put(Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

Status DecodeFactors(std::string_view bytes, FactorModel* model) {
  ByteReader reader(bytes);
  std::string_view magic;
  uint32_t version = 0;
  uint32_t factors = 0;
  uint64_t count = 0;
  if (!reader.GetRaw(kMagic.size(), &magic).ok() || magic != kMagic)
    return Malformed("does not begin as one");
  if (!reader.Get(&version).ok() || version != kVersion)
    return Malformed(fmt::format("is of version {}, expected {}", version, kVersion));
  if (!reader.Get(&factors).ok() || !reader.Get(&count).ok())
    return Malformed("ends inside its header");
  if (factors < 1 || factors > kMaxFactors) return Malformed("has a wrong number of factors");
  const uint64_t end = model->linear.weights.size();
  const uint64_t row = uint64_t{factors} * sizeof(float);
  if (count > end) return Malformed("names more features than weights.bin");
  if (reader.remaining() != count * (sizeof(uint32_t) + row) + sizeof(uint32_t)) {
    return Malformed(fmt::format("has {} bytes behind its header, expected {}", reader.remaining(),
                                 count * (sizeof(uint32_t) + row) + sizeof(uint32_t)));
  }
  uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  if (sum != Crc32c(bytes.data(), bytes.size() - sizeof sum))
    return Malformed("has a wrong checksum");

  std::vector<float> v(end * factors);
  const char* const features = bytes.data() + kHeader;
  const char* const rows = features + sizeof(uint32_t) * count;
  uint64_t next = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t feature = 0;
    std::memcpy(&feature, features + sizeof feature * i, sizeof feature);
    if (feature < next || feature >= end) return Malformed("has features out of order");
    float* const to = v.data() + uint64_t{feature} * factors;
    std::memcpy(to, rows + row * i, row);
    if (!std::all_of(to, to + factors, [](float value) { return std::isfinite(value); }))
      return Malformed("has a factor that is no number");
    next = feature + 1ull;
  }
  model->factors = factors;
  model->v = std::move(v);
  return Status::Ok();
}

Result<SavedModel> SaveFactorModel(const std::filesystem::path& directory, const FactorModel& model,
                                   const json::object& facts, bool text) {
  if (model.factors == 0) return SaveLinearModel(directory, model.linear, facts, text);
  return SaveModelFiles(directory, [&](ModelFiles& files) -> Result<std::string> {
    TRY_ASSIGN(const std::string weights, files.Add("weights.bin", [&](int fd) {
      return WriteWithDigest(fd, EncodeLinearModel(model.linear));
    }));
    TRY_ASSIGN(const std::string factors, files.Add("factors.bin", [&](int fd) {
      return WriteWithDigest(fd, EncodeFactors(model));
    }));
    if (text) {
      TRY(files.Add("libfm.txt", [&](int fd) { return WriteWithDigest(fd, TextOf(model)); })
              .status());
    }
    TRY(files.AddFacts(kFactorFormat, facts));
    return Sha256Hex(weights + factors);
  });
}

Result<FactorModel> ReadFactorModel(const std::filesystem::path& given) {
  FactorModel model;
  TRY_ASSIGN(model.linear, ReadLinearModel(given));
  const std::filesystem::path path = given / "factors.bin";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return model;
  TRY_ASSIGN(const std::string bytes, ReadFile(path, kMaxFile));
  const Status decoded = DecodeFactors(bytes, &model);
  if (!decoded.ok()) return DataLoss(path.string() + ": " + decoded.message());
  return model;
}

}  // namespace shoal::model
