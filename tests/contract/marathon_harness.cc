// Tasks under a double of Marathon on this machine: tests/marathon/marathon_double.py.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/harness.h"
#include "contract/shell_harness.h"
#include "engine/marathon/marathon_engine.h"
#include "engine/process/child_process.h"

namespace shoal::engine {
namespace {

// Ends with this object.
class Double {
 public:
  Double()
      : child_(
            std::move(StartChild({"python3", SHOAL_SOURCE_DIR "/tests/marathon/marathon_double.py"},
                                 CurrentEnvironment())
                          .value())) {
    constexpr int kPatience_ms = 10'000;
    while (url_.find('\n') == std::string::npos) {
      pollfd said{child_.out.get(), POLLIN, 0};
      char block[256];
      if (::poll(&said, 1, kPatience_ms) <= 0) break;
      const ssize_t got = ::read(child_.out.get(), block, sizeof block);
      if (got <= 0) break;
      url_.append(block, static_cast<size_t>(got));
    }
    url_ = url_.substr(0, url_.find('\n'));
  }
  ~Double() {
    child_.in.Reset();
    pollfd ended{child_.pidfd.get(), POLLIN, 0};
    (void)::poll(&ended, 1, -1);
    (void)ReapChild(child_);
  }
  const std::string& url() const { return url_; }

 private:
  Child child_;
  std::string url_;
};

class MarathonHarness final : public OptionsHarness<MarathonEngineOptions, MakeMarathonEngine> {
 public:
  MarathonHarness() : OptionsHarness(std::chrono::seconds(30), false) {}

 private:
  void Adjust(MarathonEngineOptions* options) override {
    options->program = HelperProgram();
    options->url = double_.url();
  }

  Double double_;
};

}  // namespace

std::vector<EngineUnderTest> EnginesUnderTest() {
  return {{"marathon", MakeHarness<MarathonHarness>}};
}

}  // namespace shoal::engine
