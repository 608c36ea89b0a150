// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_summary.h"

#include <algorithm>
#include <iterator>

#include "penstock/base/printable.h"
#include "penstock/base/str_append.h"

namespace penstock {

namespace {

/// A model has one task, so of the three at most one has anything. Objects that a tracker supposes
/// are no findings.
void add_sums(std::map<std::string, double, std::less<>>& sums, const FrameResult& frame) {
  for (const Detection& object : frame.objects) {
    if (!object.predicted) ++sums[object.label];
  }
  if (!frame.classes.empty()) ++sums[frame.classes.front().label];
  for (const ClassArea& area : frame.areas) sums[area.label] += double(area.fraction);
}

void add_places(RunSummary& summary, const FrameResult& frame) {
  if (frame.zones.empty() && frame.lines.empty()) return;
  summary.lines = frame.lines;
  summary.zones.resize(frame.zones.size());
  std::map<std::string, double, std::less<>> inside;
  for (std::size_t i = 0; i < frame.zones.size(); ++i) {
    const ZoneCount& now = frame.zones[i];
    ZoneSum& zone = summary.zones[i];
    zone.last = now;
    zone.most = std::max(zone.most, now.inside);
    zone.in_frames += now.inside;
    inside[now.name] += double(now.inside);
  }
  summary.zone_counts.add(inside);
}

std::string place_lines(const RunSummary& summary) {
  std::string out;
  const double frames = double(std::max<std::uint64_t>(summary.frames, 1));
  if (!summary.zones.empty()) str_append(out, "zones\n");
  for (const ZoneSum& zone : summary.zones) {
    str_append(out, "  {:<22} {:>8.2f} a frame {:>4} at most {:>6} entered {:>6} left\n",
               printable(zone.last.name), double(zone.in_frames) / frames, zone.most,
               zone.last.entered, zone.last.left);
  }
  if (!summary.lines.empty()) str_append(out, "lines\n");
  for (const LineCount& line : summary.lines) {
    str_append(out, "  {:<22} {:>8} forwards {:>8} backwards\n", printable(line.name),
               line.forwards, line.backwards);
  }
  return out;
}

std::string findings_lines(const RunSummary& summary) {
  std::string out;
  const double frames = double(std::max<std::uint64_t>(summary.frames, 1));
  switch (subject_of(summary.task)) {
    case Subject::kObjects:
      str_append(out, "objects     {} ({:.2f} a frame)\n", summary.objects,
                 double(summary.objects) / frames);
      if (summary.tracks() > 0) str_append(out, "tracks      {}\n", summary.tracks());
      for (const auto& [label, count] : summary.largest()) {
        str_append(out, "  {:<22} {:>8.0f} {:>8.2f} a frame\n", printable(label), count,
                   count / frames);
      }
      break;
    case Subject::kClasses:
      str_append(out, "first class of a frame\n");
      for (const auto& [label, count] : summary.largest()) {
        str_append(out, "  {:<22} {:>8.0f} {:>8.1f} % of the frames\n", printable(label), count,
                   100 * count / frames);
      }
      if (summary.unclassified > 0) {
        str_append(out, "  {:<22} {:>8} {:>8.1f} % of the frames\n", "(none above threshold)",
                   summary.unclassified, 100 * double(summary.unclassified) / frames);
      }
      break;
    case Subject::kTexts:
      str_append(out, "text read   in {} frames ({:.1f} %)\n", summary.texts,
                 100 * double(summary.texts) / frames);
      break;
    case Subject::kAreas:
      str_append(out, "mean share of the picture\n");
      for (const auto& [label, sum] : summary.largest()) {
        str_append(out, "  {:<22} {:>8.2f} %\n", printable(label), 100 * sum / frames);
      }
      break;
    case Subject::kNumbers:
      if (summary.numbers > 0) str_append(out, "values      {} a frame\n", summary.numbers);
      break;
  }
  return out;
}

}  // namespace

Subject subject_of(std::string_view task) {
  if (task == "classification") return Subject::kClasses;
  if (task == "text-recognition") return Subject::kTexts;
  if (task == "semantic-segmentation") return Subject::kAreas;
  if (task == "embedding" || task == "raw") return Subject::kNumbers;
  return Subject::kObjects;
}

CountSeries::Span& CountSeries::next() {
  if (spans_.empty() || spans_.back().frames == frames_per_span_) {
    if (spans_.size() == kMaxSpans) {
      std::vector<Span> merged(kMaxSpans / 2);
      for (std::size_t i = 0; i < kMaxSpans; ++i) {
        Span& to = merged[i / 2];
        to.frames += spans_[i].frames;
        for (const auto& [label, sum] : spans_[i].sums) to.sums[label] += sum;
      }
      spans_ = std::move(merged);
      frames_per_span_ *= 2;
    }
    spans_.emplace_back();
  }
  ++spans_.back().frames;
  return spans_.back();
}

void CountSeries::add(const FrameResult& frame) { add_sums(next().sums, frame); }

void CountSeries::add(const std::map<std::string, double, std::less<>>& added) {
  Span& span = next();
  for (const auto& [label, sum] : added) span.sums[label] += sum;
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::kQueue:
      return "queue";
    case Stage::kPreprocess:
      return "preprocess";
    case Stage::kInfer:
      return "infer";
    case Stage::kDecode:
      return "decode output";
    case Stage::kElement:
      return "in element";
  }
  return "";
}

double RunSummary::frames_per_second() const {
  const double seconds = std::chrono::duration<double>(running).count();
  return seconds > 0 ? double(frames) / seconds : 0;
}

std::uint64_t RunSummary::tracks() const {
  std::uint64_t sum = 0;
  for (const auto& [name, highest] : highest_track) sum += std::uint64_t(highest);
  return sum;
}

std::vector<std::pair<std::string, double>> RunSummary::largest() const {
  std::vector<std::pair<std::string, double>> labels(sums.begin(), sums.end());
  std::ranges::stable_sort(labels, std::greater{}, [](const auto& item) { return item.second; });
  return labels;
}

void RunSummary::add(const FrameResult& frame, const StageTimes& times) {
  ++frames;
  objects += std::uint64_t(std::ranges::count(frame.objects, false,
                                              [](const auto& object) { return object.predicted; }));
  add_sums(sums, frame);
  for (const Detection& object : frame.objects) {
    if (object.track_id <= 0) continue;
    std::int64_t& highest = highest_track[frame.source];
    highest = std::max(highest, object.track_id);
  }
  if (frame.classes.empty()) ++unclassified;
  if (!frame.texts.empty()) ++texts;
  numbers = frame.embedding.size();
  for (const TensorRecord& tensor : frame.tensors) numbers += tensor.values.size();
  counts.add(frame);
  add_places(*this, frame);
  of(Stage::kQueue).record(times.queue);
  of(Stage::kPreprocess).record(times.preprocess);
  of(Stage::kInfer).record(times.infer);
  of(Stage::kDecode).record(times.decode);
}

std::string stage_rows(const std::vector<LatencyFigures>& stages) {
  if (stages.empty()) return {};
  const auto ms = [](Nanoseconds value) { return double(value.count()) / 1e6; };
  const bool one_stream = std::ranges::all_of(
      stages, [&](const LatencyFigures& row) { return row.stream == stages.front().stream; });
  std::string out;
  str_append(out, "latency of elements, ms {:>10} {:>8} {:>8}\n", "p50", "p95", "max");
  for (const LatencyFigures& row : stages) {
    const std::string name = one_stream ? row.stage : row.stage + ", " + row.stream;
    str_append(out, "  {:<23} {:>8.2f} {:>8.2f} {:>8.2f}\n", printable(name), ms(row.p50),
               ms(row.p95), ms(row.max));
  }
  return out;
}

std::string to_table(const RunSummary& summary) {
  std::string out;
  const auto ms = [](Nanoseconds value) { return double(value.count()) / 1e6; };
  const double frames = double(std::max<std::uint64_t>(summary.frames, 1));

  str_append(out, "frames      {}\n", summary.frames);
  str_append(out, "frames/s    {:.1f} over {:.2f} s, after {:.2f} s of set-up\n",
             summary.frames_per_second(), ms(summary.running) / 1e3, ms(summary.set_up) / 1e3);
  str_append(out, "CPU time    {:.2f} ms a frame, all threads\n", ms(summary.cpu) / frames);
  out += findings_lines(summary);
  out += place_lines(summary);
  str_append(out, "latency, ms {:>12} {:>8} {:>8}\n", "p50", "p95", "p99");
  for (Stage stage : kStages) {
    const LatencyHistogram& times = summary.of(stage);
    if (times.count() == 0) continue;
    str_append(out, "  {:<13} {:>8.2f} {:>8.2f} {:>8.2f}\n", to_string(stage),
               ms(times.percentile(0.5)), ms(times.percentile(0.95)), ms(times.percentile(0.99)));
  }
  out += stage_rows(summary.stages);
  str_append(out, "memory ledger, from peninfer's sink pad\n");
  for (const CopyLedger::Row& row : summary.ledger) {
    if (row.copy_class == CopyClass::kUpstream) continue;
    str_append(out, "  {:<9} {:<24} {:>8} {:>8.2f} a frame {:>12.0f} bytes a frame\n",
               to_string(row.copy_class), row.site, row.count, double(row.count) / frames,
               double(row.bytes) / frames);
  }
  const auto has_copies = [](const CopyLedger::Row& row) {
    return row.copy_class == CopyClass::kFrame && row.count > 0;
  };
  if (std::ranges::none_of(summary.ledger, has_copies)) {
    str_append(out, "  frame copies on this path: 0\n");
  }
  out += to_table(summary.outside, summary.frames);
  for (const std::string& note : summary.notes) {
    // Warnings of elements hold names out of files.
    str_append(out, "note: {}\n", printable(note));
  }
  return out;
}

}  // namespace penstock
