#include "data/parquet/encodings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shoal::data {
namespace {

Status Cut() { return DataLoss("its values end too early"); }

Result<uint64_t> TakeVarint(std::string_view* bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes->empty()) return Cut();
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return DataLoss("a number has more than ten bytes");
}

// `bits` (≤ 64) bits from bit `at` on, least significant first. Bytes behind the end are 0.
uint64_t BitsAt(std::string_view bytes, uint64_t at, int bits) {
  const auto byte = static_cast<size_t>(at / 8);
  const auto shift = static_cast<int>(at % 8);
  uint64_t low = 0;
  if (byte >= bytes.size()) return 0;
  std::memcpy(&low, bytes.data() + byte, std::min<size_t>(8, bytes.size() - byte));
  low >>= shift;
  if (shift + bits > 64 && byte + 8 < bytes.size())
    low |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[byte + 8])) << (64 - shift);
  return bits == 64 ? low : low & ((uint64_t{1} << bits) - 1);
}

template <typename T>
T ValueAt(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

double HalfToDouble(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const double fraction = (half & 1023) / 1024.0;
  double value = exponent == 0    ? std::ldexp(fraction, -14)
                 : exponent == 31 ? (fraction == 0 ? HUGE_VAL : NAN)
                                  : std::ldexp(1 + fraction, exponent - 15);
  return (half & 0x8000) != 0 ? -value : value;
}

// A decimal's digits: two's complement, most significant byte first.
double BigEndian(std::string_view bytes) {
  double value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    value = value * 256 + (i == 0 ? static_cast<double>(static_cast<int8_t>(byte)) : byte);
  }
  return value;
}

// Adds one value of each kind as the column means it.
class ValueTaker {
 public:
  ValueTaker(const ParquetColumn& column, ParquetValues* values)
      : column_(column), values_(*values), power_(std::pow(10.0, column.scale)) {}

  void Integer(int64_t value) {
    if (column_.meaning == ParquetMeaning::kDecimal) {
      values_.reals.push_back(static_cast<double>(value) / power_);
      return;
    }
    if (column_.meaning == ParquetMeaning::kUnsigned) {
      if (column_.type == ParquetType::kInt32) value &= 0xffff'ffff;
      value = std::max<int64_t>(0, value < 0 ? INT64_MAX : value);  // above 2^63: the largest
    }
    values_.integers.push_back(value);
  }
  void Real(double value) { values_.reals.push_back(value); }
  void Bytes(std::string_view bytes) {
    if (column_.meaning == ParquetMeaning::kDecimal) {
      values_.reals.push_back(BigEndian(bytes) / power_);
    } else if (column_.meaning == ParquetMeaning::kFloat16 && bytes.size() == 2) {
      values_.reals.push_back(HalfToDouble(ValueAt<uint16_t>(bytes, 0)));
    } else {
      values_.texts.push_back(bytes);
    }
  }
  // Nanoseconds since 1970 of a Julian day and the nanoseconds of the day.
  void Int96(std::string_view bytes) {
    constexpr int64_t kUnixDay = 2'440'588;
    const auto nanos = static_cast<uint64_t>(ValueAt<int64_t>(bytes, 0));
    const auto days = static_cast<uint64_t>(int64_t{ValueAt<int32_t>(bytes, 8)} - kUnixDay);
    values_.integers.push_back(static_cast<int64_t>(days * 86'400'000'000'000u + nanos));
  }

 private:
  const ParquetColumn& column_;
  ParquetValues& values_;
  const double power_;
};

size_t WidthOf(const ParquetColumn& column) {
  switch (column.type) {
    case ParquetType::kInt32:
    case ParquetType::kFloat:
      return 4;
    case ParquetType::kInt64:
    case ParquetType::kDouble:
      return 8;
    case ParquetType::kInt96:
      return 12;
    case ParquetType::kFixedBytes:
      return column.width;
    case ParquetType::kBoolean:
    case ParquetType::kBytes:
      break;
  }
  return 0;
}

void TakeFixed(const ParquetColumn& column, std::string_view bytes, ValueTaker* take) {
  switch (column.type) {
    case ParquetType::kInt32:
      return take->Integer(ValueAt<int32_t>(bytes, 0));
    case ParquetType::kInt64:
      return take->Integer(ValueAt<int64_t>(bytes, 0));
    case ParquetType::kFloat:
      return take->Real(static_cast<double>(ValueAt<float>(bytes, 0)));
    case ParquetType::kDouble:
      return take->Real(ValueAt<double>(bytes, 0));
    case ParquetType::kInt96:
      return take->Int96(bytes);
    default:
      return take->Bytes(bytes);
  }
}

Status Plain(const ParquetColumn& column, std::string_view bytes, size_t count,
             ParquetValues* values, ValueTaker* take) {
  if (column.type == ParquetType::kBoolean) {
    if (count > bytes.size() * 8) return Cut();
    for (size_t i = 0; i < count; ++i)
      values->integers.push_back(static_cast<uint8_t>(bytes[i / 8]) >> (i % 8) & 1);
    return Status::Ok();
  }
  if (column.type == ParquetType::kBytes) {
    for (size_t i = 0; i < count; ++i) {
      if (bytes.size() < 4) return Cut();
      const auto size = ValueAt<uint32_t>(bytes, 0);
      if (size > bytes.size() - 4) return Cut();
      take->Bytes(bytes.substr(4, size));
      bytes.remove_prefix(4 + size_t{size});
    }
    return Status::Ok();
  }
  const size_t width = WidthOf(column);
  if (count > bytes.size() / width) return Cut();
  for (size_t i = 0; i < count; ++i) TakeFixed(column, bytes.substr(i * width, width), take);
  return Status::Ok();
}

// DELTA_BINARY_PACKED. Moves `bytes` behind what was read.
Status Deltas(std::string_view* bytes, size_t expected, std::vector<int64_t>* values) {
  TRY_ASSIGN(const uint64_t block, TakeVarint(bytes));
  TRY_ASSIGN(const uint64_t minis, TakeVarint(bytes));
  TRY_ASSIGN(const uint64_t count, TakeVarint(bytes));
  TRY_ASSIGN(const uint64_t first, TakeVarint(bytes));
  if (minis == 0 || minis > 1024 || block == 0 || block > 1 << 20 || block % minis != 0)
    return DataLoss("its blocks of differences have a wrong size");
  const uint64_t per_mini = block / minis;
  if (per_mini % 8 != 0) return DataLoss("its blocks of differences have a wrong size");
  if (count < expected) return Cut();
  const auto zigzag = [](uint64_t v) { return (v >> 1) ^ (0 - (v & 1)); };
  uint64_t value = zigzag(first);
  if (count > 0 && expected > 0) values->push_back(static_cast<int64_t>(value));
  uint64_t done = std::min<uint64_t>(count, 1);
  while (done < count) {
    TRY_ASSIGN(const uint64_t least_coded, TakeVarint(bytes));
    const uint64_t least = zigzag(least_coded);
    if (bytes->size() < minis) return Cut();
    const std::string_view widths = bytes->substr(0, static_cast<size_t>(minis));
    bytes->remove_prefix(widths.size());
    for (uint64_t m = 0; m < minis && done < count; ++m) {
      const int bits = static_cast<uint8_t>(widths[static_cast<size_t>(m)]);
      if (bits > 64) return DataLoss("its differences have more than 64 bits");
      const uint64_t size = per_mini / 8 * static_cast<uint64_t>(bits);
      if (size > bytes->size()) return Cut();
      const std::string_view packed = bytes->substr(0, static_cast<size_t>(size));
      bytes->remove_prefix(packed.size());
      for (uint64_t i = 0; i < per_mini && done < count; ++i, ++done) {
        value += least + (bits == 0 ? 0 : BitsAt(packed, i * static_cast<uint64_t>(bits), bits));
        if (values->size() < expected) values->push_back(static_cast<int64_t>(value));
      }
      // More would be read from no bytes at all.
      if (bits == 0 && values->size() >= expected && count > expected) return Cut();
    }
  }
  return Status::Ok();
}

Status DeltaLengths(std::string_view* bytes, size_t count, std::vector<std::string_view>* texts) {
  std::vector<int64_t> lengths;
  TRY(Deltas(bytes, count, &lengths));
  for (const int64_t length : lengths) {
    if (length < 0 || static_cast<uint64_t>(length) > bytes->size()) return Cut();
    texts->push_back(bytes->substr(0, static_cast<size_t>(length)));
    bytes->remove_prefix(static_cast<size_t>(length));
  }
  return texts->size() == count ? Status::Ok() : Cut();
}

// Each text begins with a part of the one before.
Status DeltaTexts(std::string_view bytes, size_t count, ParquetValues* values, ValueTaker* take) {
  constexpr size_t kMostText = 256u << 20;  // of a page
  std::vector<int64_t> prefixes;
  std::vector<std::string_view> suffixes;
  TRY(Deltas(&bytes, count, &prefixes));
  TRY(DeltaLengths(&bytes, count, &suffixes));
  if (prefixes.size() != count) return Cut();
  std::string_view last;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    if (prefixes[i] < 0 || static_cast<uint64_t>(prefixes[i]) > last.size()) return Cut();
    const std::string_view prefix = last.substr(0, static_cast<size_t>(prefixes[i]));
    total += prefix.size() + suffixes[i].size();
    if (total > kMostText) return DataLoss("its texts are longer than 256 MiB");
    std::string& text = values->kept.emplace_back(prefix);
    text += suffixes[i];
    last = text;
    take->Bytes(text);
  }
  return Status::Ok();
}

Status SplitBytes(const ParquetColumn& column, std::string_view bytes, size_t count,
                  ParquetValues* values, ValueTaker* take) {
  const size_t width = WidthOf(column);
  if (width == 0) return DataLoss("its values have no fixed width, which the encoding needs");
  if (count > bytes.size() / width) return Cut();
  std::string& joined = values->kept.emplace_back(count * width, '\0');
  for (size_t b = 0; b < width; ++b) {
    for (size_t i = 0; i < count; ++i) joined[i * width + b] = bytes[b * count + i];
  }
  for (size_t i = 0; i < count; ++i)
    TakeFixed(column, std::string_view(joined).substr(i * width, width), take);
  return Status::Ok();
}

}  // namespace

Status DecodeRuns(std::string_view bytes, int bits, size_t count, std::vector<uint32_t>* values) {
  if (bits < 0 || bits > 32) return DataLoss("its numbers have more than 32 bits");
  const size_t end = values->size() + count;
  values->reserve(end);
  while (values->size() < end) {
    TRY_ASSIGN(const uint64_t head, TakeVarint(&bytes));
    const size_t left = end - values->size();
    if ((head & 1) == 0) {
      const auto width = static_cast<size_t>((bits + 7) / 8);
      if (bytes.size() < width || head >> 1 == 0) return Cut();
      const auto value =
          static_cast<uint32_t>(BitsAt(bytes.substr(0, width), 0, 8 * static_cast<int>(width)));
      bytes.remove_prefix(width);
      values->resize(values->size() + static_cast<size_t>(std::min<uint64_t>(left, head >> 1)),
                     value);
      continue;
    }
    const uint64_t groups = head >> 1;
    if (groups == 0) return Cut();
    // Writers may leave out bytes of the last group that hold no value.
    const size_t numbers =
        static_cast<size_t>(std::min<uint64_t>(left, groups > left ? left : groups * 8));
    const size_t needed = (numbers * static_cast<size_t>(bits) + 7) / 8;
    if (needed > bytes.size()) return Cut();
    for (size_t i = 0; i < numbers; ++i)
      values->push_back(
          static_cast<uint32_t>(BitsAt(bytes, i * static_cast<uint64_t>(bits), bits)));
    const uint64_t stored =
        groups > bytes.size() ? bytes.size() : groups * static_cast<uint64_t>(bits);
    bytes.remove_prefix(static_cast<size_t>(std::min<uint64_t>(bytes.size(), stored)));
  }
  return Status::Ok();
}

Status DecodeValues(const ParquetColumn& column, int encoding, std::string_view bytes, size_t count,
                    ParquetValues* values) {
  ValueTaker take(column, values);
  switch (encoding) {
    case 0:
      return Plain(column, bytes, count, values, &take);
    case 3: {
      if (column.type != ParquetType::kBoolean) break;
      if (bytes.size() < 4) return Cut();
      std::vector<uint32_t> numbers;
      TRY(DecodeRuns(bytes.substr(4), 1, count, &numbers));
      for (const uint32_t number : numbers) values->integers.push_back(number & 1);
      return Status::Ok();
    }
    case 5: {
      if (column.type != ParquetType::kInt32 && column.type != ParquetType::kInt64) break;
      std::vector<int64_t> numbers;
      TRY(Deltas(&bytes, count, &numbers));
      if (numbers.size() != count) return Cut();
      for (const int64_t number : numbers) {
        take.Integer(column.type == ParquetType::kInt32 ? static_cast<int32_t>(number) : number);
      }
      return Status::Ok();
    }
    case 6: {
      if (column.type != ParquetType::kBytes) break;
      std::vector<std::string_view> texts;
      TRY(DeltaLengths(&bytes, count, &texts));
      for (const std::string_view text : texts) take.Bytes(text);
      return Status::Ok();
    }
    case 7:
      if (column.type != ParquetType::kBytes && column.type != ParquetType::kFixedBytes) break;
      return DeltaTexts(bytes, count, values, &take);
    case 9:
      return SplitBytes(column, bytes, count, values, &take);
    default:
      return InvalidArgument(fmt::format("its encoding {} is not read", encoding));
  }
  return DataLoss(fmt::format("its encoding {} does not fit its type", encoding));
}

}  // namespace shoal::data
