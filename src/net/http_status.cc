#include "net/http_status.h"

namespace shoal::net {

Code CodeOfHttp(int status) {
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kAlreadyExists;
    case 410:
      return Code::kOutOfRange;
    case 501:
      return Code::kUnimplemented;
    case 429:
      return Code::kUnavailable;
    default:
      constexpr int kServerError = 500;  // and all that a server may invent above it
      return status >= kServerError ? Code::kUnavailable : Code::kInternal;
  }
}

}  // namespace shoal::net
