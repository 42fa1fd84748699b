// Detection of a TCP peer whose host has vanished without closing the connection: its link is down,
// its machine is off.
//
// Every TCP connection of ours, here and in src/ps. An end whose program merely stands still (a
// debugger, SIGSTOP, Slurm's suspend) has not vanished: its kernel acknowledges.
#pragma once

#include <optional>

#include "base/clock.h"

namespace shoal::net {

// Longest silence of the other end's kernel.
inline constexpr Duration kPeerSilence = std::chrono::seconds(30);

// Has the kernel probe a connection over which nothing goes, and end it (ETIMEDOUT) when nothing is
// acknowledged for kPeerSilence. It does not do that while data is under way: see
// PeerLivenessCheck. Nothing for a socket that is not TCP.
void SetKeepAlive(int fd);

// The same, and for data under way: the kernel ends the connection when what was sent is not
// acknowledged for `limit`. Also when the other end does not read for so long and its buffers are
// full, so `limit` must be longer than programs may stand still.
void SetKeepAlive(int fd, Duration limit);

// A `limit` for control connections: a program that stands still for longer is given up anyway.
inline constexpr Duration kLongestPause = std::chrono::minutes(2);

// Whether the other end's kernel is silent although it has something to acknowledge, by looking at
// the connection now and then: unlike TCP_USER_TIMEOUT this does not end one whose other end is
// there and does not read.
class PeerLivenessCheck {
 public:
  // True: nothing has been acknowledged for kPeerSilence, as seen by looks in between. Call it
  // every few seconds. False for a socket that is not TCP.
  bool IsSilent(int fd, TimePoint now);

 private:
  std::optional<TimePoint> since_;  // when something was first seen to be unacknowledged
};

// The interval between checks.
inline constexpr Duration kLivenessCheckInterval = std::chrono::seconds(5);

}  // namespace shoal::net
