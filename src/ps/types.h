// The parameter server's vocabulary: tables, optimizers, consistency, and views of rows in the
// caller's memory.
//
// Used by client.h, server.h and all trainers. Values are f32, rows are `dim` floats
// wide, keys are 64-bit. The key of a dense table is its row number.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace shoal::ps {

using Key = uint64_t;

// Bounds of what a table may be; a frame or a caller beyond them is refused.
inline constexpr uint32_t kMaxDim = 1u << 20;
inline constexpr uint64_t kMaxDenseRows = 1ull << 40;
inline constexpr size_t kMaxNameBytes = 256;
inline constexpr size_t kMaxProgressBytes = 1u << 20;

enum class KeySpace : uint8_t { kDense = 0, kSparse = 1 };

// The effect of a pushed row g on the stored row w, element by element:
//   kAdd       w += g
//   kSgd       w -= lr * g
//   kAdagrad   s += g * g;  w -= lr * g / (sqrt(s) + eps)      (Duchi et al. 2011; s starts at 0)
//   kMomentum  v = momentum * v + g;  w -= lr * v              (Polyak 1964; v starts at 0)
//   kAdam      t += 1;  m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g * g;
//              w -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
//              (Kingma & Ba 2015, algorithm 1; t counts the pushes to this row, all start at 0)
//   kFtrl      sigma = (sqrt(n + g * g) - sqrt(n)) / lr;  z += g - sigma * w;  n += g * g;
//              w = |z| <= l1 ? 0 : -(z - sign(z) * l1) / ((beta + sqrt(n)) / lr + l2)
//              (McMahan et al. 2013, algorithm 1, where lr is called alpha; n starts at 0, z such
//              that w is the row's first value)
//   kCombine   u = c - c' (mod 2^24), where c is the last element of w and c' that of g;
//              w += g / (1 + u)^2 but for its last element, which is c + 1 from then on
//              (c counts the pushes of the row; c' is what the pusher had pulled before it made g:
//              so u pushes it had not seen. However many pushes have not seen each other, together
//              they move a row by less than twice what one of them would, docs/adr/0184)
//   kFunction  what the server function `function` does with w, g and `state_planes` planes of
//              state (row_function.h)
enum class OptimizerKind : uint8_t {
  kAdd = 0,
  kSgd = 1,
  kAdagrad = 2,
  kMomentum = 3,
  kAdam = 4,
  kFtrl = 5,
  kFunction = 6,
  kCombine = 7,
};
inline constexpr uint8_t kOptimizerKinds = 8;
inline constexpr uint32_t kMaxStatePlanes = 8;
inline constexpr size_t kMaxFunctionArgument = 64u << 10;

// Only the fields that the formula of `kind` names mean something, and only they travel.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdd;
  float lr = 0.1f;            // kFtrl: > 0
  float eps = 1e-6f;          // kAdagrad, kAdam: > 0, else a gradient of 0 would give 0 / 0
  float momentum = 0.9f;      // [0, 1)
  float beta1 = 0.9f;         // [0, 1)
  float beta2 = 0.999f;       // [0, 1)
  float beta = 1.0f;          // >= 0, and beta + l2 > 0
  float l1 = 0.0f;            // >= 0
  float l2 = 0.0f;            // >= 0
  std::string function = {};  // 1..kMaxNameBytes bytes
  std::string argument = {};  // at most kMaxFunctionArgument bytes; what they mean is its affair
  uint32_t state_planes = 0;  // at most kMaxStatePlanes; they start at 0
  bool operator==(const OptimizerSpec&) const = default;
};

// Of kCombine: counts are whole numbers below this, which an f32 holds exactly.
inline constexpr uint32_t kCombineCounts = 1u << 24;
// The count in the last element of a row or of a pushed row; 0 for what is no count.
uint32_t CombineCount(float element);
// The share of a pushed row that is taken, by the counts before it was pushed and when it was made.
float CombineShare(uint32_t count, uint32_t seen);

// The encoding of row values on the wire. Servers always hold and compute f32.
//   kBf16  the upper 16 bits of an f32, rounded to nearest even: off by at most 2^-8 of a value
//   kInt8  a row is one bf16 scale and a signed byte an element: off by at most half a scale, which
//          is 1/127 of the row's largest absolute value, rounded up
enum class ValueType : uint8_t { kF32 = 0, kBf16 = 1, kInt8 = 2 };

// Of the rows of one handle or request. What a push loses by rounding its caller can keep and push
// later: see Client::Push with Rows.
struct Wire {
  ValueType push = ValueType::kF32;
  ValueType pull = ValueType::kF32;  // kInt8 rounds anew at every pull: noise, not drift
  bool operator==(const Wire&) const = default;
};

// Bytes of one row of `dim` values on the wire.
constexpr size_t WireRowBytes(ValueType type, size_t dim) {
  switch (type) {
    case ValueType::kF32:
      return dim * 4;
    case ValueType::kBf16:
      return dim * 2;
    case ValueType::kInt8:
      return 2 + dim;
  }
  return 0;
}

// Values of rows before the first push. kUniform draws every element from [lo, hi) as a
// function of (seed, key, element) alone: the same rows whatever the number of servers.
enum class InitializerKind : uint8_t { kZeros = 0, kUniform = 1 };

struct InitializerSpec {
  InitializerKind kind = InitializerKind::kZeros;
  float lo = 0;
  float hi = 0;
  uint64_t seed = 0;
  bool operator==(const InitializerSpec&) const = default;
};

struct TableSpec {
  std::string name;                       // 1..kMaxNameBytes bytes, unique in the job
  KeySpace key_space = KeySpace::kDense;  //
  uint64_t rows = 0;                      // dense: keys are [0, rows); sparse: ignored
  uint32_t dim = 0;                       // floats a row, 1..kMaxDim
  OptimizerSpec optimizer;                //
  InitializerSpec initializer;            //
  bool operator==(const TableSpec&) const = default;
};

// InvalidArgument names the field that is out of its bounds.
Status Validate(const OptimizerSpec& spec);
Status Validate(const TableSpec& spec);

// How far a worker may run ahead of the slowest one; see Client::Clock.
struct Consistency {
  enum class Kind : uint8_t { kBsp = 0, kSsp = 1, kAsp = 2 };
  Kind kind = Kind::kAsp;
  uint32_t staleness = 0;  // clocks; used by kSsp only

  static Consistency Bsp() { return {Kind::kBsp, 0}; }
  static Consistency Ssp(uint32_t staleness) { return {Kind::kSsp, staleness}; }
  static Consistency Asp() { return {Kind::kAsp, 0}; }
};

// n rows to read in the caller's memory: base + i * stride (in floats), or, where `rows` is set,
// rows[i]. Does not own anything.
struct ConstRows {
  const float* base = nullptr;
  size_t stride = 0;
  const float* const* rows = nullptr;

  ConstRows() = default;
  ConstRows(const float* base_in, size_t stride_in) : base(base_in), stride(stride_in) {}
  explicit ConstRows(const float* const* rows_in) : rows(rows_in) {}
  const float* operator[](size_t i) const { return rows != nullptr ? rows[i] : base + i * stride; }
  bool empty() const { return base == nullptr && rows == nullptr; }
};

// The same to write.
struct Rows {
  float* base = nullptr;
  size_t stride = 0;
  float* const* rows = nullptr;

  Rows() = default;
  Rows(float* base_in, size_t stride_in) : base(base_in), stride(stride_in) {}
  explicit Rows(float* const* rows_in) : rows(rows_in) {}
  float* operator[](size_t i) const { return rows != nullptr ? rows[i] : base + i * stride; }
  bool empty() const { return base == nullptr && rows == nullptr; }
  ConstRows view() const { return rows != nullptr ? ConstRows(rows) : ConstRows(base, stride); }
};

// A table as a client knows it: made by Client::CreateTable, cheap to copy, valid while the Client
// lives.
struct TableRef {
  uint32_t id = 0;
  uint32_t dim = 0;
  KeySpace key_space = KeySpace::kDense;
  uint64_t rows = 0;
  Wire wire = {};  // the caller's to set, on its own copy; it may change from request to request
};

// Totals of a client or a server since it started.
struct Counters {
  uint64_t rows_pushed = 0;
  uint64_t rows_pulled = 0;
  uint64_t bytes_pushed = 0;  // of row values as they travel, without keys and frames
  uint64_t bytes_pulled = 0;
  uint64_t key_bytes = 0;      // client: of keys as they travel
  uint64_t wire_bytes_in = 0;  // over TCP, everything
  uint64_t wire_bytes_out = 0;
  uint64_t requests = 0;             // row operations: parts of at most a frame
  uint64_t duplicates = 0;           // server: resent requests that were not applied again
  uint64_t refused_connections = 0;  // server: wrong token, garbage, bounds
};

// A key that a server is asked for more often than others, estimated from a sample.
struct HotKey {
  std::string table;
  Key key = 0;
  uint64_t rows = 0;  // times, about
  double share = 0;   // of all rows that the server was asked for
};

}  // namespace shoal::ps
