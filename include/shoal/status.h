// Errors as values, as shoal/ps.h returns them. Standard library alone.
//
//   auto client = shoal::ps::Client::Connect(options);
//   if (!client.ok()) return Fail(client.status().message());
//   (*client)->Flush();                                   // or client.value(), which throws
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#ifndef SHOAL_PS_LIBRARY
#define SHOAL_PS_INLINE inline
#else
#define SHOAL_PS_INLINE
#endif

namespace shoal::ps {
SHOAL_PS_INLINE namespace v1 {
  // The sixteen canonical ones (google.rpc.Code).
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

  class [[nodiscard]] Status {
   public:
    Status() = default;
    Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
    static Status Ok() { return {}; }
    bool ok() const { return code_ == Code::kOk; }
    Code code() const { return code_; }
    // A sentence that says what failed, where, what was expected and what to do; empty for OK.
    const std::string& message() const { return message_; }
    // The same call may succeed later without any change by the caller.
    bool retryable() const { return code_ == Code::kUnavailable || code_ == Code::kAborted; }

   private:
    Code code_ = Code::kOk;
    std::string message_;
  };

  // Thrown by Result::value().
  class Error : public std::runtime_error {
   public:
    explicit Error(Status status)
        : std::runtime_error(status.message()), status_(std::move(status)) {}
    const Status& status() const { return status_; }

   private:
    Status status_;
  };

  // A value, or the error in its place.
  template <typename T>
  class [[nodiscard]] Result {
   public:
    Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
    Result(Status status) : status_(std::move(status)) {}  // NOLINT
    bool ok() const { return value_.has_value(); }
    const Status& status() const { return status_; }
    // The value; throws Error if there is none.
    T& value() & { return Check(), *value_; }
    const T& value() const& { return Check(), *value_; }
    T&& value() && { return Check(), std::move(*value_); }
    // The value, which must be there.
    T& operator*() & { return *value_; }
    const T& operator*() const& { return *value_; }
    T&& operator*() && { return std::move(*value_); }
    T* operator->() { return &*value_; }
    const T* operator->() const { return &*value_; }

   private:
    void Check() const {
      if (!value_.has_value()) throw Error(status_);
    }
    Status status_;
    std::optional<T> value_;
  };

}  // namespace v1
}  // namespace shoal::ps
