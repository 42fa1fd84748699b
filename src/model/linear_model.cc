#include "model/linear_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/file.h"
#include "base/id.h"
#include "model/model_files.h"

namespace shoal::model {
namespace {

constexpr std::string_view kMagic = "SHOALLIN";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kClassesVersion = 2;  // the header goes on: number of classes, their biases
constexpr uint32_t kNormalize = 1;
constexpr size_t kHeader = 40;  // magic, version, flags, hash bits, bias, end, count
constexpr size_t kMaxFile = size_t{40} << 30;

Status Malformed(std::string_view what) {
  return InvalidArgument(fmt::format("weights.bin {}", what));
}

struct Header {
  uint32_t flags = 0;
  uint32_t hash_bits = 0;
  float bias = 0;
  uint64_t end = 0;
  uint64_t count = 0;
  std::vector<float> biases;
  size_t size() const { return kHeader + (biases.empty() ? 0 : 4 + 4 * biases.size()); }
};

Status ReadBiases(ByteReader* reader, std::vector<float>* biases) {
  uint32_t classes = 0;
  TRY(reader->Get(&classes));
  if (classes < 2 || classes > kMaxModelClasses)
    return Malformed(fmt::format("has {} classes, expected 2 to {}", classes, kMaxModelClasses));
  for (uint32_t c = 0; c < classes; ++c) {
    float bias = 0;
    TRY(reader->Get(&bias));
    if (!std::isfinite(bias)) return Malformed("has a bias that is no number");
    biases->push_back(bias);
  }
  return Status::Ok();
}

Result<Header> ReadHeader(ByteReader* reader, uint64_t max_unbacked) {
  std::string_view magic;
  uint32_t version = 0;
  Header header;
  if (!reader->GetRaw(kMagic.size(), &magic).ok() || magic != kMagic)
    return Malformed("does not begin as one");
  if (!reader->Get(&version).ok() || version < kVersion || version > kClassesVersion) {
    return Malformed(
        fmt::format("is of version {}, expected {} or {}", version, kVersion, kClassesVersion));
  }
  TRY(reader->Get(&header.flags));
  TRY(reader->Get(&header.hash_bits));
  TRY(reader->Get(&header.bias));
  TRY(reader->Get(&header.end));
  TRY(reader->Get(&header.count));
  if (version == kClassesVersion) TRY(ReadBiases(reader, &header.biases));
  if ((header.flags & ~kNormalize) != 0) return Malformed("has flags that are not known");
  if (header.hash_bits > 31) return Malformed("has more than 31 hash bits");
  if (!std::isfinite(header.bias)) return Malformed("has a bias that is no number");
  if (header.end > kMaxLinearWeights || header.count > header.end)
    return Malformed("names more weights than there can be");
  if (!header.biases.empty() && header.end % header.biases.size() != 0)
    return Malformed("has not as many weights for each class");
  if (header.end > max_unbacked && header.end / 64 > header.count)
    return Malformed("names features far beyond the weights that it holds");
  return header;
}

std::string TextOf(const LinearModel& model) {
  std::string text = fmt::format("bias {}\n", model.bias);
  if (!model.biases.empty()) text = fmt::format("bias {}\n", fmt::join(model.biases, " "));
  for (size_t i = 0; i < model.weights.size(); ++i) {
    if (model.weights[i] != 0)
      fmt::format_to(std::back_inserter(text), "{} {}\n", i, model.weights[i]);
  }
  return text;
}

Result<ZeroedFloats> MakeWeights(uint64_t count) {
  try {
    return ZeroedFloats(count);
  } catch (const std::exception&) {  // bad_alloc, length_error
    return Malformed(fmt::format("names features up to {}, for which there is no memory ({} MiB)",
                                 count, count >> 18));
  }
}

Result<std::string> WriteWithDigest(int fd, const std::string& bytes) {
  TRY(WriteAll(fd, bytes));
  return Sha256Hex(bytes);
}

}  // namespace

std::string EncodeLinearModel(const LinearModel& model) {
  uint64_t count = 0;
  for (const float weight : model.weights) count += weight != 0;
  const bool classes = !model.biases.empty();
  const size_t header = kHeader + (classes ? 4 + 4 * model.biases.size() : 0);
  std::string bytes;
  bytes.reserve(header + 8 * count + 4);
  ByteWriter writer(&bytes);
  writer.PutRaw(kMagic.data(), kMagic.size());
  writer.Put(classes ? kClassesVersion : kVersion);
  writer.Put(model.normalize ? kNormalize : 0u);
  writer.Put(model.hash_bits);
  writer.Put(model.bias);
  writer.Put<uint64_t>(model.weights.size());
  writer.Put(count);
  if (classes) {
    writer.Put(static_cast<uint32_t>(model.biases.size()));
    for (const float bias : model.biases) writer.Put(bias);
  }
  bytes.resize(header + 8 * count);
  char* feature = bytes.data() + header;
  char* value = feature + 4 * count;
  for (size_t i = 0; i < model.weights.size(); ++i) {
    if (model.weights[i] == 0) continue;
    const auto number = static_cast<uint32_t>(i);
    std::memcpy(feature, &number, 4);
    std::memcpy(value, &model.weights[i], 4);
    feature += 4;
    value += 4;
  }
  writer.Put(Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

Result<LinearModel> DecodeLinearModel(std::string_view bytes, uint64_t max_unbacked) {
  ByteReader reader(bytes);
  Result<Header> header = ReadHeader(&reader, max_unbacked);
  if (!header.ok()) {
    if (header.status().code() == Code::kOutOfRange) return Malformed("ends inside its header");
    return header.status();
  }
  if (reader.remaining() != 8 * header->count + 4) {
    return Malformed(fmt::format("has {} bytes behind its header, expected {}", reader.remaining(),
                                 8 * header->count + 4));
  }
  uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - 4, 4);
  if (sum != Crc32c(bytes.data(), bytes.size() - 4)) return Malformed("has a wrong checksum");

  LinearModel model;
  model.hash_bits = header->hash_bits;
  model.normalize = (header->flags & kNormalize) != 0;
  model.bias = header->bias;
  model.biases = header->biases;
  TRY_ASSIGN(model.weights, MakeWeights(header->end));
  const char* const features = bytes.data() + header->size();
  const char* const values = features + 4 * header->count;
  uint64_t next = 0;
  for (uint64_t i = 0; i < header->count; ++i) {
    uint32_t feature = 0;
    float value = 0;
    std::memcpy(&feature, features + 4 * i, 4);
    std::memcpy(&value, values + 4 * i, 4);
    if (feature < next || feature >= header->end) return Malformed("has features out of order");
    if (!std::isfinite(value)) return Malformed("has a weight that is no number");
    model.weights[feature] = value;
    next = feature + 1ull;
  }
  return model;
}

Status CheckFinite(const LinearModel& model) {
  const auto finite = [](float weight) { return std::isfinite(weight); };
  if (finite(model.bias) && std::all_of(model.biases.begin(), model.biases.end(), finite) &&
      std::all_of(model.weights.begin(), model.weights.end(), finite))
    return Status::Ok();
  return FailedPrecondition(
      "the training diverged: a weight is no number any more; nothing is saved. Use a smaller "
      "alpha, or normalize the examples");
}

Result<SavedModel> SaveLinearModel(const std::filesystem::path& directory, const LinearModel& model,
                                   const json::object& metadata, bool text) {
  TRY(CheckFinite(model));
  return SaveModelFiles(directory, [&](ModelFiles& files) -> Result<std::string> {
    TRY_ASSIGN(std::string digest, AddLinearFiles(files, model, text));
    TRY(files.AddMetadata(kLinearFormat, metadata));
    return digest;
  });
}

Result<std::string> AddLinearFiles(ModelFiles& files, const LinearModel& model, bool text) {
  TRY_ASSIGN(std::string digest, files.Add("weights.bin", [&](int fd) {
    return WriteWithDigest(fd, EncodeLinearModel(model));
  }));
  if (text) {
    TRY(files.Add("weights.txt", [&](int fd) { return WriteWithDigest(fd, TextOf(model)); })
            .status());
  }
  return digest;
}

Result<LinearModel> ReadLinearModel(const std::filesystem::path& given) {
  std::error_code ignored;
  const bool whole = std::filesystem::is_directory(given, ignored);
  const std::filesystem::path path = whole ? given / "weights.bin" : given;
  if (!std::filesystem::exists(path, ignored))
    return NotFound("there is no linear model in " + given.string() +
                    "; expected the --output of `shoal train logistic`, fm or ffm");
  if (!std::filesystem::is_regular_file(path, ignored))
    return InvalidArgument(path.string() + " is not a regular file");
  TRY_ASSIGN(const std::string bytes, ReadFile(path, kMaxFile));
  Result<LinearModel> model = DecodeLinearModel(bytes, kMaxLinearWeights);
  if (!model.ok()) return DataLoss(path.string() + ": " + model.status().message());
  if (whole) TRY(CheckModelFile(given, "weights.bin", bytes));
  return model;
}

}  // namespace shoal::model
