// SPDX-License-Identifier: Apache-2.0
//
// 10^9 items through a queue between two processes, in each flavour: every item of a synchronised
// queue arrives in order; of an unsynchronised one every item is read whole and in order, or told
// of as lost.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/burst/fd_socket.h"
#include "penstock/burst/message_queue.h"

namespace penstock {
namespace {

constexpr double kItems = 1e9;
constexpr std::size_t kElements = 1024;
using SyncQueue = MessageQueue<std::uint64_t, QueueFlavor::kSynchronised>;
using UnsyncQueue = MessageQueue<std::uint64_t, QueueFlavor::kUnsynchronised>;

/// Item i: a number that tells i and that no mixture of two others is.
std::uint64_t item_at(std::uint64_t index) { return (index + 1) * 0x9e3779b97f4a7c15U; }
constexpr std::uint64_t kInverse = 0xf1de83e19937733dU;  // Of the factor, modulo 2^64.
static_assert(kInverse * 0x9e3779b97f4a7c15U == 1);
std::uint64_t index_of(std::uint64_t item) { return item * kInverse - 1; }

Deadline soon() { return Deadline::after(Clock::system(), std::chrono::seconds(30)); }

/// What the reading process found.
struct Tally {
  std::uint64_t read = 0, lost = 0, overflows = 0;
  std::array<char, 104> complaint = {};
  void complain(const std::string& why) {
    std::copy_n(why.begin(), std::min(why.size(), complaint.size() - 1), complaint.begin());
  }
};

Tally read_all(SyncQueue::Reader& reader, std::uint64_t count, std::uint32_t seed) {
  Tally tally;
  std::minstd_rand random(seed);
  std::vector<std::uint64_t> items(kElements);
  while (tally.read < count) {
    const auto portion =
        std::min<std::uint64_t>(1 + random() % (kElements / 2), count - tally.read);
    const auto wanted = std::span(items).first(portion);
    if (const auto got = reader.read_blocking(wanted, soon()); !got) {
      tally.complain(str_format("item {}: {}", tally.read, to_string(got.error())));
      return tally;
    }
    for (const std::uint64_t item : wanted) {
      if (item != item_at(tally.read)) {
        tally.complain(str_format("item {} instead of {}", index_of(item), tally.read));
        return tally;
      }
      ++tally.read;
    }
  }
  return tally;
}

Tally follow_all(UnsyncQueue::Reader& reader, std::uint64_t count, std::uint32_t seed) {
  Tally tally;
  std::minstd_rand random(seed);
  std::vector<std::uint64_t> items(kElements);
  std::uint64_t next = 0;
  bool may_skip = false;
  while (next < count) {
    const auto there = reader.wait_for_items(1, soon());
    auto wanted =
        std::span(items).first(std::min<std::size_t>(there.value_or(0), 1 + random() % kElements));
    const auto got = there ? reader.read(wanted) : std::unexpected(there.error());
    if (!got && got.error() == QueueError::kOverflow) {
      may_skip = true;
      ++tally.overflows;
      continue;
    }
    if (!got) {
      tally.complain(str_format("item {}: {}", next, to_string(got.error())));
      return tally;
    }
    for (const std::uint64_t item : wanted) {
      const std::uint64_t index = index_of(item);
      if (index >= count || (index != next && !(may_skip && index > next))) {
        tally.complain(str_format("item {} instead of {}", index, next));
        return tally;
      }
      tally.lost += index - next;
      may_skip = false;
      next = index + 1;
      ++tally.read;
    }
  }
  return tally;
}

Result<void, QueueError> write_portion(SyncQueue::Writer& writer,
                                       std::span<const std::uint64_t> items) {
  return writer.write_blocking(items, soon());
}

Result<void, QueueError> write_portion(UnsyncQueue::Writer& writer,
                                       std::span<const std::uint64_t> items) {
  // Now and then the reader gets a chance to keep up.
  if (items.size() % 8 == 0) std::this_thread::yield();
  return writer.write(items);
}

template <typename Writer>
std::string write_all(Writer& writer, std::uint64_t count, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::vector<std::uint64_t> items(kElements);
  std::uint64_t next = 0;
  while (next < count) {
    const auto portion = std::min<std::uint64_t>(1 + random() % (kElements / 2), count - next);
    for (std::size_t i = 0; i < portion; ++i) items[i] = item_at(next + i);
    if (const auto written = write_portion(writer, std::span(items).first(portion)); !written) {
      return str_format("writing item {}: {}", next, to_string(written.error()));
    }
    next += portion;
  }
  return {};
}

Tally read_flavour(SyncQueue::Reader& reader, std::uint64_t count, std::uint32_t seed) {
  return read_all(reader, count, seed);
}
Tally read_flavour(UnsyncQueue::Reader& reader, std::uint64_t count, std::uint32_t seed) {
  return follow_all(reader, count, seed);
}

/// The reading process: the descriptor comes over the socket, the tally goes back.
template <typename Queue>
[[noreturn]] void be_the_reader(const FdSocket& socket, std::uint64_t count, std::uint32_t seed) {
  auto message = socket.receive(soon()).value();
  auto reader =
      Queue::attach_reader(decode_descriptor(message.bytes, std::move(message.files)).value())
          .value();
  socket.send(std::as_bytes(std::span("attached", 8)), {}, soon()).value();
  const Tally tally = read_flavour(reader, count, seed);
  const bool sent = socket.send(std::as_bytes(std::span(&tally, 1)), {}, soon()).has_value();
  ::_exit(sent ? 0 : 1);
}

struct Run {
  std::string complaint;
  Tally tally;
  double seconds = 0;
};

template <typename Queue>
Run run(const typename Queue::Options& options, std::uint64_t count, std::uint32_t seed) {
  auto [ours, theirs] = FdSocket::pair().value();
  const pid_t child = ::fork();
  if (child < 0) return {.complaint = "fork failed", .tally = {}};
  if (child == 0) be_the_reader<Queue>(theirs, count, seed + 1);
  theirs = FdSocket(UniqueFd());
  const auto started = std::chrono::steady_clock::now();
  auto writer = Queue::create_writer(options).value();
  const QueueDescriptor descriptor = writer.describe().value();
  const std::array<int, 1> files = {descriptor.files.at(0).get()};
  ours.send(encode(descriptor), files, soon()).value();
  (void)ours.receive(soon()).value();
  writer.settle().value();
  Run done{.complaint = write_all(writer, count, seed), .tally = {}};
  if (const auto message = ours.receive(soon()); !message) {
    done.complaint += message.error().message();
  } else if (message->bytes.size() != sizeof done.tally) {
    done.complaint += "no tally";
  } else {
    std::copy_n(message->bytes.begin(), sizeof done.tally,
                std::as_writable_bytes(std::span(&done.tally, 1)).begin());
    done.complaint += done.tally.complaint.data();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  done.seconds = took.count();
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0 && done.complaint.empty()) done.complaint = "the reading process failed";
  return done;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  ::gmtime_r(&now, &date);
  std::array<char, 16> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &date)};
}

/// Prints one run's line; true when it was as it should be.
bool tell(const char* name, const Run& run, std::uint64_t count, std::uint32_t seed) {
  const bool complete = run.tally.read + run.tally.lost == count;
  const bool good = run.complaint.empty() && complete;
  std::printf(
      "| %s | queue, %s | %s: %llu items, %llu read, %llu lost in %llu overflows, %.1f s, seed "
      "%u%s%s |\n",
      today().c_str(), name, good ? "ok" : "FAILED", static_cast<unsigned long long>(count),
      static_cast<unsigned long long>(run.tally.read),
      static_cast<unsigned long long>(run.tally.lost),
      static_cast<unsigned long long>(run.tally.overflows), run.seconds, seed,
      run.complaint.empty() ? "" : ": ", run.complaint.c_str());
  std::fflush(stdout);  // The next child must not print it again.
  return good;
}

int soak(double percent, std::uint32_t seed) {
  const auto count = static_cast<std::uint64_t>(kItems * percent / 100);
  std::printf("soak queue: %llu items a flavour, seed %u\n", static_cast<unsigned long long>(count),
              seed);
  std::fflush(stdout);
  bool good = true;
  const auto sync = run<SyncQueue>({.elements = kElements, .event_flag = true}, count, seed);
  good = tell("synchronised", sync, count, seed) && sync.tally.lost == 0 && good;
  const auto unsync = run<UnsyncQueue>({.elements = kElements}, count, seed);
  good = tell("unsynchronised", unsync, count, seed) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  CLI::App app("10^9 items through a queue between two processes", "soak_queue");
  double percent = 100;
  std::optional<std::uint32_t> seed;
  app.add_option("--percent", percent, "How much of it to run")->check(CLI::Range(0.0001, 1000.0));
  app.add_option("--seed", seed, "Repeat an earlier run");
  CLI11_PARSE(app, argc, argv);
  return penstock::soak(percent, seed ? *seed : std::random_device()());
}
