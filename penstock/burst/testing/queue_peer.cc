// SPDX-License-Identifier: Apache-2.0
//
// The other process of the queue tests, without a test framework:
//
//   queue_peer ADDRESS WHAT COUNT SEED
//
// connects to the abstract Unix socket ADDRESS, takes a queue's descriptor from it (or, for what
// begins with `make-`, sends one), says "ready", does WHAT, and ends with 0 when all was as it
// should be. It has no more than what a user's program would have.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "penstock/burst/fd_socket.h"
#include "penstock/burst/testing/queue_script.h"

namespace penstock::testing {
namespace {

struct Job {
  FdSocket socket;
  std::uint64_t count;
  unsigned seed;

  QueueDescriptor take_descriptor() const {
    auto message = socket.receive(soon()).value();
    return decode_descriptor(message.bytes, std::move(message.files)).value();
  }
  void send_descriptor(const QueueDescriptor& descriptor) const {
    std::vector<int> files;
    for (const UniqueFd& file : descriptor.files) files.push_back(file.get());
    socket.send(encode(descriptor), files, soon()).value();
  }
  void say_ready() const { socket.send(std::as_bytes(std::span("ready", 5)), {}, soon()).value(); }
  /// The parent's next message, whatever it says, or its end.
  void await_parent() const { std::ignore = socket.receive(soon()); }
};

std::string read_all(const Job& job) {
  auto reader = SyncQueue::attach_reader(job.take_descriptor(), unsliced()).value();
  job.say_ready();
  return read_items(reader, job.count, job.seed);
}

std::string write_all(const Job& job) {
  auto writer = SyncQueue::attach_writer(job.take_descriptor(), unsliced()).value();
  job.say_ready();
  return write_items(writer, job.count, job.seed);
}

std::string make_and_read(const Job& job) {
  auto reader = SyncQueue::create_reader({.elements = 37, .event_flag = true}, unsliced()).value();
  job.send_descriptor(reader.describe().value());
  job.await_parent();  // Its word that it has attached.
  reader.settle().value();
  job.say_ready();
  return read_items(reader, job.count, job.seed);
}

std::string follow(const Job& job) {
  auto reader = UnsyncQueue::attach_reader(job.take_descriptor()).value();
  job.say_ready();
  return follow_items(reader, job.count - 1, job.seed);
}

/// Attaches and does nothing until killed.
std::string hold(const Job& job) {
  auto reader = SyncQueue::attach_reader(job.take_descriptor(), unsliced()).value();
  job.say_ready();
  job.await_parent();
  return {};
}

/// Lets go of the burst, but lives on.
std::string close_socket(Job& job) {
  auto reader = SyncQueue::attach_reader(job.take_descriptor(), unsliced()).value();
  job.say_ready();
  job.await_parent();  // Its word to go on.
  job.socket = FdSocket(UniqueFd());
  ::pause();
  return {};
}

/// Writes rubbish over counters, ring and event word, `count` times.
std::string scribble(const Job& job) {
  auto reader = SyncQueue::attach_reader(job.take_descriptor(), unsliced()).value();
  const RingView& ring = reader.end().memory().ring();
  job.say_ready();
  std::mt19937_64 random(job.seed);
  for (std::uint64_t i = 0; i < job.count; ++i) {
    const std::uint64_t value = random() % 3 == 0 ? random() : random() % (4 * ring.bytes);
    std::atomic_ref(*(random() % 2 == 0 ? ring.read_counter : ring.write_counter)).store(value);
    std::atomic_ref(reinterpret_cast<std::uint64_t*>(ring.data)[random() % (ring.bytes / 8)])
        .store(random());
    const EventFlag flag = reader.event_flag().value();
    flag.wake(static_cast<std::uint32_t>(random()));
    std::ignore = flag.take(static_cast<std::uint32_t>(random()) | 1);
  }
  return {};
}

FdSocket connect_to(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    std::perror("queue_peer: connect");
    std::exit(3);
  }
  return FdSocket(std::move(fd));
}

int run(const std::string& address, const std::string& what, const std::string& count,
        const std::string& seed) {
  const std::map<std::string, std::function<std::string(Job&)>> jobs = {
      {"read", read_all}, {"write", write_all},    {"make-read", make_and_read}, {"follow", follow},
      {"hold", hold},     {"close", close_socket}, {"scribble", scribble},
  };
  Job job{.socket = connect_to(address),
          .count = std::stoull(count),
          .seed = static_cast<unsigned>(std::stoul(seed))};
  const std::string complaint = jobs.at(what)(job);
  if (complaint.empty()) return 0;
  std::fprintf(stderr, "queue_peer %s: %s\n", what.c_str(), complaint.c_str());
  return 1;
}

}  // namespace
}  // namespace penstock::testing

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return penstock::testing::run(argv[1], argv[2], argv[3], argv[4]);
}
