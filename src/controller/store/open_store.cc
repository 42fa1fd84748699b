#include "controller/store/open_store.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/utf8.h"
#include "controller/store/postgres/postgres_store.h"
#include "controller/store/sqlite_store.h"

namespace shoal::controller {
namespace {

constexpr std::string_view kSqlite = "sqlite:";

bool IsPostgres(std::string_view url) {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const std::string& url) {
  if (IsPostgres(url)) return OpenPostgresStore(url);
  if (url.starts_with(kSqlite) && url.size() > kSqlite.size()) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(url.substr(kSqlite.size()), error);
    if (error) return ErrnoStatus(error.value(), "the current directory");
    return OpenSqliteStore(path);
  }
  return InvalidArgument("store: got \"" + PrintableStoreUrl(url) +
                         "\", expected sqlite:PATH or postgres://USER@HOST:PORT/DATABASE");
}

bool IsSharedStore(const std::string& url) { return IsPostgres(url); }

// From "//" to the last '@' of the authority stand user and password; parameters may contain a
// password too. Of text that is neither form, what may be a password is left out.
std::string PrintableStoreUrl(const std::string& url) {
  if (url.starts_with(kSqlite)) return EscapedUtf8(url);
  const size_t begin = url.find("//");
  if (begin == std::string::npos) {
    if (url.find_first_of("@?") == std::string::npos) return EscapedUtf8(url);
    return EscapedUtf8(url.substr(0, url.find_first_of(":@?"))) + "…";
  }
  const std::string_view rest = std::string_view(url).substr(begin + 2);
  const std::string scheme = EscapedUtf8(url.substr(0, begin + 2));
  const size_t parameters = rest.find('?');
  const size_t at = rest.rfind('@');
  if (at == std::string_view::npos) return scheme + EscapedUtf8(rest.substr(0, parameters));
  // A '?' may begin the parameters, or be part of a password that was not escaped.
  if (parameters < at) return scheme + "…";
  return scheme + EscapedUtf8(rest.substr(at + 1, parameters - std::min(parameters, at + 1)));
}

}  // namespace shoal::controller
