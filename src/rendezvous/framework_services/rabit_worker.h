// A connection to rabit's tracker and its parser state: private to rabit_tracker.cc,
// rabit_binary.cc, rabit_json.cc.
#pragma once

#include <cstring>
#include <utility>

#include "rendezvous/framework_services/rabit_tracker.h"

namespace shoal::rendezvous {

inline constexpr int32_t kRabitMagic = 0xff99;

struct RabitTracker::Worker {
  enum class State : uint8_t {
    kMagic,
    kHello,
    kPrint,        // binary: the text follows
    kJsonCommand,  // its hello was heard
    kPending,      // wants a rank; says nothing until it has one
    kTurn,         // has a rank, waits until others have linked
    kGood,         // says whom it is connected to already
    kErrors,       // says how many of the offered could not be reached
    kPort,         // says where it listens
    kOver,         // what it still says is not needed
  };

  Connection id = 0;
  std::string host;
  std::string in;
  State state = State::kMagic;
  bool json = false;
  int rank = -1;
  std::string task;
  uint16_t port = 0;         // JSON: where it listens for the others
  uint16_t error_port = 0;   // JSON: and where for bad news
  std::vector<int> offered;  // binary: whom it is told to connect to
  int accepts = 0;           // binary: how many will connect to it

  // Removes an integer from the front of `in`; none if it is incomplete.
  std::optional<int32_t> Int() {
    const auto value = IntAt(0);
    if (value) in.erase(0, sizeof(int32_t));
    return value;
  }
  std::optional<int32_t> IntAt(size_t at) const {
    if (in.size() < at || in.size() - at < sizeof(int32_t)) return std::nullopt;
    int32_t value = 0;
    std::memcpy(&value, in.data() + at, sizeof value);
    return value;
  }
  // Reads the length-prefixed text at `at` and moves `at` behind it. None if bytes are missing, an
  // error for an impossible length.
  Result<std::optional<std::string>> TextAt(size_t* at) const {
    const auto size = IntAt(*at);
    if (!size) return std::optional<std::string>();
    if (*size < 0 || static_cast<size_t>(*size) > kMostBytes) {
      return InvalidArgument("got a text of " + std::to_string(*size) + " bytes, expected 0 … " +
                             std::to_string(kMostBytes));
    }
    const size_t from = *at + sizeof(int32_t);
    if (in.size() - from < static_cast<size_t>(*size)) return std::optional<std::string>();
    *at = from + static_cast<size_t>(*size);
    return std::optional<std::string>(in.substr(from, static_cast<size_t>(*size)));
  }
};

// On the wire: in the machine's byte order.
inline std::string RabitInt(int32_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
inline std::string RabitText(std::string_view text) {
  return RabitInt(static_cast<int32_t>(text.size())) + std::string(text);
}

}  // namespace shoal::rendezvous
