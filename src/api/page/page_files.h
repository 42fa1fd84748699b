// Serves the page (web/): its files, and index.html for every address that the page itself knows.
//
// Nothing of it needs a token: the files are the same for everybody, and hold no data. The page
// gets its data from the REST interface like any other client.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/page/embedded_files.h"
#include "net/http/server_exchange.h"

namespace shoal::api {

// Constant after construction; thread-safe.
class PageFiles {
 public:
  // Compresses each file once (gzip, RFC 1952). `files` are copied.
  explicit PageFiles(std::span<const EmbeddedFile> files = EmbeddedFiles());

  // The reply to a GET or HEAD of a file or an address of the page; none for other requests, those
  // of the API among them.
  std::optional<net::HttpServerReply> Reply(const net::HttpServerRequest& request) const;

 private:
  struct File {
    std::string type;  // of its content
    std::string bytes;
    std::string compressed;  // empty: no smaller
    std::string etag;
    bool immutable = false;  // its name changes with its content
  };
  std::map<std::string, File, std::less<>> files_;
};

}  // namespace shoal::api
