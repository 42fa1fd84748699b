// Errors as values: Status for "it worked or why not", Result<T> for "a value or why not".
//
// Every function of Shoal that can fail for a reason outside the program returns one of these;
// exceptions never cross a room's border. The codes are the sixteen canonical ones
// (google.rpc.Code); detail belongs in the message, which says what failed, where, what was got,
// what was expected and what to do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shoal {

enum class Code : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "not found", "unavailable", … as they stand in messages and JSON.
std::string_view CodeName(Code code);

// The exit code of a process that fails with this code (design.md §12): 1 failed, 2 usage, 3 not
// allowed, 4 not found, 5 unreachable, 130 cancelled.
int ExitCodeOf(Code code);

// One word wide; OK allocates nothing. Copyable, thread-compatible.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);

  static Status Ok() { return {}; }

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return ok() ? Code::kOk : rep_->code; }
  // Empty for OK.
  const std::string& message() const;
  // True if the same call may succeed later without any change by the caller.
  bool retryable() const { return code() == Code::kUnavailable || code() == Code::kAborted; }
  // The same error with "context: " before its message; OK stays OK.
  Status With(std::string_view context) const;
  // "not found: message", for logs.
  std::string ToString() const;

 private:
  struct Rep {
    Code code;
    std::string message;
  };
  std::shared_ptr<const Rep> rep_;
};

Status Cancelled(std::string message);
Status InvalidArgument(std::string message);
Status DeadlineExceeded(std::string message);
Status NotFound(std::string message);
Status AlreadyExists(std::string message);
Status PermissionDenied(std::string message);
Status ResourceExhausted(std::string message);
Status FailedPrecondition(std::string message);
Status Aborted(std::string message);
Status OutOfRange(std::string message);
Status Unimplemented(std::string message);
Status Internal(std::string message);
Status Unavailable(std::string message);
Status DataLoss(std::string message);
Status Unauthenticated(std::string message);
// The code that fits an errno value, with "what: strerror".
Status ErrnoStatus(int error, std::string_view what);

// A value, or the error that stands in its place. Reading the value of an error is a programmer's
// error and aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit on purpose, as is the next
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = Internal("a Result was made of an OK status without a value");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return value_.value(); }
  const T& value() const& { return value_.value(); }
  T&& value() && { return std::move(value_).value(); }
  T& operator*() & { return value_.value(); }
  const T& operator*() const& { return value_.value(); }
  T&& operator*() && { return std::move(value_).value(); }
  T* operator->() { return &value_.value(); }
  const T* operator->() const { return &value_.value(); }
  T value_or(T other) const { return ok() ? *value_ : std::move(other); }

 private:
  Status status_;
  std::optional<T> value_;
};

// Programmer's errors only; never on bytes from disk, network or user.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace shoal

#define SHOAL_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::shoal::CheckFailed(__FILE__, __LINE__, #condition))

#define SHOAL_CONCAT_(a, b) a##b
#define SHOAL_CONCAT(a, b) SHOAL_CONCAT_(a, b)

// TRY(expression of Status): returns it from this function unless it is OK.
#define TRY(expression)                                                                    \
  do {                                                                                     \
    if (::shoal::Status try_status_ = (expression); !try_status_.ok()) return try_status_; \
  } while (false)

// TRY_ASSIGN(auto x, expression of Result): declares or sets x, or returns the error.
#define TRY_ASSIGN(left, ...) TRY_ASSIGN_(SHOAL_CONCAT(try_result_, __LINE__), left, __VA_ARGS__)
#define TRY_ASSIGN_(temporary, left, ...)         \
  auto temporary = (__VA_ARGS__);                 \
  if (!temporary.ok()) return temporary.status(); \
  left = std::move(temporary).value()
