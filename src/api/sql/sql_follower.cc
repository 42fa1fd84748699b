#include "api/sql/sql_follower.h"

#include <string>
#include <utility>

namespace shoal::api {
namespace {

constexpr size_t kEventsAtOnce = 20;

class SqlFollower final : public Follower {
 public:
  SqlFollower(SqlSessionPtr session, int64_t after, std::shared_ptr<Sink> sink)
      : session_(std::move(session)), after_(after), sink_(std::move(sink)) {}

  const std::string& job() const override { return none_; }
  void OnStored() override {}  // its events are not in the store
  Sink& sink() override { return *sink_; }

  bool Pump() override {
    while (!sink_->full()) {
      const SqlEvents events = session_->Read(after_, kEventsAtOnce);
      if (events.lost && !sink_->Write("lost", "", json::object{{"event", "lost"}})) return false;
      for (const json::object& event : events.items) {
        after_ = GetIntOr(event, "seq", after_);
        if (!sink_->Write(GetStringOr(event, "event", ""), std::to_string(after_), event))
          return false;
      }
      if (events.ended) {
        sink_->Finish();
        return false;
      }
      if (events.items.empty()) return true;
    }
    return true;
  }

 private:
  const SqlSessionPtr session_;
  int64_t after_;
  const std::shared_ptr<Sink> sink_;
  const std::string none_;
};

}  // namespace

std::unique_ptr<Follower> MakeSqlFollower(SqlSessionPtr session, int64_t after,
                                          std::shared_ptr<Sink> sink) {
  return std::make_unique<SqlFollower>(std::move(session), after, std::move(sink));
}

}  // namespace shoal::api
