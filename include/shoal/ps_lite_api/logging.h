// The checks and log lines that ps-lite's headers bring along (dmlc's logging.h), for programs
// written against them. Left out where the program has such macros already. A failed check ends the
// process with its sentence.
#pragma once

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace ps::lite_log {

class LogMessage {
 public:
  LogMessage(const char* file, int line, bool fatal) : fatal_(fatal) {
    text_ << file << ":" << line << ": ";
  }
  ~LogMessage() {
    text_ << "\n";
    std::cerr << text_.str() << std::flush;
    if (fatal_) std::abort();
  }
  std::ostream& stream() { return text_; }

 private:
  const bool fatal_;
  std::ostringstream text_;
};

// Makes a whole streamed expression void.
struct Nothing {
  void operator&(std::ostream&) const {}
};

template <typename T>
T NotNull(T pointer, const char* file, int line, const char* what) {
  if (pointer == nullptr) LogMessage(file, line, true).stream() << what << " is null ";
  return pointer;
}

}  // namespace ps::lite_log

#ifndef CHECK
#define SHOAL_LITE_LINE(fatal) ::ps::lite_log::LogMessage(__FILE__, __LINE__, fatal).stream()
#define CHECK(x) \
  (x) ? (void)0 : ::ps::lite_log::Nothing() & SHOAL_LITE_LINE(true) << "Check failed: " #x " "
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_NE(a, b) CHECK((a) != (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define CHECK_NOTNULL(x) ::ps::lite_log::NotNull((x), __FILE__, __LINE__, #x)
#endif
// Checked in every build.
#ifndef DCHECK
#define DCHECK(x) CHECK(x)
#define DCHECK_EQ(a, b) CHECK_EQ(a, b)
#define DCHECK_NE(a, b) CHECK_NE(a, b)
#define DCHECK_LT(a, b) CHECK_LT(a, b)
#define DCHECK_LE(a, b) CHECK_LE(a, b)
#define DCHECK_GT(a, b) CHECK_GT(a, b)
#define DCHECK_GE(a, b) CHECK_GE(a, b)
#endif

#ifndef LOG
#define SHOAL_LITE_LOG_INFO SHOAL_LITE_LINE(false)
#define SHOAL_LITE_LOG_WARNING SHOAL_LITE_LINE(false)
#define SHOAL_LITE_LOG_ERROR SHOAL_LITE_LINE(false)
#define SHOAL_LITE_LOG_FATAL SHOAL_LITE_LINE(true)
#define LOG(severity) SHOAL_LITE_LOG_##severity
#endif
#ifndef LOG_IF
#define LOG_IF(severity, condition) \
  !(condition) ? (void)0 : ::ps::lite_log::Nothing() & LOG(severity)
#endif
#ifndef LG
#define LG LOG(INFO)
#endif
#ifndef LL
#define LL LOG(ERROR)
#endif
