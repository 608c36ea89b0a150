// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a hostile peer does to a live queue: it writes counters, elements and the event
// word between the calls of this side, which must stay within the ring (heap memory, watched by
// AddressSanitizer), return, and never say that more is there than the queue holds.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "penstock/burst/blocking.h"
#include "penstock/burst/event_flag.h"
#include "penstock/burst/lifeline.h"
#include "penstock/burst/ring.h"
#include "penstock/burst/testing/heap_ring.h"

namespace penstock {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::uint64_t word() {
    std::uint64_t value = 0;
    const std::size_t size = std::min(bytes_.size(), sizeof value);
    std::memcpy(&value, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

class Game {
 public:
  Game(Input& input, std::size_t quantum, std::size_t elements, QueueFlavor flavor)
      : input_(input), ring_(quantum, elements), elements_(elements), items_(quantum * elements) {
    const auto writer = RingWriter::open(ring_.view(), flavor);
    const auto reader = RingReader::open(ring_.view(), flavor);
    require(writer && reader);
    writer_ = std::make_unique<RingWriter>(*writer);
    reader_ = std::make_unique<RingReader>(*reader);
  }

  void play() {
    while (!input_.empty()) move(input_.byte());
  }

 private:
  /// Mostly near what honest ends would do, where the bounds are.
  std::uint64_t counter() {
    const std::uint8_t kind = input_.byte();
    if (kind < 16) return input_.word();
    return ring_.view().quantum * (kind % (3 * elements_)) + (kind > 240 ? 1 : 0);
  }
  std::size_t count() {
    const std::uint8_t value = input_.byte();
    return value > 250 ? static_cast<std::size_t>(input_.word()) : value % (elements_ + 2);
  }
  /// As many as fit the buffer: the caller's memory is its own business.
  std::size_t sane_count() { return std::min(count(), elements_); }

  void move(std::uint8_t what) {
    switch (what % 12) {
      case 0:
        return ring_.set_read_counter(counter());
      case 1:
        return ring_.set_write_counter(counter());
      case 2:
        word_ = static_cast<std::uint32_t>(input_.word());
        return;
      case 3:
        ring_.data()[input_.byte() % ring_.view().bytes] = std::byte{input_.byte()};
        return;
      case 4:
        return require(writer_->available().value_or(0) <= elements_);
      case 5:
        return require(reader_->available().value_or(0) <= elements_);
      case 6:
        std::ignore = writer_->write(items_.data(), sane_count());
        return;
      case 7:
        std::ignore = reader_->read(items_.data(), sane_count());
        return;
      case 8:
        return write_in_place();
      case 9:
        return read_in_place();
      case 10:
        std::ignore = read_blocking(*reader_, means_, items_.data(), sane_count(), past_, {});
        return;
      default:
        std::ignore = write_blocking(*writer_, means_, items_.data(), sane_count(), past_, {});
    }
  }

  void write_in_place() {
    const auto slots = writer_->begin(count());
    if (slots) {
      require(slots->count() <= elements_);
      std::ignore = slots->set(count(), items_.data(), sane_count());
    }
    std::ignore = writer_->commit(count());
  }

  void read_in_place() {
    const auto slots = reader_->begin(count());
    if (slots) {
      require(slots->count() <= elements_);
      if (input_.byte() % 4 == 0) ring_.set_write_counter(counter());
      std::ignore = slots->get(count(), items_.data(), sane_count());
    }
    std::ignore = reader_->commit(count());
  }

  const Deadline past_{TimePoint::min()};

  Input& input_;
  testing::HeapRing ring_;
  std::size_t elements_;
  std::vector<std::byte> items_;
  std::unique_ptr<RingWriter> writer_;
  std::unique_ptr<RingReader> reader_;
  std::uint32_t word_ = 0;
  EventFlag flag_{word_};
  const Lifeline lifeline_;
  WaitMeans means_{.lifeline = &lifeline_, .flag = flag_, .clock = &Clock::system()};
};

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  if (size > 4096) return 0;
  Input input({data, size});
  constexpr std::array<std::size_t, 6> kQuanta = {1, 2, 3, 8, 24, 40};
  const std::size_t quantum = kQuanta.at(input.byte() % kQuanta.size());
  const std::size_t elements = 1 + input.byte() % 33;
  const auto flavor =
      input.byte() % 2 == 0 ? QueueFlavor::kSynchronised : QueueFlavor::kUnsynchronised;
  Game(input, quantum, elements, flavor).play();
  return 0;
}
