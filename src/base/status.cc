#include "base/status.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shoal {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kCancelled:
      return "cancelled";
    case Code::kUnknown:
      return "unknown";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kDeadlineExceeded:
      return "deadline exceeded";
    case Code::kNotFound:
      return "not found";
    case Code::kAlreadyExists:
      return "already exists";
    case Code::kPermissionDenied:
      return "permission denied";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kFailedPrecondition:
      return "failed precondition";
    case Code::kAborted:
      return "aborted";
    case Code::kOutOfRange:
      return "out of range";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kInternal:
      return "internal";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDataLoss:
      return "data loss";
    case Code::kUnauthenticated:
      return "unauthenticated";
  }
  return "unknown";
}

int ExitCodeOf(Code code) {
  switch (code) {
    case Code::kOk:
      return 0;
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
      return 2;
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      return 3;
    case Code::kNotFound:
      return 4;
    case Code::kUnavailable:
      return 5;
    case Code::kCancelled:
      return 130;
    default:
      return 1;
  }
}

Status::Status(Code code, std::string message) {
  if (code != Code::kOk) rep_ = std::make_shared<const Rep>(Rep{code, std::move(message)});
}

const std::string& Status::message() const {
  static const std::string empty;
  return ok() ? empty : rep_->message;
}

Status Status::With(std::string_view context) const {
  if (ok()) return *this;
  return Status(code(), std::string(context) + ": " + message());
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return std::string(CodeName(code())) + ": " + message();
}

Status Cancelled(std::string message) { return {Code::kCancelled, std::move(message)}; }
Status InvalidArgument(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }
Status DeadlineExceeded(std::string message) {
  return {Code::kDeadlineExceeded, std::move(message)};
}
Status NotFound(std::string message) { return {Code::kNotFound, std::move(message)}; }
Status AlreadyExists(std::string message) { return {Code::kAlreadyExists, std::move(message)}; }
Status PermissionDenied(std::string message) {
  return {Code::kPermissionDenied, std::move(message)};
}
Status ResourceExhausted(std::string message) {
  return {Code::kResourceExhausted, std::move(message)};
}
Status FailedPrecondition(std::string message) {
  return {Code::kFailedPrecondition, std::move(message)};
}
Status Aborted(std::string message) { return {Code::kAborted, std::move(message)}; }
Status OutOfRange(std::string message) { return {Code::kOutOfRange, std::move(message)}; }
Status Unimplemented(std::string message) { return {Code::kUnimplemented, std::move(message)}; }
Status Internal(std::string message) { return {Code::kInternal, std::move(message)}; }
Status Unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }
Status DataLoss(std::string message) { return {Code::kDataLoss, std::move(message)}; }
Status Unauthenticated(std::string message) { return {Code::kUnauthenticated, std::move(message)}; }

namespace {

Code CodeOfErrno(int error) {
  switch (error) {
    case ENOENT:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
      return Code::kResourceExhausted;
    case EINVAL:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    case ETIMEDOUT:
      return Code::kDeadlineExceeded;
    case EADDRINUSE:
      return Code::kFailedPrecondition;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return Code::kUnavailable;
    case ECANCELED:
      return Code::kCancelled;
    default:
      return Code::kUnknown;
  }
}

// What helps where descriptors lack; empty for other errors.
std::string RemedyOf(int error) {
  if (error == ENFILE)
    return "; the machine has no more: end other processes, or raise the sysctl fs.file-max";
  rlimit now{};
  if (error != EMFILE || ::getrlimit(RLIMIT_NOFILE, &now) != 0) return "";
  return "; raise `ulimit -n`, which is " + std::to_string(now.rlim_cur);
}

}  // namespace

Status ErrnoStatus(int error, std::string_view what) {
  return {CodeOfErrno(error), std::string(what) + ": " + std::strerror(error) + RemedyOf(error)};
}

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace shoal
