// Runs scripts: parses, executes one statement after another, and shows what they give.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "sql/session/state.h"
#include "sql/syntax/script_text.h"

namespace shoal::sql {

inline constexpr size_t kMaxIncludeDepth = 16;
inline constexpr size_t kMaxExecuted = 1'000'000;

struct SessionOptions {
  size_t shown_rows = 20;  // of a result; 0: all
  size_t shown_bytes = 0;  // of its cells, about; 0: any number
};

// Not thread-safe. Jobs run through the host, one after another.
class Session {
 public:
  // `host` must outlive the session.
  explicit Session(Host* host, SessionOptions options = {}) : state_(host), options_(options) {}

  void SetVariable(const std::string& name, std::string value) {
    state_.variables.Set(name, std::move(value));
  }

  void SetShown(const SessionOptions& options) { options_ = options; }

  // Parses the whole script, so that one with a syntax error does nothing, and executes it up to
  // the first error. The result of the last statement is shown. Errors have their place; Cancelled
  // if the host was told to stop.
  Status Run(const ScriptPtr& script);

  const SessionState& state() const { return state_; }

 private:
  Status RunStatements(const ScriptText& script, size_t depth);
  Status RunStatement(const ScriptText& script, const Statement& statement, size_t depth);
  Status Include(const ScriptText& script, const IncludeStatement& include, size_t depth);
  // `!name arguments`, where `name` is a variable with statements.
  Status RunMacro(const ScriptText& script, const CommandStatement& command, size_t depth);
  Status RunNested(const ScriptText& outer, Span span, const ScriptText& inner, size_t depth);
  Status ShowResult(const StatementResult& result);

  SessionState state_;
  SessionOptions options_;
  StatementResult last_;
  size_t executed_ = 0;
};

}  // namespace shoal::sql
