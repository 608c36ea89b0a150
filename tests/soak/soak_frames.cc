// SPDX-License-Identifier: Apache-2.0
//
// soak frames: 100,000 H.264 frames through the whole job. After a warm-up of a tenth, resident
// memory may grow by less than 2 MB, and descriptors and threads may not change. Ends in a line for
// docs/soak.md.
#include <gst/gst.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "gst/penanalysis_meta.h"
#include "gst/register.h"
#include "penstock/base/str_format.h"
#include "penstock/model/testing/test_models.h"
#include "penstock/pipeline/run_job.h"
#include "tests/soak/footprint.h"
#include "tests/soak/soak_main.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kFrames = 100000;
constexpr long kAllowedGrowthKiB = 2048;
constexpr int kSide = 192;

/// Encoded and decoded again, so that the frames are a decoder's; the pattern moves by `seed`.
GstElement* make_source(std::uint64_t frames, std::uint32_t seed) {
  return gst_parse_bin_from_description(
      str_format("videotestsrc num-buffers={} pattern=ball motion=sweep animation-mode=frames "
                 "background-color={} ! "
                 "video/x-raw,format=I420,width={},height={},framerate=25/1 ! "
                 "openh264enc multi-thread=1 complexity=low ! h264parse ! avdec_h264 max-threads=1",
                 frames, 0xff000000u | (seed & 0x3f3f3f), kSide, kSide)
          .c_str(),
      TRUE, nullptr);
}

SoakVerdict soak(const SoakFlags& flags) {
  const auto frames =
      std::max<std::uint64_t>(200, std::uint64_t(double(kFrames) * flags.percent / 100));
  gst_init(nullptr, nullptr);
  if (!gst::register_elements(nullptr)) return {.ok = false, .told = "no peninfer"};
  const fs::path folder = fs::temp_directory_path() / str_format("soak-frames-{}", ::getpid());
  RunOptions options;
  options.source.kind = SourceKind::kElement;
  options.source.text = "soak";
  options.source.make_element = [=] { return make_source(frames, flags.seed); };
  options.model = model_testing::write_model_folder(
      model_testing::make_square_finder_nanodet(kSide), folder / "model");
  options.json = folder / "out.jsonl";
  options.read_frame = [](GstBuffer* buffer) -> std::optional<FrameReading> {
    const gst::Analysis* analysis = gst::read_analysis(buffer);
    if (analysis == nullptr) return std::nullopt;
    return FrameReading{&analysis->result, &analysis->times};
  };
  const std::uint64_t warm = std::max<std::uint64_t>(frames / 10, 100);
  const std::uint64_t step = std::max<std::uint64_t>((frames - warm) / 100, 1);
  Footprint base;
  Footprint worst;
  bool constant = true;
  options.on_frame = [&](const FrameResult& frame) {
    if (frame.frame == warm) base = worst = footprint();
    if (frame.frame <= warm || (frame.frame - warm) % step != 0) return;
    const Footprint now = footprint();
    worst.rss_kib = std::max(worst.rss_kib, now.rss_kib);
    if (now.fds != base.fds || now.threads != base.threads) {
      if (constant) {
        std::printf("frame %llu: fds %ld -> %ld, threads %ld -> %ld\n",
                    (unsigned long long)frame.frame, base.fds, now.fds, base.threads, now.threads);
      }
      constant = false;
    }
  };
  const RunOutcome outcome = run(options);
  std::error_code ec;
  fs::remove_all(folder, ec);
  if (outcome.error) return {.ok = false, .told = outcome.error->message()};
  const long growth = worst.rss_kib - base.rss_kib;
  const bool complete = outcome.summary.frames == frames;
  return {.ok = complete && constant && growth < kAllowedGrowthKiB,
          .told = str_format("{} frames, RSS {} KiB after warm-up, grew by at most {} KiB, {} fds, "
                             "{} threads{}",
                             outcome.summary.frames, base.rss_kib, growth, base.fds, base.threads,
                             constant ? ", both constant" : ", NOT constant")};
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::soak_main(
      argc, argv,
      {.name = "frames", .what = "100,000 frames through the main job", .soak = penstock::soak});
}
