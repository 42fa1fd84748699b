// The controller's side of the outputs' second leg: takes what tasks on other hosts wrote to
// $SHOAL_OUTPUT from the coordinator (output_relay.h), where the two share no directory, over a
// line of its own, and keeps it where `shoal outputs` looks.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/loop.h"
#include "rendezvous/link.h"

namespace shoal::rendezvous {

struct FetchOutputsOptions {
  std::function<Result<CoordinatorAddress>()> find;  // asked before every dial
  std::string token;
  std::filesystem::path directory;                    // JOBDIR/outputs
  Duration give_up_after = std::chrono::seconds(30);  // since the line was lost
};

// Belongs to the loop's thread.
class OutputFetch {
 public:
  // `on_end` comes once, from the loop, after Finish: OK when all that the coordinator has is here,
  // else why that is not known. It may destroy this object.
  static std::unique_ptr<OutputFetch> Start(net::Loop* loop, FetchOutputsOptions options,
                                            std::function<void(const Status&)> on_end);
  virtual ~OutputFetch() = default;
  // Nothing more is being written: tell when all is here.
  virtual void Finish() = 0;
};

}  // namespace shoal::rendezvous
