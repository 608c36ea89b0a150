// SPDX-License-Identifier: Apache-2.0
//
// What a service answers is checked before anybody sees it (contract X02, X05, Q04).
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/packet_channel.h"
#include "penstock/burst/result_packet.h"
#include "penstock/burst/testing/raw_burst.h"
#include "penstock/memory/shared_file.h"
#include "penstock/memory/shared_mapping.h"

namespace penstock {
namespace {

using testing::Requests;
using testing::Results;
using testing::soon;

/// values [4] float32 -> scores [1, 4] float32 and rows [0..10, 2] float32. Maps the outputs' file
/// as an honest service would, and answers each request as the test says.
class HostileModel final : public BurstModel {
 public:
  using Answer = std::function<void(Results::Writer&)>;
  explicit HostileModel(Answer answer, bool attaches = true)
      : answer_(std::move(answer)), attaches_(attaches) {}

  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  const std::string& artefact_hash() const override { return hash_; }

  ConfiguredBurst configure_burst(BurstConfiguration with) override {
    auto lifeline = std::make_shared<Lifeline>();
    auto requests = Requests::attach_reader(std::move(with.requests), {.lifeline = lifeline});
    auto results = Results::attach_writer(std::move(with.results), {.lifeline = lifeline});
    EXPECT_TRUE(requests && results);
    return {
        .status = ErrorStatus::kNone,
        .context = std::make_unique<Context>(std::move(lifeline), std::move(*requests),
                                             std::move(*results), *this, std::move(with.callback)),
        .message = {}};
  }

 private:
  class Context final : public BurstContext {
   public:
    Context(std::shared_ptr<Lifeline> lifeline, Requests::Reader requests, Results::Writer results,
            const HostileModel& model, std::shared_ptr<BurstCallback> callback)
        : lifeline_(std::move(lifeline)),
          requests_(std::move(requests)),
          results_(std::move(results)),
          thread_([this, &model, callback = std::move(callback)] {
            std::vector<SharedMapping> mapped;
            while (receive_packet(requests_, soon())) {
              // Slot 1 is the file of the outputs.
              if (model.attaches_ && mapped.empty()) mapped = map(*callback, 1);
              model.answer_(results_);
            }
          }) {}
    ~Context() override {
      lifeline_->cut(Lifeline::Cause::kStopped);
      thread_.join();
    }
    void free_memory(std::int32_t) override {}
    BurstResult execute(const BurstRequest&, Deadline) override { return {}; }

   private:
    static std::vector<SharedMapping> map(BurstCallback& callback, std::int32_t slot) {
      std::vector<SharedMapping> mapped;
      auto got = callback.get_memories(std::span(&slot, 1), soon());
      EXPECT_EQ(got.memories.size(), 1u);
      if (got.memories.empty()) return mapped;
      auto one =
          SharedMapping::map(got.memories[0].file, got.memories[0].size, MapAccess::kReadWrite);
      EXPECT_TRUE(one);
      if (one) mapped.push_back(std::move(*one));
      EXPECT_TRUE(seal_writers(got.memories[0].file));
      return mapped;
    }

    const std::shared_ptr<Lifeline> lifeline_;
    Requests::Reader requests_;
    Results::Writer results_;
    std::thread thread_;
  };

  const Answer answer_;
  const bool attaches_;
  const std::vector<TensorSpec> inputs_{
      {"values", DataType::kFloat32, TensorLayout::kAny, {Dimension::fixed(4)}}};
  const std::vector<TensorSpec> outputs_{
      {"scores",
       DataType::kFloat32,
       TensorLayout::kAny,
       {Dimension::fixed(1), Dimension::fixed(4)}},
      {"rows", DataType::kFloat32, TensorLayout::kAny, {{1, 10, "n"}, Dimension::fixed(2)}}};
  const std::string hash_;
};

/// A result that an honest service may give: scores [1, 4], rows [3, 2].
BurstResult honest() {
  return {.status = ErrorStatus::kNone,
          .shapes = {{.dimensions = {1, 4}, .is_sufficient = true},
                     {.dimensions = {3, 2}, .is_sufficient = true}},
          .timing = {}};
}

void send(Results::Writer& results, const BurstResult& result) {
  const auto packet = serialise(result);
  EXPECT_TRUE(send_packet<FmqResultDatum>(results, packet));
}

class HostileTest : public ::testing::Test {
 protected:
  void serve(HostileModel::Answer answer, bool attaches = true) {
    client_.reset();
    model_ = std::make_shared<HostileModel>(std::move(answer), attaches);
    auto client = BurstClient::create(model_);
    ASSERT_TRUE(client) << client.error().message();
    client_ = std::move(*client);
  }
  static BurstClient::Execution execution(Deadline deadline = soon()) {
    auto in = SharedFile::create(16, MapAccess::kRead);
    auto out = SharedFile::create(4096, MapAccess::kReadWrite);
    EXPECT_TRUE(in && out);
    return {
        .inputs = {{.memory = *in, .length = 16}},
        .outputs = {{.memory = *out, .length = 16}, {.memory = *out, .offset = 16, .length = 80}},
        .deadline = deadline};
  }
  /// The answer is refused, and the burst over.
  void expect_corrupt(const BurstResult& result, const std::string& says) {
    serve([result](Results::Writer& results) { send(results, result); });
    const auto done = client_->execute(execution());
    ASSERT_FALSE(done) << says;
    EXPECT_EQ(done.error().fault, BurstFault::kCorrupt);
    EXPECT_NE(done.error().message.find(says), std::string::npos) << done.error().message;
    EXPECT_TRUE(done.error().was_sent);
    EXPECT_FALSE(client_->is_alive());
    const auto next = client_->execute(execution());
    EXPECT_TRUE(!next && next.error().fault == BurstFault::kGone && !next.error().was_sent);
  }

  std::shared_ptr<HostileModel> model_;
  std::unique_ptr<BurstClient> client_;
};

using X02_Client = HostileTest;
using X05_Client = HostileTest;
using X06_Client = HostileTest;
using Q04_Client = HostileTest;

TEST_F(X05_Client, GivenAnHonestResult_WhenExecuted_ThenItIsTaken) {
  serve([](Results::Writer& results) { send(results, honest()); });
  const auto done = client_->execute(execution());
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->result, honest());
}

TEST_F(X05_Client, GivenNoRows_WhenTheirNumberIsOpen_ThenTheResultIsTaken) {
  serve([](Results::Writer& results) {
    auto result = honest();
    result.shapes[1].dimensions[0] = 0;
    send(results, result);
  });
  EXPECT_TRUE(client_->execute(execution()));
}

TEST_F(X05_Client, GivenShapesThatCanNotBe_WhenExecuted_ThenTheBurstIsOver) {
  auto result = honest();
  result.shapes.pop_back();
  expect_corrupt(result, "1 shapes of 2 outputs");
  result = honest();
  result.shapes[0].dimensions = {1, 5};
  expect_corrupt(result, "dimension 1 of output 0 is 5");
  // Who knows that there are four scores reads four.
  result = honest();
  result.shapes[0].dimensions = {1, 0};
  expect_corrupt(result, "dimension 1 of output 0 is 0");
  result = honest();
  result.shapes[1].dimensions = {3};
  expect_corrupt(result, "output 1 has 1 dimensions");
  result = honest();
  result.shapes[1].dimensions = {11, 2};
  expect_corrupt(result, "dimension 0 of output 1 is 11");
  result = honest();
  result.shapes[1].is_sufficient = false;
  expect_corrupt(result, "output 1 is there, and has no room");
}

TEST_F(X05_Client, GivenAShapeLargerThanItsPlace_WhenExecuted_ThenTheBurstIsOver) {
  serve([](Results::Writer& results) { send(results, honest()); });
  auto small = execution();
  small.outputs[1].length = 23;  // [3, 2] float32 is 24 bytes.
  const auto done = client_->execute(small);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().fault, BurstFault::kCorrupt);
}

TEST_F(X02_Client, GivenAMalformedResult_WhenExecuted_ThenTheBurstIsOver) {
  const auto whole = serialise(honest());
  for (std::size_t length = 1; length < whole.size(); ++length) {
    serve([&whole, length](Results::Writer& results) {
      EXPECT_TRUE(send_packet<FmqResultDatum>(results, std::span(whole).first(length)));
    });
    const auto done = client_->execute(execution());
    ASSERT_FALSE(done) << length;
    EXPECT_EQ(done.error().fault, BurstFault::kCorrupt);
  }
}

TEST_F(Q04_Client, GivenAnOutputThatNobodySealed_WhenExecuted_ThenItIsNotRead) {
  serve([](Results::Writer& results) { send(results, honest()); }, false);
  const auto done = client_->execute(execution());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().fault, BurstFault::kCorrupt);
}

TEST_F(X06_Client, GivenAServiceThatNeverAnswers_WhenTheDeadlinePasses_ThenOnlyThatIsWaited) {
  serve([](Results::Writer&) {});
  const auto late =
      client_->execute(execution(Deadline::after(Clock::system(), std::chrono::milliseconds(20))));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().fault, BurstFault::kLate);
  EXPECT_TRUE(late.error().was_sent);
  EXPECT_TRUE(client_->is_late());
  const auto next = client_->execute(execution());
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().fault, BurstFault::kBusy);
  EXPECT_FALSE(next.error().was_sent);
}

TEST_F(Q04_Client, GivenAResultBeforeAnyRequest_WhenOneIsToBeSent_ThenItIsNotAndTheFailureSaysSo) {
  Results::Writer* results = nullptr;
  std::latch is_free(1);  // One thread at a time writes.
  serve([&](Results::Writer& writer) {
    results = &writer;
    send(writer, honest());
    is_free.count_down();
  });
  ASSERT_TRUE(client_->execute(execution()));
  is_free.wait();
  send(*results, honest());
  const auto done = client_->execute(execution());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().fault, BurstFault::kCorrupt);
  EXPECT_FALSE(done.error().was_sent);
  EXPECT_FALSE(client_->is_alive());
}

}  // namespace
}  // namespace penstock
