#include "cli/terminal/limits_handler.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "cli/terminal/thread_limit.h"

namespace shoal::cli {
namespace {

struct Limit {
  int error;
  int resource;
  const char* name;  // how `ulimit` calls it
  rlim_t unit;       // of its numbers
};
constexpr std::array<Limit, 3> kLimits = {{{EMFILE, RLIMIT_NOFILE, "-n", 1},
                                           {EAGAIN, RLIMIT_NPROC, "-u", 1},
                                           {ENOMEM, RLIMIT_AS, "-v", 1024}}};

void ExplainThreads(const char* what) {
  std::array<char, 256> why{};
  DescribeThreadLimit(ReadThreadLimits(), why);
  std::array<char, 512> text{};
  (void)std::snprintf(text.data(), text.size(),
                      "shoal: this process cannot start a thread (%.100s): %s\n", what, why.data());
  (void)!::write(STDERR_FILENO, text.data(), std::strlen(text.data()));
}

// Allocates nothing: memory may be what lacks.
void Explain(const Limit& limit, const char* what) {
  if (limit.error == EAGAIN) return ExplainThreads(what);
  rlimit now{};
  const bool known = ::getrlimit(static_cast<__rlimit_resource>(limit.resource), &now) == 0 &&
                     now.rlim_cur != RLIM_INFINITY;
  std::array<char, 512> text{};
  const int size =
      known ? std::snprintf(text.data(), text.size(),
                            "shoal: this process reached a limit of the system (%.200s); raise "
                            "`ulimit %s`, which is %llu\n",
                            what, limit.name,
                            static_cast<unsigned long long>(now.rlim_cur / limit.unit))
            : std::snprintf(text.data(), text.size(),
                            "shoal: this process reached a limit of the system (%.200s); end other "
                            "processes, or raise the limits of the control group or machine\n",
                            what);
  if (size > 0) (void)!::write(STDERR_FILENO, text.data(), std::strlen(text.data()));
}

[[noreturn]] void End() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    Explain(kLimits.back(), "out of memory");
    ::_exit(1);
  } catch (const std::exception& error) {
    // Asio throws errors of Boost, others those of the standard library: both end with strerror's
    // text of their code.
    for (const Limit& limit : kLimits) {
      if (std::string_view(error.what()).find(std::strerror(limit.error)) == std::string_view::npos)
        continue;
      Explain(limit, error.what());
      ::_exit(1);
    }
    (void)std::fprintf(stderr, "shoal: %s\n", error.what());
  } catch (...) {
  }
  std::abort();
}

}  // namespace

void ExplainLimitsAtEnd() { std::set_terminate(End); }

}  // namespace shoal::cli
