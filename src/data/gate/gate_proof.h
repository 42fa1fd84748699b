// How a job's programs and its gate show each other that they know the job's token without sending
// it: another process may have taken the gate's port while the gate was away, and must neither
// learn the token nor pass for the gate. ADR 396.
//
//     program → gate   Shoal-Nonce: N      Authorization: Shoal INSTANCE HMAC(token, question)
//     gate → program   Shoal-Gate: INSTANCE       Shoal-Proof: HMAC(token, answer)
//
// INSTANCE is drawn by each start of a gate, so that a question that another process has heard is
// of no use. A program that does not know it yet is told by 401. The answer's body is not in the
// proof: it comes over the same connection.
#pragma once

#include <string>
#include <string_view>

#include "base/id.h"

namespace shoal::data {

inline constexpr const char* kNonceHeader = "Shoal-Nonce";
inline constexpr const char* kInstanceHeader = "Shoal-Gate";
inline constexpr const char* kProofHeader = "Shoal-Proof";
inline constexpr std::string_view kProofScheme = "Shoal ";
inline constexpr size_t kNonceBytes = 16;

// What is asked for. No field has a line end.
struct GateQuestion {
  std::string_view instance;
  std::string_view nonce;
  std::string_view target;
  std::string_view range;
  std::string_view version;  // of If-Match
};

inline std::string QuestionProof(std::string_view token, const GateQuestion& question) {
  std::string text = "question";
  for (const std::string_view part :
       {question.instance, question.nonce, question.target, question.range, question.version})
    text.append("\n").append(part);
  return HmacSha256Hex(token, text);
}

inline std::string AnswerProof(std::string_view token, const GateQuestion& question, int status,
                               std::string_view content_range) {
  std::string text = "answer";
  for (const std::string_view part : {question.instance, question.nonce, question.target})
    text.append("\n").append(part);
  text.append("\n").append(std::to_string(status)).append("\n").append(content_range);
  return HmacSha256Hex(token, text);
}

}  // namespace shoal::data
