#include "net/http/sse_reader.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace shoal::net {
namespace {

constexpr std::chrono::milliseconds kLongestRetry = std::chrono::hours(24);

}  // namespace

Status SseReader::Feed(std::string_view bytes, std::vector<SseEvent>* events) {
  const auto too_long = [this] {
    return ResourceExhausted("a server-sent event is longer than " + std::to_string(most_) +
                             " bytes");
  };
  if (failed_) return too_long();
  while (!bytes.empty()) {
    if (std::exchange(after_return_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + data_.size() + end > most_) {
      failed_ = true;
      return too_long();
    }
    line_.append(bytes.substr(0, end));
    if (end == bytes.size()) break;
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    TakeLine(line_, events);
    line_.clear();
  }
  return Status::Ok();
}

void SseReader::TakeLine(std::string_view line, std::vector<SseEvent>* events) {
  if (!std::exchange(began_, true) && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  if (line.empty()) {
    last_id_ = id_;
    if (!data_.empty()) {
      data_.pop_back();  // the line feed of its last line
      events->push_back({type_.empty() ? "message" : type_, ValidUtf8(data_), last_id_});
    }
    type_.clear();
    data_.clear();
    return;
  }
  const size_t colon = std::min(line.find(':'), line.size());
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  TakeField(line.substr(0, colon), value);
}

void SseReader::TakeField(std::string_view name, std::string_view value) {
  if (name == "data") {
    data_.append(value);
    data_ += '\n';
  } else if (name == "event") {
    type_ = ValidUtf8(value);
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) id_ = ValidUtf8(value);
  } else if (name == "retry") {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && end == value.data() + value.size() && number >= 0)
      retry_ = std::min(std::chrono::milliseconds(number), kLongestRetry);
  }
}

}  // namespace shoal::net
