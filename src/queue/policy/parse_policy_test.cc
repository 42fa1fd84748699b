#include "queue/policy/parse_policy.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>

#include "base/file.h"
#include "base/output_file.h"

namespace shoal::queue {
namespace {

constexpr char kGood[] = R"(default_queue: vision
flavors:
  a100: {engine: kubernetes, labels: {gpu: a100}}
  spot: {spot: true}
queues:
  research: {quota: {a100: {gpu: 8, memory: 1Ti}}}
  vision:
    parent: research
    weight: 2
    quota: {a100: {gpu: {nominal: 4, borrow: 2, lend: 1}, cpu: 1.5}}
    per_user: {jobs: 3, gpu: 2}
  speech: research
maintenance:
  power: {from: 2026-12-24T18:00:00Z, until: 2026-12-25T06:00:00Z, flavors: a100}
fairness: {half_life: 12h}
requeue: {first: 5s, most: 10m}
)";

std::string Errors(const std::string& text) {
  const Result<Policy> policy = ParsePolicy(text, "p.yaml");
  return policy.ok() ? "" : policy.status().message();
}

TEST(ParsePolicy, ReadsEveryPart) {
  const Result<Policy> parsed = ParsePolicy(kGood, "p.yaml");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_EQ(parsed->queues.size(), 3u);
  const QueueSpec& vision = parsed->queues[1];
  EXPECT_EQ(vision.parent, "research");
  EXPECT_EQ(vision.weight, 2);
  EXPECT_EQ(vision.quota.at("a100")[2].nominal, 4000);
  EXPECT_EQ(vision.quota.at("a100")[2].borrow, 2000);
  EXPECT_EQ(vision.quota.at("a100")[2].lend, 1000);
  EXPECT_EQ(vision.quota.at("a100")[0].nominal, 1500);
  EXPECT_EQ(vision.per_user.jobs, 3);
  EXPECT_EQ(parsed->queues[0].quota.at("a100")[1].nominal, int64_t{1} << 30);
  EXPECT_EQ(parsed->queues[2].parent, "research");
  EXPECT_TRUE(parsed->flavors[1].spot);
  EXPECT_EQ(parsed->windows[0].until - parsed->windows[0].from, std::chrono::hours(12));
  EXPECT_EQ(parsed->windows[0].from, Millis(1798135200000));
  EXPECT_EQ(parsed->usage_half_life, std::chrono::hours(12));
}

TEST(ParsePolicy, MistakesNameTheirPlaceAndWhatWasMeant) {
  EXPECT_EQ(Errors(""), "p.yaml:1:1: got nothing, expected a policy with flavors and queues");
  EXPECT_EQ(Errors("flavours: {a: {}}\nqueues: {default: {}}\n"),
            "p.yaml:1:1: got the unknown field 'flavours'; did you mean 'flavors'?\n"
            "p.yaml:1:1: flavors: got none, expected at least one kind of machines, such as "
            "{local: {}}");
  EXPECT_EQ(Errors("flavors: {a: {}}\nqueues:\n  default: {quota: {b: {gpu: 1}}}\n"),
            "p.yaml:3:21: queues.default.quota.b: got 'b', expected one of the file's flavors: a");
  EXPECT_EQ(Errors("flavors: {a: {}}\nqueues:\n  default: {parent: reserch}\n  research: {}\n"),
            "p.yaml:3:21: queues.default.parent: got 'reserch', expected a queue of this file; did "
            "you mean 'research'?");
  EXPECT_EQ(Errors("flavors: {a: {}}\nqueues:\n  default: {quota: {a: {gpu: -1}}}\n"),
            "p.yaml:3:30: queues.default.quota.a.gpu.nominal: got '-1', expected a number from 0 "
            "to 1000000000");
  EXPECT_EQ(
      Errors("flavors: {a: {}}\nqueues:\n  default: {quota: {a: {gpu: {nominal: 0, borrow: "
             "0}}}, parent: top}\n  top: {}\n"),
      "p.yaml:3:25: queues.default.quota.a.gpu: got nominal 0 and borrow 0, so that no job of "
      "the queue could ever start; leave the flavor out, or use `mode: hold`");
}

TEST(ParsePolicy, CyclesAndOrphansAreRefused) {
  EXPECT_EQ(
      Errors("flavors: {a: {}}\nqueues:\n  default: {}\n  x: {parent: z}\n  y: {parent: x}\n"
             "  z: {parent: y}\n"),
      "p.yaml:4:15: queues.x.parent: got the cycle x → z → y → x, expected a tree; remove one "
      "`parent`");
  EXPECT_EQ(Errors("flavors: {a: {}}\nqueues:\n  default: {parent: default}\n"),
            "p.yaml:3:21: queues.default.parent: got the cycle default → default, expected a tree; "
            "remove one `parent`");
}

TEST(ParsePolicy, TheDefaultQueueTakesJobs) {
  EXPECT_EQ(Errors("default_queue: top\nflavors: {a: {}}\nqueues: {top: {}, low: top}\n"),
            "p.yaml:1:16: default_queue: got 'top', which has queues below it, expected one that "
            "takes jobs: low");
  EXPECT_EQ(Errors("flavors: {a: {}}\nqueues: {low: {}}\n"),
            "p.yaml:1:1: default_queue: there is no queue 'default' for jobs that name none, "
            "expected the name of one of: low");
}

TEST(ParsePolicy, TheReferenceInTheDocumentIsCurrent) {
  const std::string path = SHOAL_SOURCE_DIR "/docs/queue.md";
  Result<std::string> page = ReadFile(path, size_t{1} << 20);
  ASSERT_TRUE(page.ok());
  const std::string begin = "<!-- fields -->\n";
  const size_t from = page->find(begin) + begin.size();
  const size_t until = page->find("<!-- end of fields -->");
  ASSERT_NE(until, std::string::npos);
  if (std::getenv("SHOAL_REGENERATE") != nullptr) {
    const std::string text = page->substr(0, from) + PolicyReference() + page->substr(until);
    ASSERT_TRUE(WriteOutputFile(path, text).ok());
    return;
  }
  EXPECT_EQ(page->substr(from, until - from), PolicyReference());
}

TEST(ParsePolicy, TheExamplesOfTheDocumentArePolicies) {
  Result<std::string> page = ReadFile(SHOAL_SOURCE_DIR "/docs/queue.md", size_t{1} << 20);
  ASSERT_TRUE(page.ok());
  int examples = 0;
  const std::string fence = "```yaml\n";
  for (size_t at = 0; (at = page->find(fence, at)) != std::string::npos; ++examples) {
    at += fence.size();
    const Result<Policy> policy =
        ParsePolicy(page->substr(at, page->find("```", at) - at), "queue.md");
    EXPECT_TRUE(policy.ok()) << policy.status().message();
  }
  EXPECT_EQ(examples, 2);
}

// Damaged files give errors, never a crash or a policy that the scheduler cannot use.
TEST(ParsePolicy, SurvivesDamagedFiles) {
  EXPECT_TRUE(rc::check([] {
    std::string text = kGood;
    const int edits = *rc::gen::inRange(1, 6);
    for (int i = 0; i < edits; ++i) {
      const auto at = *rc::gen::inRange<size_t>(0, text.size());
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          text[at] = *rc::gen::elementOf(std::string(" \n:{}-,0x9a"));
          break;
        case 1:
          text.erase(at, *rc::gen::inRange<size_t>(1, 20));
          break;
        default:
          text.insert(at, text.substr(*rc::gen::inRange<size_t>(0, text.size()), 15));
      }
    }
    const Result<Policy> policy = ParsePolicy(text, "p.yaml");
    RC_ASSERT(policy.ok() || policy.status().code() == Code::kInvalidArgument);
  }));
}

}  // namespace
}  // namespace shoal::queue
