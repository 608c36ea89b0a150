// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/burst_session.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/output_pool.h"
#include "penstock/burst/remote_model.h"
#include "penstock/burst/shared_copy.h"

namespace penstock {
namespace {

/// Callers that may wait for a burst, for each burst.
constexpr std::size_t kWaitersPerLane = 16;
/// Room for an output of which nothing is known yet.
constexpr std::size_t kFirstRoom = 64 * 1024;
constexpr std::size_t kMostStaging = 8;

bool decides(DataType type) {
  return type == DataType::kBool || type == DataType::kInt32 || type == DataType::kInt64;
}

/// Bytes of the largest tensor of a spec; nothing where a dimension is open.
std::optional<std::size_t> fixed_size(const TensorSpec& spec) {
  Shape shape;
  for (const Dimension& dim : spec.dims) {
    if (!dim.is_fixed()) return std::nullopt;
    shape.push_back(dim.minimum);
  }
  const auto size = byte_size(spec.type, shape);
  return size ? std::optional(*size) : std::nullopt;
}

bool same_specs(const std::vector<TensorSpec>& a, const std::vector<TensorSpec>& b) {
  const auto same_dim = [](const Dimension& x, const Dimension& y) {
    return x.minimum == y.minimum && x.maximum == y.maximum && x.symbol == y.symbol;
  };
  return std::ranges::equal(a, b, [&](const TensorSpec& x, const TensorSpec& y) {
    return x.name == y.name && x.type == y.type && std::ranges::equal(x.dims, y.dims, same_dim);
  });
}

ErrorKind kind_of(BurstFault fault) {
  switch (fault) {
    case BurstFault::kLate:
      return ErrorKind::kDeadline;
    case BurstFault::kInvalid:
    case BurstFault::kTooLong:
      return ErrorKind::kInvalidArgument;
    default:
      return ErrorKind::kDevice;
  }
}

ErrorKind kind_of(ErrorStatus status) {
  switch (status) {
    case ErrorStatus::kInvalidArgument:
      return ErrorKind::kInvalidArgument;
    case ErrorStatus::kMissedDeadlineTransient:
    case ErrorStatus::kMissedDeadlinePersistent:
      return ErrorKind::kDeadline;
    case ErrorStatus::kResourceExhaustedTransient:
    case ErrorStatus::kResourceExhaustedPersistent:
      return ErrorKind::kExhausted;
    default:
      return ErrorKind::kDevice;
  }
}

}  // namespace

/// The bursts, and who waits for one.
class BurstSession::Lanes {
 public:
  Lanes(DevicePtr device, BurstSessionOptions burst, const SessionOptions& options)
      : device_(std::move(device)),
        burst_(std::move(burst)),
        options_(options),
        clock_(options.clock != nullptr ? options.clock : &Clock::system()),
        budget_(std::make_shared<OutputBudget>(options.output_budget)),
        random_(burst_.jitter_seed),
        lanes_(std::size_t(std::max(1, options.concurrent_runs))) {}

  Result<void> open();
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  void interrupt();

 private:
  struct Lane {
    std::shared_ptr<BurstClient> client;
    std::shared_ptr<OutputPool> pool;
    bool is_taken = false;
    std::vector<std::size_t> room;  ///< That each output got last.
  };

  std::unexpected<Error> failed(ErrorKind kind, const std::string& why) const {
    return fail(kind, str_format("burst '{}': {}", burst_.name, why));
  }
  Result<void> connect(Lane& lane);
  Result<Lane*> take_lane(Deadline deadline);
  Result<void> connect_anew(Lane& lane);
  Result<void> open_again(Lane& lane);
  void back_off();
  bool await_server(const Error& error, Deadline deadline);
  void give_back(Lane& lane, bool is_lost);
  Result<std::vector<Tensor>> run_once(std::span<const Tensor> inputs, Deadline deadline);
  Result<std::vector<Tensor>> run_in(Lane& lane, std::span<const Tensor> inputs, Deadline deadline);
  Result<BurstClient::Argument> argument_of(const Tensor& tensor,
                                            std::vector<std::shared_ptr<SharedFile>>& staged);
  Result<std::shared_ptr<SharedFile>> staging(std::size_t size);
  Result<std::vector<Tensor>> tensors_of(const BurstResult& result,
                                         std::vector<std::shared_ptr<OutputPool::Loan>> loans);

  const DevicePtr device_;
  const BurstSessionOptions burst_;
  const SessionOptions options_;
  Clock* const clock_;
  const std::shared_ptr<OutputBudget> budget_;
  std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;

  std::mutex connecting_;  // Before mutex_. Whoever uses model_.
  std::shared_ptr<BurstModel> model_;

  std::mutex mutex_;
  std::condition_variable free_;
  std::mt19937 random_;
  std::vector<Lane> lanes_;
  std::size_t waiting_ = 0;
  std::atomic<bool> is_interrupted_{false};
  bool is_lost_ = false;
  bool is_told_ = false;
  Nanoseconds backoff_{0};
  TimePoint not_before_{};

  std::mutex staging_mutex_;
  std::list<std::shared_ptr<SharedFile>> staging_;
};

Result<void> BurstSession::Lanes::open() {
  auto model = burst_.open();
  if (!model) return std::unexpected(std::move(model).error());
  const std::string& hash = (*model)->artefact_hash();
  if (!burst_.artefact_hash.empty() && hash != burst_.artefact_hash) {
    return failed(ErrorKind::kInvalidArgument,
                  str_format("it serves another model: its artefact is {}, and {} is expected",
                             hash.empty() ? "not told" : hash, burst_.artefact_hash));
  }
  if (model_ == nullptr) {
    inputs_ = (*model)->inputs();
    outputs_ = (*model)->outputs();
  } else if (!same_specs(inputs_, (*model)->inputs()) ||
             !same_specs(outputs_, (*model)->outputs())) {
    return failed(ErrorKind::kInvalidArgument, "it serves a model of another shape than before");
  }
  model_ = std::move(*model);
  return {};
}

Result<void> BurstSession::Lanes::connect(Lane& lane) {
  auto client = BurstClient::create(model_, {.poll_window = burst_.poll_window,
                                             .service_poll_window = burst_.poll_window,
                                             .execution_limit = options_.run_limit,
                                             .clock = clock_});
  if (!client) return failed(client.error().kind(), client.error().message());
  std::shared_ptr<BurstClient> old;  // Goes without the lock: it joins its threads.
  {
    const std::lock_guard lock(mutex_);
    old = std::exchange(lane.client, std::move(*client));
  }
  lane.pool = std::make_shared<OutputPool>(budget_);
  lane.room.clear();
  for (const TensorSpec& spec : outputs_)
    lane.room.push_back(fixed_size(spec).value_or(kFirstRoom));
  return {};
}

/// A burst that nobody uses, connected. Waits for one, in no particular order.
Result<BurstSession::Lanes::Lane*> BurstSession::Lanes::take_lane(Deadline deadline) {
  std::unique_lock lock(mutex_);
  // One that still has a late execution is the last choice: it refuses until that is back.
  const auto is_late = [](const Lane& lane) {
    return lane.client != nullptr && lane.client->is_alive() && lane.client->is_late();
  };
  const auto find = [&] {
    const auto best = std::ranges::find_if(
        lanes_, [&](const Lane& lane) { return !lane.is_taken && !is_late(lane); });
    if (best != lanes_.end()) return best;
    return std::ranges::find_if(lanes_, [](const Lane& lane) { return !lane.is_taken; });
  };
  if (find() == lanes_.end()) {
    if (waiting_ >= kWaitersPerLane * lanes_.size()) {
      return failed(ErrorKind::kExhausted, str_format("{} runs wait for it already", waiting_));
    }
    ++waiting_;
    const bool came = clock_->wait_until(lock, free_, deadline.at(),
                                         [&] { return is_interrupted_ || find() != lanes_.end(); });
    --waiting_;
    if (!came) return failed(ErrorKind::kDeadline, "no burst was free by the run's limit");
  }
  if (is_interrupted_) return failed(ErrorKind::kCancelled, "the session was interrupted");
  Lane& lane = *find();
  lane.is_taken = true;
  if (lane.client != nullptr && lane.client->is_alive()) return &lane;
  // A server that accepts and says nothing takes its time: not under the lock, which interrupt()
  // and other lanes take.
  lock.unlock();
  auto connected = connect_anew(lane);
  if (connected) return &lane;
  give_back(lane, false);
  return std::unexpected(std::move(connected).error());
}

/// Of a lane that the caller has taken, and whose burst is over or has not begun. One at a time.
Result<void> BurstSession::Lanes::connect_anew(Lane& lane) {
  const std::lock_guard connecting(connecting_);
  if (lane.client != nullptr) PENSTOCK_TRY(open_again(lane));
  if (auto connected = connect(lane); !connected) {
    const std::lock_guard lock(mutex_);
    if (is_lost_) back_off();
    return connected;
  }
  const std::lock_guard lock(mutex_);
  if (is_interrupted_) lane.client->interrupt();
  if (is_lost_) log("burst").warn("'{}' is there again", burst_.name);
  is_lost_ = false;
  is_told_ = false;
  backoff_ = Nanoseconds(0);
  return {};
}

Result<void> BurstSession::Lanes::open_again(Lane& lane) {
  if (!burst_.reconnect) return failed(ErrorKind::kDevice, "the server is gone");
  lane.pool.reset();
  {
    const std::lock_guard lock(mutex_);
    is_lost_ = true;
    if (clock_->now() < not_before_) return failed(ErrorKind::kDevice, "the server is gone");
  }
  auto opened = open();
  if (opened) return {};
  const std::lock_guard lock(mutex_);
  back_off();
  if (opened.error().kind() == ErrorKind::kInvalidArgument) return opened;
  return failed(ErrorKind::kDevice, "the server is gone: " + opened.error().message());
}

/// Under the lock.
void BurstSession::Lanes::back_off() {
  backoff_ = std::clamp(2 * backoff_, burst_.first_backoff, burst_.last_backoff);
  const auto jitter = std::uniform_int_distribution<std::int64_t>(0, backoff_.count() / 2)(random_);
  not_before_ = clock_->now() + backoff_ / 2 + Nanoseconds(jitter);
}

void BurstSession::Lanes::give_back(Lane& lane, bool is_lost) {
  const std::lock_guard lock(mutex_);
  is_lost_ |= is_lost;
  lane.is_taken = false;
  free_.notify_one();
}

Result<std::vector<Tensor>> BurstSession::Lanes::run(std::span<const Tensor> inputs) {
  const Deadline deadline = Deadline::after(*clock_, options_.run_limit);
  std::vector<const Tensor*> in_order;
  if (inputs.size() != inputs_.size()) {
    return failed(ErrorKind::kInvalidArgument,
                  str_format("{} inputs instead of {}", inputs.size(), inputs_.size()));
  }
  std::vector<Tensor> sorted;
  for (const TensorSpec& spec : inputs_) {
    const auto found = std::ranges::find(inputs, spec.name, &Tensor::name);
    if (found == inputs.end()) {
      return failed(ErrorKind::kInvalidArgument, str_format("input '{}' is missing", spec.name));
    }
    if (auto checked = check(*found, spec, device_->id()); !checked) {
      return failed(checked.error().kind(), checked.error().message());
    }
    // Device work ends before another process reads its result.
    PENSTOCK_TRY(found->ready.wait(deadline, *clock_));
    sorted.push_back(*found);
  }
  while (true) {
    auto outputs = run_once(sorted, deadline);
    if (outputs || !await_server(outputs.error(), deadline)) return outputs;
  }
}

Result<std::vector<Tensor>> BurstSession::Lanes::run_once(std::span<const Tensor> inputs,
                                                          Deadline deadline) {
  auto lane = take_lane(deadline);
  if (!lane) return std::unexpected(std::move(lane).error());
  auto outputs = run_in(**lane, inputs, deadline);
  give_back(**lane, !outputs && !(*lane)->client->is_alive());
  return outputs;
}

/// False: `error` is final.
bool BurstSession::Lanes::await_server(const Error& error, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!burst_.reconnect || !is_lost_ || is_interrupted_) return false;
  if (error.kind() == ErrorKind::kInvalidArgument || deadline.passed(*clock_)) return false;
  if (!std::exchange(is_told_, true) && burst_.on_lost) {
    lock.unlock();
    burst_.on_lost(error.message() + "; runs wait until it is there again");
    lock.lock();
  }
  const TimePoint until = std::min(not_before_, deadline.at());
  clock_->wait_until(lock, free_, until, [&] { return is_interrupted_ || clock_->now() >= until; });
  return !is_interrupted_ && !deadline.passed(*clock_);
}

Result<std::shared_ptr<SharedFile>> BurstSession::Lanes::staging(std::size_t size) {
  {
    const std::lock_guard lock(staging_mutex_);
    for (auto it = staging_.begin(); it != staging_.end(); ++it) {
      if ((*it)->size() < size || (*it)->size() > 2 * size + 8192) continue;
      auto file = std::move(*it);
      staging_.erase(it);
      return file;
    }
  }
  return SharedFile::create(std::max<std::size_t>(size, 1), MapAccess::kRead);
}

Result<BurstClient::Argument> BurstSession::Lanes::argument_of(
    const Tensor& tensor, std::vector<std::shared_ptr<SharedFile>>& staged) {
  if (tensor.data.size > std::numeric_limits<std::uint32_t>::max() ||
      tensor.data.offset > std::numeric_limits<std::uint32_t>::max()) {
    return failed(ErrorKind::kInvalidArgument,
                  str_format("input '{}' is larger than 4 GiB", tensor.name));
  }
  BurstClient::Argument argument{.memory = tensor.data.storage->shared_file(),
                                 .offset = static_cast<std::uint32_t>(tensor.data.offset),
                                 .length = static_cast<std::uint32_t>(tensor.data.size)};
  for (const std::int64_t dim : tensor.shape) {
    argument.dimensions.push_back(static_cast<std::uint32_t>(dim));
  }
  const bool is_aligned = tensor.data.offset % size_of(tensor.type) == 0;
  if (argument.memory != nullptr && is_aligned) return argument;
  auto file = staging(tensor.data.size);
  if (!file) return std::unexpected(std::move(file).error());
  const auto bytes =
      tensor.data.storage->host_bytes().subspan(tensor.data.offset, tensor.data.size);
  std::memcpy((*file)->bytes().data(), bytes.data(), bytes.size());
  device_->ledger().record(CopyClass::kTensor, "burst/staging", bytes.size());
  staged.push_back(*file);
  argument.memory = std::move(*file);
  argument.offset = 0;
  return argument;
}

Result<std::vector<Tensor>> BurstSession::Lanes::run_in(Lane& lane, std::span<const Tensor> inputs,
                                                        Deadline deadline) {
  BurstClient::Execution execution{.inputs = {}, .outputs = {}, .deadline = deadline};
  std::vector<std::shared_ptr<SharedFile>> staged;
  for (const Tensor& input : inputs) {
    auto argument = argument_of(input, staged);
    if (!argument) return std::unexpected(std::move(argument).error());
    execution.inputs.push_back(std::move(*argument));
  }
  // The second time with the room that the first has asked for.
  for (int round = 0;; ++round) {
    std::vector<std::shared_ptr<OutputPool::Loan>> loans;
    execution.outputs.clear();
    for (const std::size_t room : lane.room) {
      auto loan = lane.pool->take(room);
      if (!loan) return failed(loan.error().kind(), loan.error().message());
      execution.outputs.push_back({.memory = (*loan)->file(),
                                   .offset = 0,
                                   .length = static_cast<std::uint32_t>(room),
                                   .dimensions = {}});
      loans.push_back(std::move(*loan));
    }
    auto done = lane.client->execute(execution);
    if (!done) {
      if (done.error().was_sent) {
        for (const auto& loan : loans) loan->spoil();
      }
      return failed(is_interrupted_ ? ErrorKind::kCancelled : kind_of(done.error().fault),
                    done.error().message);
    }
    if (done->result.status == ErrorStatus::kOutputInsufficientSize && round == 0 &&
        done->result.shapes.size() == lane.room.size()) {
      for (std::size_t i = 0; i < lane.room.size(); ++i) {
        if (done->result.shapes[i].is_sufficient) continue;
        Shape shape(done->result.shapes[i].dimensions.begin(),
                    done->result.shapes[i].dimensions.end());
        const auto size = byte_size(outputs_[i].type, shape);
        if (!size || *size > std::min<std::size_t>(options_.output_budget,
                                                   std::numeric_limits<std::uint32_t>::max())) {
          return failed(ErrorKind::kExhausted,
                        str_format("output '{}' of {} is over the output budget", outputs_[i].name,
                                   to_string(shape)));
        }
        lane.room[i] = std::max(lane.room[i], *size);
      }
      continue;
    }
    if (done->result.status != ErrorStatus::kNone) {
      return failed(kind_of(done->result.status),
                    str_format("the server answers with status {}; its log says why",
                               static_cast<int>(done->result.status)));
    }
    if (!staged.empty()) {
      std::list<std::shared_ptr<SharedFile>> dropped;
      const std::lock_guard lock(staging_mutex_);
      for (auto& file : staged) staging_.push_back(std::move(file));
      while (staging_.size() > kMostStaging) {
        dropped.splice(dropped.end(), staging_, staging_.begin());
      }
    }
    return tensors_of(done->result, std::move(loans));
  }
}

Result<std::vector<Tensor>> BurstSession::Lanes::tensors_of(
    const BurstResult& result, std::vector<std::shared_ptr<OutputPool::Loan>> loans) {
  if (result.shapes.size() != outputs_.size()) {
    return failed(ErrorKind::kDevice, "the server tells no shapes of its outputs");
  }
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Shape shape(result.shapes[i].dimensions.begin(), result.shapes[i].dimensions.end());
    const auto size = byte_size(outputs_[i].type, shape);
    if (!size || *size > loans[i]->size()) {
      return failed(ErrorKind::kDevice, "the server tells shapes that have no room");
    }
    StoragePtr storage = std::move(loans[i]);
    if (decides(outputs_[i].type)) {
      auto own = device_->allocate(*size);
      if (!own) return std::unexpected(std::move(own).error());
      copy_from_shared((*own)->host_bytes().data(), storage->host_bytes().data(), *size);
      device_->ledger().record(CopyClass::kTensor, "burst/integers", *size);
      storage = std::move(*own);
    }
    tensors.push_back({.name = outputs_[i].name,
                       .type = outputs_[i].type,
                       .shape = std::move(shape),
                       .data = {.storage = std::move(storage), .offset = 0, .size = *size},
                       .ready = {}});
  }
  return tensors;
}

void BurstSession::Lanes::interrupt() {
  const std::lock_guard lock(mutex_);
  is_interrupted_ = true;
  for (const Lane& lane : lanes_) {
    if (lane.client != nullptr) lane.client->interrupt();
  }
  free_.notify_all();
}

BurstSession::BurstSession(std::shared_ptr<Lanes> lanes) : lanes_(std::move(lanes)) {}
BurstSession::~BurstSession() = default;

Result<std::shared_ptr<Session>> BurstSession::open(DevicePtr device, BurstSessionOptions burst,
                                                    const SessionOptions& options) {
  if (device->id().kind != DeviceKind::kCpu) {
    return fail(ErrorKind::kUnsupported, str_format("burst '{}': device '{}'; only cpu's memory "
                                                    "crosses so far",
                                                    burst.name, to_string(device->id())));
  }
  auto lanes = std::make_shared<Lanes>(std::move(device), std::move(burst), options);
  PENSTOCK_TRY(lanes->open());
  return std::shared_ptr<Session>(new BurstSession(std::move(lanes)));
}

Result<std::shared_ptr<Session>> BurstSession::connect(const BurstAddress& address,
                                                       DevicePtr device, BurstSessionOptions burst,
                                                       const SessionOptions& options) {
  if (burst.name.empty()) burst.name = address.path.string();
  burst.open = [address]() -> Result<std::shared_ptr<BurstModel>> {
    auto model = RemoteModel::connect(address.path, address.model);
    if (!model) return std::unexpected(std::move(model).error());
    return std::move(*model);
  };
  return open(std::move(device), std::move(burst), options);
}

const std::vector<TensorSpec>& BurstSession::inputs() const { return lanes_->inputs(); }
const std::vector<TensorSpec>& BurstSession::outputs() const { return lanes_->outputs(); }
Result<std::vector<Tensor>> BurstSession::run(std::span<const Tensor> inputs) {
  return lanes_->run(inputs);
}
void BurstSession::interrupt() { lanes_->interrupt(); }

}  // namespace penstock
