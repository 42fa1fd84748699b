#include "ps/client/marker_sender.h"

#include "base/mutex.h"
#include "ps/client/client_core.h"

namespace shoal::ps {

int64_t MarkerSender::last() {
  const MutexLock marking(mu_);
  return last_;
}

void MarkerSender::SendToAll(int64_t checkpoint) {
  const MutexLock marking(mu_);
  if (checkpoint <= last_) return;
  // First, so that a refusal is either seen on its redirect below, or says itself that it is late.
  SetSettling({checkpoint, 1, false});
  if (core_->redirector().DefersMarker(checkpoint)) return SetSettling({});
  last_ = checkpoint;
  const std::string progress = core_->worker().progress();
  for (const auto& channel : core_->channels()) {
    const bool leads = channel->server() == kLeader && channel->lane() == 0;
    Send(channel.get(), checkpoint, leads ? progress : std::string());
  }
  OnAnswered(checkpoint, false);
}

void MarkerSender::Send(Channel* channel, int64_t checkpoint, const std::string& progress) {
  FrameHeader head;
  head.type = FrameType::kMarker;
  head.argument = static_cast<uint64_t>(checkpoint);
  {
    const MutexLock lock(settling_mu_);
    if (settling_.checkpoint == checkpoint) ++settling_.markers;
  }
  if (!channel->SendMarker(head, progress)) OnAnswered(checkpoint, false);
}

void MarkerSender::SetSettling(const Settling& now) {
  const MutexLock lock(settling_mu_);
  settling_ = now;
}

void MarkerSender::OnAnswered(int64_t checkpoint, bool failed) {
  FrameHeader head;
  head.type = FrameType::kSettled;
  head.argument = static_cast<uint64_t>(checkpoint);
  {
    const MutexLock lock(settling_mu_);
    if (settling_.checkpoint != checkpoint) return;
    settling_.late |= failed;
    if (--settling_.markers > 0) return;
    if (settling_.late) head.flags = kSettledLate;
    settling_ = {};
  }
  core_->leader().SendMarker(head, {});
}

// Known to be on a redirect before it is asked whether markers are going out.
void MarkerSender::OnMoved(Redirect redirect) {
  const bool counts = Writes(redirect.head) && !redirect.applied;
  const int64_t after = redirect.after;
  core_->redirector().AddRedirect(std::move(redirect));
  const MutexLock lock(settling_mu_);
  if (counts && settling_.checkpoint > after) settling_.late = true;
}

}  // namespace shoal::ps
