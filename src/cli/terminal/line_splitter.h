// Splits the log bytes of each attempt of each task into lines. Used by display.cc and logs.cc.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "rendezvous/client/coordinator_client.h"

namespace shoal::cli {

class LineSplitter {
 public:
  using OnLine = std::function<void(const rendezvous::LogKey&, const std::string& line)>;
  explicit LineSplitter(OnLine on_line) : on_line_(std::move(on_line)) {}

  void Add(const rendezvous::LogKey& key, std::string_view bytes) {
    std::string& rest = rest_[key];
    rest += bytes;
    size_t begin = 0;
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      on_line_(key, WithoutFill(rest.substr(begin, end - begin)));
      begin = end + 1;
    }
    rest.erase(0, begin);
    // Bounds a line without a line feed.
    if (rest.size() > kLongest) on_line_(key, WithoutFill(std::exchange(rest, {})));
  }
  // Emits incomplete last lines.
  void Finish() {
    for (auto& [key, rest] : rest_) {
      if (!rest.empty()) on_line_(key, std::exchange(rest, {}));
    }
  }

 private:
  static constexpr size_t kLongest = size_t{1} << 20;
  // A line in place of lost ones is padded to their length (rendezvous::GapLine).
  static std::string WithoutFill(std::string line) {
    if (line.starts_with("[shoal: ")) line.resize(line.find_last_not_of(' ') + 1);
    return line;
  }
  OnLine on_line_;
  std::map<rendezvous::LogKey, std::string> rest_;
};

}  // namespace shoal::cli
