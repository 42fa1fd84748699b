// Server functions: users' C++ that runs over rows where they are stored, called by clients by name
// (Client::Call) or as a table's optimizer (OptimizerKind::kFunction).
//
// A server gets its functions when it is started (ServerOptions::functions); all servers of a job
// must have the same ones.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ps/storage/row_layout.h"
#include "ps/types.h"

namespace shoal::ps {

// Some rows of one request, in its order; a request over many rows comes in several batches. A key
// that was named twice is there twice, with the same row.
struct FunctionBatch {
  std::span<const Key> keys;
  float* const* rows = nullptr;          // by key: `dim` values to read and write
  const float* const* deltas = nullptr;  // by key: `dim` values that came with it; null: none came
  size_t dim = 0;
  std::string_view argument;  // the caller's, or OptimizerSpec::argument; valid during the call
  RowLayout layout;

  size_t size() const { return keys.size(); }
  // Plane `plane` of row i's state, `dim` floats that began as zeros; tables of kFunction have
  // OptimizerSpec::state_planes of them.
  float* state(size_t i, size_t plane = 0) const { return rows[i] + layout.stride * (1 + plane); }
};

// Runs in a server's thread under its lane's lock: be short, do not block, throw nothing but
// std::bad_alloc. The result must depend on the batch alone: while a checkpoint is taken, the same
// batch may be run again on the rows of the checkpoint, and a server's replica runs it too. An
// error refuses the request, but what was written until then stays written: check first.
using RowFunction = std::function<Status(const FunctionBatch&)>;

class Functions {
 public:
  // A name of 1..kMaxNameBytes bytes that is not taken.
  Status Add(std::string name, RowFunction function);
  // Null if there is none.
  const RowFunction* Find(std::string_view name) const;

 private:
  std::map<std::string, RowFunction, std::less<>> functions_;
};

}  // namespace shoal::ps
