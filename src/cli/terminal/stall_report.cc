#include "cli/terminal/stall_report.h"

#include <fmt/format.h>

#include "cli/terminal/progress.h"

namespace shoal::cli {
namespace {

std::string Since(int64_t ms) { return FormatDuration(std::chrono::milliseconds(ms)); }

// The objects in a list, without other values.
std::vector<const json::object*> Objects(const json::object& object, std::string_view field) {
  std::vector<const json::object*> found;
  const json::value* list = object.if_contains(field);
  if (list == nullptr || !list->is_array()) return found;
  for (const json::value& one : list->get_array()) {
    if (one.is_object()) found.push_back(&one.get_object());
  }
  return found;
}

std::string ProcessText(const json::object& process) {
  std::string waits;
  for (const json::object* one : Objects(process, "waits")) {
    const int64_t threads = GetIntOr(*one, "threads", 0);
    waits += fmt::format("{}{} in {}", waits.empty() ? "" : ", ",
                         threads == 1 ? "1 thread" : fmt::format("{} threads", threads),
                         GetStringOr(*one, "in", "?"));
  }
  return fmt::format("    process {} {} ({}){}{}\n", GetIntOr(process, "pid", 0),
                     GetStringOr(process, "name", "?"), GetStringOr(process, "state", "?"),
                     waits.empty() ? "" : ": ", waits);
}

std::string ConnectionText(const json::object& connection) {
  std::string text =
      fmt::format("    {} to {}, {}", GetStringOr(connection, "local", "?"),
                  GetStringOr(connection, "peer", "?"), GetStringOr(connection, "state", "?"));
  for (const char* what : {"unread", "unsent"}) {
    const int64_t bytes = GetIntOr(connection, what, 0);
    if (bytes > 0) text += fmt::format(", {} bytes {}", bytes, what);
  }
  return text + "\n";
}

std::string TaskText(const json::object& task) {
  std::string text = fmt::format("  {}-{} has stood still for {}", GetStringOr(task, "role", "?"),
                                 GetIntOr(task, "index", 0), Since(GetIntOr(task, "still_ms", 0)));
  if (GetBoolOr(task, "silent", false)) return text + "; its launcher did not say more\n";
  text += fmt::format(", used {:.1f} s of processor", GetDoubleOr(task, "cpu_seconds", 0));
  if (const std::string line = GetStringOr(task, "last_line", ""); !line.empty()) {
    text +=
        fmt::format("; its last line, {} old: {}", Since(GetIntOr(task, "last_line_ms", 0)), line);
  }
  text += "\n";
  for (const json::object* one : Objects(task, "processes")) text += ProcessText(*one);
  if (const int64_t more = GetIntOr(task, "more_processes", 0); more > 0) {
    text += fmt::format("    and {} more processes\n", more);
  }
  for (const json::object* one : Objects(task, "connections")) text += ConnectionText(*one);
  if (const int64_t more = GetIntOr(task, "more_connections", 0); more > 0) {
    text += fmt::format("    and {} more connections\n", more);
  }
  return text;
}

std::string SafeLines(const std::string& text) {
  std::string safe;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    safe += SafeForTerminal(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return safe;
}

}  // namespace

// Only the last stall is formatted; an event "moving" after it adds the time of its end.
std::string FormatStallReport(const std::vector<controller::Event>& events, WallTime from) {
  const controller::Event* stalled = nullptr;
  const controller::Event* moving = nullptr;
  for (const controller::Event& event : events) {
    if (event.type == "stalled") {
      stalled = &event;
      moving = nullptr;
    } else if (event.type == "moving") {
      moving = &event;
    }
  }
  if (stalled == nullptr) return "";
  std::string text = "stalled at +" + FormatDuration(stalled->time - from);
  if (moving != nullptr) text += ", moved again at +" + FormatDuration(moving->time - from);
  text += "\n";
  for (const json::object* task : Objects(stalled->body, "tasks")) text += TaskText(*task);
  if (const int64_t more = GetIntOr(stalled->body, "more_tasks", 0); more > 0) {
    text += fmt::format("  and {} more tasks\n", more);
  }
  return SafeLines(text);
}

}  // namespace shoal::cli
