// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <iceoryx_hoofs/log/logmanager.hpp>
#include <iceoryx_posh/popo/publisher.hpp>
#include <iceoryx_posh/popo/subscriber.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>
#include <thread>
#include <utility>

#include "bench/burst_packaged_peers.h"

namespace penstock::bench {
namespace {

struct Question {
  std::array<std::uint8_t, kQuestionBytes> bytes;
};
struct Answer {
  std::array<std::uint8_t, kAnswerBytes> bytes;
};

iox::capro::ServiceDescription described(const char* what) {
  return {"penstock", "bench", iox::capro::IdString_t(iox::cxx::TruncateToCapacity, what)};
}

/// The newest sample is always taken: one is under way at a time.
iox::popo::SubscriberOptions from_now_on() {
  iox::popo::SubscriberOptions options;
  options.queueCapacity = 2;
  options.historyRequest = 0;
  return options;
}

volatile std::sig_atomic_t is_told_to_end = 0;

/// Ends as an application has to: RouDi aborts at its own end when one of its applications was
/// killed, and leaves 200 MB in /dev/shm.
void answer_until_told() {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  iox::runtime::PoshRuntime::initRuntime("penstock-bench-answers");
  std::signal(SIGTERM, [](int) { is_told_to_end = 1; });
  {
    iox::popo::Publisher<Answer> answers(described("answer"));
    iox::popo::Subscriber<Question> questions(described("question"), from_now_on());
    while (is_told_to_end == 0) {
      questions.take().and_then([&](const auto& question) {
        answers.loan().and_then([&](auto& answer) {
          answer->bytes[0] = answer_of(question->bytes[0]);
          answer.publish();
        });
      });
    }
  }
  std::exit(0);  // The runtime is a static of the library, which tells RouDi of its end.
}

void run_roudi() {
  // Without a core of its own: it works when something connects, not when something is sent.
  leave_core();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  ::execlp("iox-roudi", "iox-roudi", "--log-level", "off", "--monitoring-mode", "off", nullptr);
}

/// Outlives this process's runtime.
Result<void> ensure_roudi() {
  static const auto roudi = Child::start(run_roudi, SIGTERM);
  if (!roudi) return std::unexpected(roudi.error());
  return {};
}

class IceoryxAsker final : public Asker {
 public:
  explicit IceoryxAsker(std::unique_ptr<Child> child) : child_(std::move(child)) {}

  bool is_connected() const {
    return questions_.hasSubscribers() &&
           answers_.getSubscriptionState() == iox::SubscribeState::SUBSCRIBED;
  }

  Result<void> ask() override {
    const std::uint8_t value = ++round_;
    questions_.loan().and_then([&](auto& question) {
      question->bytes[0] = value;
      question.publish();
    });
    const TimePoint until = Clock::system().now() + std::chrono::seconds(1);
    std::uint8_t got = 0;
    bool is_there = false;
    for (std::uint32_t polls = 1; !is_there; ++polls) {
      answers_.take().and_then([&](const auto& answer) {
        got = answer->bytes[0];
        is_there = true;
      });
      if (polls % 4096 == 0 && Clock::system().now() > until) {
        return fail(ErrorKind::kDeadline, "iceoryx");
      }
    }
    if (got != answer_of(value)) return fail(ErrorKind::kCorrupt, "iceoryx");
    return {};
  }

 private:
  std::unique_ptr<Child> child_;
  iox::popo::Publisher<Question> questions_{described("question")};
  iox::popo::Subscriber<Answer> answers_{described("answer"), from_now_on()};
  std::uint8_t round_ = 0;
};

}  // namespace

Result<AskerPtr> make_iceoryx() {
  iox::log::LogManager::GetLogManager().SetDefaultLogLevel(iox::log::LogLevel::kOff,
                                                           iox::log::LogLevelOutput::kHideLogLevel);
  // Waits for RouDi, which is not its child to end.
  auto child = Child::start(answer_until_told, SIGTERM);
  if (!child) return std::unexpected(child.error());
  PENSTOCK_TRY(ensure_roudi());
  iox::runtime::PoshRuntime::initRuntime("penstock-bench-asks");
  auto asker = std::make_unique<IceoryxAsker>(std::move(*child));
  const TimePoint until = Clock::system().now() + std::chrono::seconds(20);
  while (!asker->is_connected()) {
    if (Clock::system().now() > until) {
      return fail(ErrorKind::kDevice, "iceoryx: no connection; does iox-roudi start?");
    }
    std::this_thread::yield();
  }
  return asker;
}

}  // namespace penstock::bench
