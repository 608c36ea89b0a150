// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 100) return str_format("{} s", whole);
  if (whole < 6000) return str_format("{} min {} s", whole / 60, whole % 60);
  return str_format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string progress_line(const ProgressState& state, int width) {
  const double seconds = std::chrono::duration<double>(state.running).count();
  const double rate = seconds > 0 ? double(state.frames) / seconds : 0;
  std::string text = str_format("{} frames {:.1f} frames/s", state.frames, rate);
  if (state.done >= 0) {
    const double done = std::clamp(state.done, 0.0, 1.0);
    std::string numbers = str_format("{:>3.0f} % {}", done * 100, text);
    if (done > 0) numbers += str_format(" {} left", duration_text(seconds / done - seconds));
    const int room = width - int(numbers.size()) - 3;
    if (room >= 10) {
      const int bar = std::min(room, 30);
      const int filled = int(std::lround(done * bar));
      text = str_format("[{}{}] {}", std::string(std::size_t(filled), '#'),
                        std::string(std::size_t(bar - filled), '-'), numbers);
    } else {
      text = std::move(numbers);
    }
  }
  if (int(text.size()) > width) text.resize(std::size_t(std::max(width, 0)));
  return text;
}

Progress::Progress(std::function<void(std::string_view)> write, bool terminal, int width,
                   Clock& clock)
    : write_(std::move(write)),
      terminal_(terminal),
      width_(width),
      clock_(clock),
      shown_(clock.now()) {}

void Progress::update(const ProgressState& state) {
  const TimePoint now = clock_.now();
  const Nanoseconds interval =
      terminal_ ? Nanoseconds(Milliseconds(200)) : Nanoseconds(std::chrono::seconds(10));
  if (now - shown_ < interval) return;
  shown_ = now;
  const std::string line = progress_line(state, width_);
  if (terminal_) {
    write_("\r\x1b[2K" + line);
    visible_ = true;
  } else {
    write_(line + "\n");
  }
}

void Progress::clear() {
  if (visible_) write_("\r\x1b[2K");
  visible_ = false;
}

}  // namespace penstock
