// SPDX-License-Identifier: Apache-2.0
//
// The client's process of a burst's process tests:
//
//   burst_peer SOCKET execute POLLS       executions without end, for who kills it; both ends
//                                         sleep (0) or poll first
//   burst_peer SOCKET free SEED           kFreeingExecutions of files that are freed, used again
//   and
//                                         let go of at random; at the end it has freed all, and
//                                         stays
//   burst_peer SOCKET scribble SEED       bursts of a client that knows the protocol and keeps no
//                                         rule of it: live rings, counters, flags, memories, and
//                                         messages with files, all at random
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/control_messages.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/datum_file.h"
#include "penstock/burst/event_flag.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/remote_model.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/testing/freeing.h"
#include "penstock/burst/unix_address.h"
#include "penstock/memory/shared_file.h"

namespace penstock {
namespace {

Deadline in(Nanoseconds time) { return Deadline::after(Clock::system(), time); }

std::shared_ptr<SharedFile> file(std::size_t size, MapAccess peers) {
  auto made = SharedFile::create(size, peers);
  if (!made) std::exit(2);
  return *made;
}

int execute_without_end(const std::string& socket, bool polls) {
  auto model = RemoteModel::connect(socket, "small");
  if (!model) return 2;
  const Nanoseconds window = polls ? kMaxPollWindow : Nanoseconds(0);
  auto client = BurstClient::create(*model, {.poll_window = window, .service_poll_window = window});
  if (!client) return 2;
  const auto values = file(400, MapAccess::kRead);
  const auto places = file(16, MapAccess::kRead);
  const auto out = file(1024, MapAccess::kReadWrite);
  while (true) {
    const auto done = (*client)->execute(
        {.inputs = {{.memory = values, .offset = 0, .length = 400, .dimensions = {100}},
                    {.memory = places, .offset = 0, .length = 16}},
         .outputs = {{.memory = out, .offset = 64, .length = 400},
                     {.memory = out, .offset = 0, .length = 8}},
         .deadline = in(std::chrono::seconds(20))});
    if (!done) return 3;
  }
}

/// Three files of an execution are three of these; some are freed in the middle of it by a thread.
class Freer {
 public:
  Freer(BurstClient& client, unsigned seed) : client_(client), random_(seed) {
    for (std::size_t i = 0; i < kFiles; ++i) {
      values_.push_back(new_values());
      places_.push_back(new_places());
      outs_.push_back(file(1024, MapAccess::kReadWrite));
    }
  }

  bool execute() {
    const std::size_t value = pick(), place = pick(), out = pick();
    std::memset(outs_[out]->bytes().data(), 0, 1024);
    // Of the others, while this one runs.
    std::thread frees([&, some = pick(), other = pick()] {
      if (some != value) client_.free_memory(*values_[some]);
      if (other != place) places_[other] = nullptr;
    });
    const auto done = client_.execute(
        {.inputs = {{.memory = values_[value], .offset = 0, .length = 400, .dimensions = {100}},
                    {.memory = places_[place], .offset = 0, .length = 16}},
         .outputs = {{.memory = outs_[out], .offset = 64, .length = 400},
                     {.memory = outs_[out], .offset = 0, .length = 8}},
         .deadline = in(std::chrono::seconds(20))});
    frees.join();
    return done && done->result.status == ErrorStatus::kNone &&
           is_right(*values_[value], *places_[place], *outs_[out]);
  }

  void free_some() {
    for (auto& place : places_) {
      if (place == nullptr) place = new_places();
    }
    for (auto* files : {&values_, &places_}) {
      for (auto& one : *files) {
        // Twice is once, and so is what the service has never seen.
        for (std::uint64_t times = up_to(4); times > 1; --times) client_.free_memory(*one);
      }
    }
    if (up_to(2) == 0) values_[pick()] = new_values();
    // What a service has written to is shown to nobody else.
    if (up_to(2) == 0) {
      auto& out = outs_[pick()];
      if (up_to(2) == 0) client_.free_memory(*out);
      out = file(1024, MapAccess::kReadWrite);
    }
    for (auto& out : outs_) {
      if (up_to(8) != 0) continue;
      client_.free_memory(*out);
      out = file(1024, MapAccess::kReadWrite);
    }
  }

  void free_all() {
    std::vector<std::shared_ptr<SharedFile>> all = std::move(values_);
    all.insert(all.end(), places_.begin(), places_.end());
    all.insert(all.end(), outs_.begin(), outs_.end());
    places_.clear();
    outs_.clear();
    std::ranges::shuffle(all, random_);
    for (auto& one : all) {
      if (up_to(2) == 0) client_.free_memory(*one);
      one = nullptr;
    }
  }

 private:
  static constexpr std::size_t kFiles = 5;

  std::uint64_t up_to(std::uint64_t end) { return random_() % end; }
  std::size_t pick() { return up_to(kFiles); }

  std::shared_ptr<SharedFile> new_values() {
    auto made = file(400, MapAccess::kRead);
    const auto first = static_cast<float>(up_to(1000));
    for (std::size_t i = 0; i < 100; ++i) {
      const float value = first + static_cast<float>(i);
      std::memcpy(made->bytes().data() + 4 * i, &value, 4);
    }
    return made;
  }
  std::shared_ptr<SharedFile> new_places() {
    auto made = file(16, MapAccess::kRead);
    const std::array<std::int64_t, 2> places{std::int64_t(up_to(1000)), std::int64_t(up_to(1000))};
    std::memcpy(made->bytes().data(), places.data(), sizeof places);
    return made;
  }
  static bool is_right(const SharedFile& values, const SharedFile& places, const SharedFile& out) {
    for (std::size_t i = 0; i < 100; ++i) {
      float value = 0, twice = 0;
      std::memcpy(&value, values.bytes().data() + 4 * i, 4);
      std::memcpy(&twice, out.bytes().data() + 64 + 4 * i, 4);
      if (twice != 2 * value) return false;
    }
    std::array<std::int64_t, 2> two{};
    std::int64_t sum = 0;
    std::memcpy(two.data(), places.bytes().data(), sizeof two);
    std::memcpy(&sum, out.bytes().data(), 8);
    return sum == two[0] + two[1];
  }

  BurstClient& client_;
  std::mt19937 random_;
  std::vector<std::shared_ptr<SharedFile>> values_, places_, outs_;
};

int free_in_any_order(const std::string& socket, unsigned seed) {
  auto model = RemoteModel::connect(socket, "small");
  if (!model) return 2;
  auto client = BurstClient::create(*model);
  if (!client) return 2;
  Freer freer(**client, seed);
  for (int i = 0; i < testing::kFreeingExecutions; ++i) {
    if (!freer.execute()) return 3;
    freer.free_some();
  }
  freer.free_all();
  if ((*client)->slots() != 0) return 4;
  while (true) ::pause();
}

/// A queue as raw memory.
class RawQueue {
 public:
  explicit RawQueue(QueueDescriptor& queue) : grantors_(queue.grantors) {
    auto mapping =
        SharedMapping::map(queue.files.at(0), grantors_.back().offset + 4, MapAccess::kReadWrite);
    if (!mapping) std::exit(2);
    mapping_ = std::move(*mapping);
  }
  std::span<std::byte> bytes() const { return {mapping_.data(), mapping_.size()}; }
  void put(QueuePart part, std::uint64_t value) const {
    std::memcpy(at(part), &value, sizeof value);
  }
  void flag(std::uint32_t value) const {
    std::memcpy(at(QueuePart::kFlag), &value, sizeof value);
    EventFlag(*reinterpret_cast<std::uint32_t*>(at(QueuePart::kFlag))).wake(EventFlag::kNotEmpty);
  }
  /// As an honest writer would.
  void write(std::span<const std::byte> packet) {
    const std::uint64_t size = grantors_.at(2).extent;
    for (const std::byte byte : packet) at(QueuePart::kRing)[written_++ % size] = byte;
    put(QueuePart::kWriteCounter, written_);
    flag(0);
  }

 private:
  std::byte* at(QueuePart part) const {
    return mapping_.data() + grantors_.at(static_cast<std::size_t>(part)).offset;
  }
  std::vector<Grantor> grantors_;
  SharedMapping mapping_;
  std::uint64_t written_ = 0;
};

class Scribbler {
 public:
  Scribbler(std::string socket, unsigned seed) : path_(std::move(socket)), random_(seed) {}

  void one_burst() {
    memories_.clear();
    UniqueFd connected(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto address = UnixAddress::of(path_);
    if (::connect(connected.get(), address->get(), address->size()) != 0) return;
    const FdSocket socket(std::move(connected));
    auto requests = MessageQueue<FmqRequestDatum, QueueFlavor::kSynchronised>::create_writer(
        {kBurstChannelLength, true});
    auto results = MessageQueue<FmqResultDatum, QueueFlavor::kSynchronised>::create_reader(
        {kBurstChannelLength, true});
    auto there = requests->describe();
    auto back = results->describe();
    RawQueue raw_requests(*there);
    const RawQueue raw_results(*back);
    if (chance(8)) return;  // Connected, and gone.
    ControlMessage configure{.id = 1,
                             .body = ConfigureMessage{.model = "small",
                                                      .poll_window = Nanoseconds(up_to(100'000)),
                                                      .requests = std::move(*there),
                                                      .results = std::move(*back)}};
    if (!send_control(socket, configure, in(std::chrono::seconds(1)))) return;
    if (!chance(8) && !receive_control(socket, in(std::chrono::seconds(1)))) return;
    for (int step = 0; step < 40; ++step) {
      scribble(chance(2) ? raw_requests : raw_results);
      if (chance(2)) ask(raw_requests);
      if (chance(3)) say_something(socket);
      answer(socket);
      if (!memories_.empty()) fill(memories_.at(up_to(memories_.size())).bytes(), 64);
    }
  }

 private:
  struct Mapped {
    SharedMapping mapping;
    std::span<std::byte> bytes() const { return {mapping.data(), mapping.size()}; }
  };

  std::uint64_t up_to(std::uint64_t end) { return random_() % std::max<std::uint64_t>(end, 1); }
  bool chance(unsigned one_in) { return up_to(one_in) == 0; }

  void fill(std::span<std::byte> bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      bytes[up_to(bytes.size())] = static_cast<std::byte>(random_());
    }
  }

  void scribble(const RawQueue& queue) {
    switch (up_to(8)) {
      case 0:
        queue.put(chance(2) ? QueuePart::kReadCounter : QueuePart::kWriteCounter,
                  chance(2) ? random_() : up_to(2000) * 24);
        break;
      case 1:
        fill(queue.bytes(), 16);
        break;
      case 2:
        queue.flag(static_cast<std::uint32_t>(random_()));
        break;
      case 3:
        fill(queue.bytes().subspan(16), 512);
        break;
      default:
        break;
    }
  }

  void ask(RawQueue& queue) {
    BurstRequest request{.inputs = {{false, {0, 0, 400}, {100}}, {false, {1, 0, 16}, {}}},
                         .outputs = {{false, {2, 64, 400}, {}}, {false, {2, 0, 8}, {}}},
                         .slots = {0, 1, 2},
                         .measure = MeasureTiming::kOn};
    for (RequestArgument* argument :
         {&request.inputs[0], &request.inputs[1], &request.outputs[0], &request.outputs[1]}) {
      if (!chance(8)) continue;
      argument->location = {.pool = static_cast<std::uint32_t>(up_to(5)),
                            .offset = static_cast<std::uint32_t>(random_()),
                            .length = static_cast<std::uint32_t>(up_to(5000))};
    }
    if (chance(6)) request.slots = {static_cast<std::int32_t>(random_()), 0, 1};
    auto datums = serialise(request);
    if (chance(4)) fill(std::as_writable_bytes(std::span(datums)), 2);
    queue.write(std::as_bytes(std::span(datums)));
  }

  BurstMemory some_memory() {
    BurstMemory memory{.kind = MemoryKind::kSharedFile,
                       .access = chance(2) ? MemoryAccess::kRead : MemoryAccess::kReadWrite,
                       .offset = chance(6) ? random_() : 0,
                       .size = chance(6) ? random_() : 4096,
                       .file = UniqueFd(::memfd_create("hostile", MFD_ALLOW_SEALING))};
    static_cast<void>(::ftruncate(memory.file.get(), chance(6) ? 0 : 8192));
    auto mapping = SharedMapping::map(memory.file, 4096, MapAccess::kReadWrite);
    int seals = 0;
    if (!chance(6)) seals |= F_SEAL_SHRINK | F_SEAL_GROW;
    if (memory.access == MemoryAccess::kRead && !chance(6)) seals |= F_SEAL_FUTURE_WRITE;
    static_cast<void>(::fcntl(memory.file.get(), F_ADD_SEALS, seals));
    // What may be an empty file must not be touched by this process either.
    if (mapping && (seals & F_SEAL_SHRINK) != 0 && ::lseek(memory.file.get(), 0, SEEK_END) > 0) {
      memories_.push_back({std::move(*mapping)});
    }
    if (chance(4)) {
      static_cast<void>(
          ::fallocate(memory.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    }
    return memory;
  }

  void answer(const FdSocket& socket) {
    while (auto message = receive_control(socket, in(std::chrono::microseconds(200)))) {
      const auto* wanted = std::get_if<GetMemoriesMessage>(&message->body);
      if (wanted == nullptr || chance(12)) continue;
      MemoriesMessage memories{.status = ErrorStatus::kNone, .memories = {}};
      const std::size_t count = chance(12) ? up_to(16) : wanted->slots.size();
      for (std::size_t i = 0; i < count; ++i) memories.memories.push_back(some_memory());
      const auto id = chance(12) ? static_cast<std::uint32_t>(random_()) : message->id;
      say(socket, {.id = id, .body = std::move(memories)});
    }
  }

  void say_something(const FdSocket& socket) {
    ControlMessage message{.id = static_cast<std::uint32_t>(up_to(4)),
                           .body = FreeMemoryMessage{static_cast<std::int32_t>(up_to(4))}};
    if (chance(4)) {
      std::vector<FmqRequestDatum> datums(1 + up_to(2000));
      fill(std::as_writable_bytes(std::span(datums)), 64);
      auto packet = write_datum_file(std::as_bytes(std::span(datums)));
      if (packet) message.body = ExecuteMessage{std::move(*packet)};
    }
    if (!chance(24)) {
      say(socket, message);
      return;
    }
    // As many files as a message can have, and bytes that are none.
    std::vector<std::byte> bytes(1 + up_to(256));
    fill(bytes, 64);
    const std::vector<int> files(up_to(FdSocket::kMaxFiles + 1), socket.fd());
    is_told_ = socket.send(bytes, files, soon()).has_value();
  }

  /// Whether it arrives is the server's affair.
  void say(const FdSocket& socket, const ControlMessage& message) {
    is_told_ = send_control(socket, message, soon()).has_value();
  }

  static Deadline soon() { return in(Milliseconds(100)); }

  const std::string path_;
  std::mt19937_64 random_;
  std::vector<Mapped> memories_;
  bool is_told_ = false;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const std::string what = argv[2];
  const auto seed = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
  if (what == "execute") return penstock::execute_without_end(argv[1], seed != 0);
  if (what == "free") return penstock::free_in_any_order(argv[1], seed);
  if (what != "scribble") return 64;
  penstock::Scribbler scribbler(argv[1], seed);
  for (int i = 0; i < 60; ++i) scribbler.one_burst();
  return 0;
}
