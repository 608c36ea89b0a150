// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <boost/date_time/posix_time/posix_time_types.hpp>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <string>
#include <utility>

#include "bench/burst_packaged_peers.h"

namespace penstock::bench {
namespace {

using boost::interprocess::message_queue;
namespace time = boost::posix_time;

/// A name in shared memory that goes with this.
class Name {
 public:
  explicit Name(const char* what)
      : name_("penstock-bench-" + std::to_string(::getpid()) + what), owner_(::getpid()) {}
  ~Name() {
    if (::getpid() == owner_) message_queue::remove(name_.c_str());
  }
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;
  const char* get() const { return name_.c_str(); }

 private:
  const std::string name_;
  const pid_t owner_;
};

class BoostAsker final : public Asker {
 public:
  BoostAsker()
      : questions_(boost::interprocess::create_only, question_name_.get(), 4, kQuestionBytes),
        answers_(boost::interprocess::create_only, answer_name_.get(), 4, kAnswerBytes) {}

  Result<void> start() {
    auto child = Child::start([this] { answer(); });
    if (!child) return std::unexpected(child.error());
    child_ = std::move(*child);
    return {};
  }

  Result<void> ask() override {
    std::array<std::uint8_t, kQuestionBytes> question{};
    std::array<std::uint8_t, kAnswerBytes> answer{};
    question[0] = ++round_;
    questions_.send(question.data(), question.size(), 0);
    message_queue::size_type size = 0;
    unsigned priority = 0;
    const auto until = time::microsec_clock::universal_time() + time::seconds(1);
    if (!answers_.timed_receive(answer.data(), answer.size(), size, priority, until)) {
      return fail(ErrorKind::kDeadline, "boost-mq");
    }
    if (answer[0] != answer_of(question[0])) return fail(ErrorKind::kCorrupt, "boost-mq");
    return {};
  }

 private:
  void answer() {
    std::array<std::uint8_t, kQuestionBytes> question{};
    std::array<std::uint8_t, kAnswerBytes> answer{};
    while (true) {
      message_queue::size_type size = 0;
      unsigned priority = 0;
      questions_.receive(question.data(), question.size(), size, priority);
      answer[0] = answer_of(question[0]);
      answers_.send(answer.data(), answer.size(), 0);
    }
  }

  const Name question_name_{"-questions"};
  const Name answer_name_{"-answers"};
  message_queue questions_;
  message_queue answers_;
  std::unique_ptr<Child> child_;
  std::uint8_t round_ = 0;
};

}  // namespace

Result<AskerPtr> make_boost_mq() {
  auto asker = std::make_unique<BoostAsker>();
  if (auto started = asker->start(); !started) return std::unexpected(started.error());
  return asker;
}

}  // namespace penstock::bench
