// From a URI to its store, and from patterns to objects. One of these stands behind each corpus and
// each command; its connections end with it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "data/objects/http_transport.h"
#include "data/objects/object.h"
#include "data/objects/object_context.h"

namespace shoal::data {

inline constexpr size_t kMaxMatches = 1'000'000;

// Thread-safe. Objects and writers that it gave stay valid after it.
class ObjectStores {
 public:
  explicit ObjectStores(ObjectContext context = {});

  // The store of a URI, made when it is first asked for. InvalidArgument for wrong settings
  // (ReadS3Settings).
  Result<ObjectStore*> Find(const ObjectUri& uri);

  Result<std::shared_ptr<const Object>> Open(const std::string& uri);
  Result<std::unique_ptr<ObjectWriter>> Create(const std::string& uri);

  // The objects that `text` names, sorted by URI: itself, or what a pattern matches ('*', '?',
  // '[…]' within one part of a path), or all objects below a name that ends with '/', without those
  // with a part that begins with '.' or '_' (marks of other programs, such as _SUCCESS). HTTP URLs
  // are no patterns. NotFound if nothing matches; ResourceExhausted above kMaxMatches.
  Result<std::vector<std::string>> Expand(const std::string& text);
  // The same with lengths and versions. Objects that are named themselves are looked up.
  Result<std::vector<ObjectInfo>> List(const std::string& text);

 private:
  const ObjectContext context_;
  Mutex mu_;
  std::map<std::string, std::unique_ptr<ObjectStore>> stores_ GUARDED_BY(mu_);  // by kind and place
};

}  // namespace shoal::data
