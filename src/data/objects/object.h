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
};

}  // namespace shoal::data
