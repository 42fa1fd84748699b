#include "model/factor_model.h"

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
constexpr uint32_t kFieldVersion = 2;  // the header goes on: fields, flags
constexpr uint32_t kFolds = 1;
constexpr size_t kHeader = 24;  // magic, version, factors, count
constexpr size_t kFieldHeader = kHeader + 8;
constexpr size_t kMaxFile = size_t{256} << 30;

Status Malformed(std::string_view what) {
  return InvalidArgument(fmt::format("factors.bin {}", what));
}

bool IsZero(const float* row, uint32_t factors) {
  return std::all_of(row, row + factors, [](float value) { return value == 0; });
}

// The format of libFM (Rendle, libFM 1.4.2 manual), zeros included.
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

// The format of xLearn (xlearn 0.40, Model::serialize_to_txt); features without vectors are left
// out.
std::string FieldTextOf(const FactorModel& model) {
  std::string text = fmt::format("bias: {}\n", model.linear.bias);
  for (size_t i = 0; i < model.linear.weights.size(); ++i)
    fmt::format_to(std::back_inserter(text), "i_{}: {}\n", i, model.linear.weights[i]);
  for (uint64_t i = 0; i < model.linear.weights.size(); ++i) {
    if (IsZero(model.Row(i), model.width())) continue;
    for (uint32_t field = 0; field < model.fields; ++field) {
      const float* const v = model.Row(i) + uint64_t{field} * model.factors;
      fmt::format_to(std::back_inserter(text), "v_{}_{}: {}\n", i, field,
                     fmt::join(v, v + model.factors, " "));
    }
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
    if (!IsZero(model.Row(i), model.width())) features.push_back(static_cast<uint32_t>(i));
  }
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.PutRaw(kMagic.data(), kMagic.size());
  writer.Put(model.fields == 0 ? kVersion : kFieldVersion);
  writer.Put(model.factors);
  writer.Put<uint64_t>(features.size());
  if (model.fields > 0) {
    writer.Put(model.fields);
    writer.Put(model.folds_fields ? kFolds : 0u);
  }
  const size_t row = model.width() * sizeof(float);
  bytes.reserve(kFieldHeader + features.size() * (sizeof(uint32_t) + row) + sizeof(uint32_t));
  writer.PutRaw(reinterpret_cast<const char*>(features.data()), 4 * features.size());
  for (const uint32_t feature : features)
    writer.PutRaw(reinterpret_cast<const char*>(model.Row(feature)), row);
  writer.Put(Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

namespace {

// The header before the features.
struct Header {
  uint32_t version = 0;
  uint32_t factors = 0;
  uint64_t count = 0;
  uint32_t fields = 0;
  uint32_t flags = 0;
  size_t size() const { return version == kVersion ? kHeader : kFieldHeader; }
  uint64_t row() const { return uint64_t{std::max(fields, 1u)} * factors * sizeof(float); }
};

Result<Header> DecodeHeader(ByteReader& reader, uint64_t end) {
  Header header;
  std::string_view magic;
  if (!reader.GetRaw(kMagic.size(), &magic).ok() || magic != kMagic)
    return Malformed("does not begin as one");
  if (!reader.Get(&header.version).ok() || header.version < kVersion ||
      header.version > kFieldVersion) {
    return Malformed(fmt::format("is of version {}, expected {} or {}", header.version, kVersion,
                                 kFieldVersion));
  }
  if (!reader.Get(&header.factors).ok() || !reader.Get(&header.count).ok())
    return Malformed("ends inside its header");
  if (header.factors < 1 || header.factors > kMaxFactors)
    return Malformed("has a wrong number of factors");
  if (header.count > end) return Malformed("names more features than weights.bin");
  if (header.version == kVersion) return header;
  if (!reader.Get(&header.fields).ok() || !reader.Get(&header.flags).ok())
    return Malformed("ends inside its header");
  if (header.fields < 1 || header.fields > kMaxFields ||
      header.row() > kMaxFieldFactors * sizeof(float))
    return Malformed("has a wrong number of fields");
  if (header.flags > kFolds) return Malformed("has unknown flags");
  return header;
}

// Decodes the rows of `bytes` to their features.
Status DecodeRows(std::string_view bytes, const Header& header, ZeroedFloats* v, uint64_t end) {
  const char* const features = bytes.data() + header.size();
  const char* const rows = features + sizeof(uint32_t) * header.count;
  const uint64_t row = header.row();
  uint64_t next = 0;
  for (uint64_t i = 0; i < header.count; ++i) {
    uint32_t feature = 0;
    std::memcpy(&feature, features + sizeof feature * i, sizeof feature);
    if (feature < next || feature >= end) return Malformed("has features out of order");
    float* const to = v->data() + feature * (row / sizeof(float));
    std::memcpy(to, rows + row * i, row);
    if (!std::all_of(to, to + row / sizeof(float),
                     [](float value) { return std::isfinite(value); }))
      return Malformed("has a factor that is no number");
    next = feature + 1ull;
  }
  return Status::Ok();
}

Result<ZeroedFloats> MakeZeroed(uint64_t floats) {
  try {
    return ZeroedFloats(floats);
  } catch (const std::exception&) {  // bad_alloc, length_error
    return Malformed(fmt::format("stands for {} MiB, for which there is no memory", floats >> 18));
  }
}

}  // namespace

Status DecodeFactors(std::string_view bytes, FactorModel* model) {
  ByteReader reader(bytes);
  const uint64_t end = model->linear.weights.size();
  TRY_ASSIGN(const Header header, DecodeHeader(reader, end));
  const uint64_t expected = header.count * (sizeof(uint32_t) + header.row()) + sizeof(uint32_t);
  if (reader.remaining() != expected) {
    return Malformed(
        fmt::format("has {} bytes behind its header, expected {}", reader.remaining(), expected));
  }
  uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  if (sum != Crc32c(bytes.data(), bytes.size() - sizeof sum))
    return Malformed("has a wrong checksum");
  TRY_ASSIGN(ZeroedFloats v, MakeZeroed(end * (header.row() / sizeof(float))));
  TRY(DecodeRows(bytes, header, &v, end));
  model->factors = header.factors;
  model->fields = header.fields;
  model->folds_fields = header.flags == kFolds;
  model->v = std::move(v);
  return Status::Ok();
}

namespace {

Status AddOptimizerState(ModelFiles& files, const FactorModel& model) {
  if (model.optimizer.width == 0) return Status::Ok();
  return files
      .Add("optimizer.bin",
           [&](int fd) { return WriteWithDigest(fd, EncodeOptimizerState(model)); })
      .status();
}

}  // namespace

Result<SavedModel> SaveFactorModel(const std::filesystem::path& directory, const FactorModel& model,
                                   const json::object& metadata, bool text) {
  TRY(CheckFinite(model.linear));
  if (model.factors == 0) {
    return SaveModelFiles(directory, [&](ModelFiles& files) -> Result<std::string> {
      TRY_ASSIGN(std::string digest, AddLinearFiles(files, model.linear, text));
      TRY(AddOptimizerState(files, model));
      TRY(files.AddMetadata(kLinearFormat, metadata));
      return digest;
    });
  }
  if (!std::all_of(model.v.begin(), model.v.end(), [](float v) { return std::isfinite(v); })) {
    return FailedPrecondition(
        "the training diverged: a factor is no number any more; nothing is saved. Use a smaller "
        "factor_alpha, or normalize the examples");
  }
  return SaveModelFiles(directory, [&](ModelFiles& files) -> Result<std::string> {
    TRY_ASSIGN(const std::string weights, files.Add("weights.bin", [&](int fd) {
      return WriteWithDigest(fd, EncodeLinearModel(model.linear));
    }));
    TRY_ASSIGN(const std::string factors, files.Add("factors.bin", [&](int fd) {
      return WriteWithDigest(fd, EncodeFactors(model));
    }));
    if (text) {
      const bool fields = model.fields > 0;
      TRY(files
              .Add(fields ? "xlearn.txt" : "libfm.txt",
                   [&](int fd) {
                     return WriteWithDigest(fd, fields ? FieldTextOf(model) : TextOf(model));
                   })
              .status());
    }
    TRY(AddOptimizerState(files, model));
    TRY(files.AddMetadata(model.fields > 0 ? kFieldFactorFormat : kFactorFormat, metadata));
    return Sha256Hex(weights + factors);
  });
}

Result<FactorModel> ReadFactorModel(const std::filesystem::path& given) {
  FactorModel model;
  TRY_ASSIGN(model.linear, ReadLinearModel(given));
  const std::filesystem::path path = given / "factors.bin";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    const Result<json::object> metadata = ReadModelMetadata(given);
    const std::string format = metadata.ok() ? GetStringOr(*metadata, "format", "") : "";
    if (format != kFactorFormat && format != kFieldFactorFormat) return model;
    return DataLoss(path.string() +
                    " is missing, and the model cannot predict without it; train "
                    "the model again, or copy it whole");
  }
  TRY_ASSIGN(const std::string bytes, ReadFile(path, kMaxFile));
  const Status decoded = DecodeFactors(bytes, &model);
  if (!decoded.ok()) return DataLoss(path.string() + ": " + decoded.message());
  TRY(CheckModelFile(given, "factors.bin", bytes));
  return model;
}

}  // namespace shoal::model
