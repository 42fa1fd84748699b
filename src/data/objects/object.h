// Objects: named bytes somewhere, which are read in ranges and written whole. Files of this
// machine, HTTP(S) servers, S3 and HDFS implement these interfaces; Corpus and `shoal data` use
// them through ObjectStores (object_stores.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/objects/object_uri.h"

namespace shoal::data {

inline constexpr size_t kMaxNewObject = 1 << 20;

struct ObjectInfo {
  std::string uri;
  uint64_t bytes = 0;
  // Equal for equal content: the ETag or the like. Empty: the source tells none.
  std::string version;
  // Of the last change, as the source writes it; for people. May be empty.
  std::string modified;
};

// One object in the version that was there when it was opened. Thread-safe.
class Object {
 public:
  virtual ~Object() = default;
  virtual const ObjectInfo& info() const = 0;
  // Reads up to `size` bytes at `offset`; fewer only at the object's end. Repeats what may succeed
  // later. DataLoss naming the object if it has another version now or ends early; NotFound,
  // PermissionDenied, Unauthenticated, Unavailable, one sentence with the URI.
  virtual Result<size_t> ReadAt(uint64_t offset, char* to, size_t size) const = 0;
};

// Writes one object, which appears whole by Finish or not at all. Not thread-safe. Destroyed before
// Finish, it removes what it wrote.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;
  virtual Status Append(std::string_view bytes) = 0;
  virtual Result<ObjectInfo> Finish() = 0;
};

// Called for each listed object. An error ends the listing, which returns it.
using VisitObject = std::function<Status(const ObjectInfo&)>;

// The objects of one place: a bucket, a server. Thread-safe.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  // Looks it up and pins its version. NotFound and the other errors of Object::ReadAt.
  virtual Result<std::shared_ptr<const Object>> Open(const ObjectUri& uri) = 0;
  // The objects whose path begins with that of `prefix`, in any order, also those in folders
  // below. Memory is bounded by one page of the source. Unimplemented where there is no listing.
  virtual Status List(const ObjectUri& prefix, const VisitObject& visit) = 0;
  // Replaces an existing object when it is finished. Unimplemented where nothing can be written.
  virtual Result<std::unique_ptr<ObjectWriter>> Create(const ObjectUri& uri) = 0;
  // Makes a short object (kMaxNewObject) whole, if there is none: of several processes that try one
  // succeeds, the others get AlreadyExists. `bytes` should be unlike those of any other process, so
  // that a repeated request recognizes its own object. Unimplemented where the store has no such
  // operation.
  virtual Status CreateNew(const ObjectUri& uri, std::string_view /*bytes*/) {
    return Unimplemented(uri.text() + ": this store has no operation that makes only new objects");
  }
  // OK also if it does not exist. Unimplemented where nothing can be removed.
  virtual Status Remove(const ObjectUri& uri) {
    return Unimplemented(uri.text() + ": objects of this store cannot be removed");
  }
};

}  // namespace shoal::data
