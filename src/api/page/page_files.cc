#include "api/page/page_files.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/id.h"

namespace shoal::api {
namespace {

constexpr std::string_view kIndex = "index.html";
constexpr int kNotModified = 304;
// First segments of the addresses that the page answers (web/src/app.tsx).
constexpr std::array<std::string_view, 10> kPages = {
    "jobs", "new", "models", "data", "queues", "usage", "secrets", "audit", "account", "signed-in"};
// Nothing but this server's own files runs, is shown or is asked; no other page frames this one.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

std::string_view TypeOf(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes = {
      {{".html", "text/html; charset=utf-8"},
       {".js", "text/javascript; charset=utf-8"},
       {".css", "text/css; charset=utf-8"},
       {".svg", "image/svg+xml"}}};
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

// Empty if zlib fails, or the result is no smaller.
std::string Gzip(std::string_view bytes) {
  constexpr int kGzipWindow = 16 + MAX_WBITS;
  constexpr int kMemoryLevel = 9;
  z_stream zlib{};
  if (deflateInit2(&zlib, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return "";
  std::string out(deflateBound(&zlib, bytes.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  const bool done = deflate(&zlib, Z_FINISH) == Z_STREAM_END;
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return done && out.size() < bytes.size() ? out : "";
}

bool TakesGzip(const net::HttpServerRequest& request) {
  const std::string_view accepted = request.Header("accept-encoding");
  const size_t at = accepted.find("gzip");
  return at != std::string_view::npos && !accepted.substr(at).starts_with("gzip;q=0");
}

bool IsPage(const net::HttpServerRequest& request) {
  return request.path.empty() || std::ranges::find(kPages, request.path[0]) != kPages.end();
}

// "" for "/"; "jobs/a" for "/jobs/a".
std::string PathOf(const net::HttpServerRequest& request) {
  std::string path;
  for (const std::string& segment : request.path) path += (path.empty() ? "" : "/") + segment;
  return path;
}

}  // namespace

PageFiles::PageFiles(std::span<const EmbeddedFile> files) {
  for (const EmbeddedFile& file : files) {
    File& one = files_[std::string(file.path)];
    one.type = TypeOf(file.path);
    one.bytes = file.bytes;
    one.compressed = Gzip(file.bytes);
    one.etag = '"' + Sha256Hex(file.bytes).substr(0, 32) + '"';
    one.immutable = file.path.starts_with("assets/");
  }
}

std::optional<net::HttpServerReply> PageFiles::Reply(const net::HttpServerRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  const auto found = files_.find(IsPage(request) ? std::string(kIndex) : PathOf(request));
  if (found == files_.end()) return std::nullopt;
  const File& file = found->second;
  net::HttpServerReply reply;
  reply.headers = {
      {"Content-Type", file.type},
      {"ETag", file.etag},
      {"Vary", "Accept-Encoding"},
      {"Cache-Control", file.immutable ? "public, max-age=31536000, immutable" : "no-cache"},
      {"Content-Security-Policy", std::string(kPolicy)},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"}};
  if (request.Header("if-none-match") == file.etag) {
    reply.status = kNotModified;
    return reply;
  }
  const bool gzip = !file.compressed.empty() && TakesGzip(request);
  if (gzip) reply.headers.emplace_back("Content-Encoding", "gzip");
  reply.body = gzip ? file.compressed : file.bytes;
  return reply;
}

}  // namespace shoal::api
