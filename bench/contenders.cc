// SPDX-License-Identifier: Apache-2.0
#include "bench/contenders.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gst/gst.h>
#include <onnxruntime_c_api.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <vector>

#include "bench/limit_run.h"
#include "bench/playing.h"
#include "gst/gst_ptr.h"
#include "gst/penanalysis_meta.h"
#include "gst/register.h"
#include "penstock/base/str_format.h"
#include "penstock/base/usable_cores.h"
#include "penstock/pipeline/run_job.h"

extern char** environ;

namespace penstock::bench {

Nanoseconds cpu_time() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + Nanoseconds(used.tv_nsec);
}

namespace {

void link_to(GstElement*, GstPad* pad, gpointer sink) {
  if (!gst_pad_is_linked(GST_PAD(sink))) gst_pad_link(pad, GST_PAD(sink));
}

}  // namespace

GstElement* make_clip_decoder(const Task& task) {
  auto source = parse_source(task.clip.string());
  auto decoder = source ? make_decoder(*source) : std::unexpected(source.error());
  if (!decoder) {
    std::fprintf(stderr, "%s\n", decoder.error().message().c_str());
    return nullptr;
  }
  GstElement* bin = gst_bin_new(nullptr);
  GstElement* cut = gst_element_factory_make("identity", "cut");
  g_object_set(cut, "eos-after", task.frames + 1, nullptr);
  gst_bin_add_many(GST_BIN(bin), *decoder, cut, nullptr);
  GstPad* sink = gst_element_get_static_pad(cut, "sink");
  g_signal_connect_data(
      *decoder, "pad-added", G_CALLBACK(link_to), sink,
      [](gpointer pad, GClosure*) { gst_object_unref(pad); }, GConnectFlags(0));
  GstPad* src = gst_element_get_static_pad(cut, "src");
  gst_element_add_pad(bin, gst_ghost_pad_new("src", src));
  gst_object_unref(src);
  return bin;
}

namespace {

Result<Effort> perform_ours(const Task& task, bool one_worker) {
  if (!gst::register_elements(nullptr)) return fail(ErrorKind::kInternal, "no peninfer");
  RunOptions options;
  options.source.kind = SourceKind::kElement;
  options.source.text = task.clip.string();
  options.source.make_element = [&task] { return make_clip_decoder(task); };
  options.model = task.manifest;
  options.json = task.scratch / "ours.jsonl";
  if (one_worker) options.properties.emplace_back("workers", "1");
  if (!task.library.empty()) {
    options.properties.emplace_back("engine-library", task.library.string());
  }
  options.read_frame = [](GstBuffer* buffer) -> std::optional<FrameReading> {
    const gst::Analysis* analysis = gst::read_analysis(buffer);
    if (analysis == nullptr) return std::nullopt;
    return FrameReading{&analysis->result, &analysis->times};
  };
  const RunOutcome outcome = run(options);
  if (outcome.error) return std::unexpected(*outcome.error);
  return Effort{.frames = int(outcome.summary.frames),
                .wall = outcome.summary.running,
                .cpu = outcome.summary.cpu};
}

std::string join_dims(const TensorSpec& spec) {
  std::string text;
  for (const Dimension& dim : spec.dims) {
    text += str_format("{}{}", text.empty() ? "" : ",", dim.is_fixed() ? dim.minimum : -1);
  }
  return text;
}

/// The model under another name with the .modelinfo that onnxinference needs.
Result<std::filesystem::path> lay_out_peer_model(const Task& task, const Manifest& manifest) {
  std::filesystem::path model = task.scratch / "peer.onnx";
  std::error_code ec;
  std::filesystem::remove(model, ec);
  std::filesystem::create_symlink(manifest.artefact, model, ec);
  if (ec) return fail(ErrorKind::kIo, "cannot lay out the peer's model: " + ec.message());
  std::ofstream info(model.string() + ".modelinfo");
  info << "[modelinfo]\nversion=1.0\ngroup-id=" << manifest.name << "\n";
  const PreprocessSpec& pre = manifest.preprocess;
  for (const TensorSpec& spec : manifest.inputs) {
    info << str_format("\n[{}]\nid={}\ntype=float32\ndims={}\ndir=input\nranges=", spec.name,
                       spec.name, join_dims(spec));
    for (int c = 0; c < 3; ++c) {
      info << str_format("{}{:.6f},{:.6f}", c == 0 ? "" : ";", -pre.mean[c] / pre.std[c],
                         (255 * pre.scale - pre.mean[c]) / pre.std[c]);
    }
    info << "\n";
  }
  for (const TensorSpec& spec : manifest.outputs) {
    info << str_format("\n[{}]\nid={}\ntype=float32\ndims={}\ndir=output\ndims-order=row-major\n",
                       spec.name, spec.name, join_dims(spec));
  }
  if (!info.flush()) return fail(ErrorKind::kIo, "cannot write the peer's .modelinfo");
  return model;
}

GstPadProbeReturn start_watch(GstPad*, GstPadProbeInfo*, gpointer watch) {
  static_cast<std::optional<Watch>*>(watch)->emplace();
  return GST_PAD_PROBE_REMOVE;
}

GstPadProbeReturn count_frame(GstPad*, GstPadProbeInfo*, gpointer count) {
  ++*static_cast<int*>(count);
  return GST_PAD_PROBE_OK;
}

Result<Effort> perform_onnxinference(const Task& task, bool queue) {
  auto manifest = load_manifest(task.manifest);
  if (!manifest) return std::unexpected(manifest.error());
  auto model = lay_out_peer_model(task, *manifest);
  if (!model) return std::unexpected(model.error());
  GError* parse_error = nullptr;
  GstElement* rest = gst_parse_bin_from_description(
      str_format("videoconvertscale name=convert ! video/x-raw,format={},width={},height={} ! {}"
                 "onnxinference name=infer optimization-level=enable-all model-file={} ! "
                 "fakesink name=end sync=false enable-last-sample=false",
                 manifest->preprocess.order == ChannelOrder::kBgr ? "BGR" : "RGB",
                 manifest->preprocess.width, manifest->preprocess.height,
                 queue ? "queue max-size-buffers=8 max-size-bytes=0 max-size-time=0 ! " : "",
                 model->string())
          .c_str(),
      TRUE, &parse_error);
  if (parse_error != nullptr) {
    Error error(ErrorKind::kUnsupported, parse_error->message);
    g_error_free(parse_error);
    return std::unexpected(std::move(error));
  }
  GstElement* decoder = make_clip_decoder(task);
  if (decoder == nullptr) return fail(ErrorKind::kUnsupported, "no decoder");
  // Watched before the pipeline, and so gone after it.
  std::optional<Watch> watch;
  int frames = 0;
  const PipelinePtr pipeline(gst_pipeline_new(nullptr));
  gst_bin_add_many(GST_BIN(pipeline.get()), decoder, rest, nullptr);
  gst_element_link(decoder, rest);
  const gst::GstPtr<GstPad> head(gst_element_get_static_pad(rest, "sink"));
  gst_pad_add_probe(head.get(), GST_PAD_PROBE_TYPE_BUFFER, start_watch, &watch, nullptr);
  const gst::GstPtr<GstElement> end(gst_bin_get_by_name(GST_BIN(rest), "end"));
  const gst::GstPtr<GstPad> tail(gst_element_get_static_pad(end.get(), "sink"));
  gst_pad_add_probe(tail.get(), GST_PAD_PROBE_TYPE_BUFFER, count_frame, &frames, nullptr);

  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  PENSTOCK_TRY(await_end(pipeline.get()));
  if (!watch) return fail(ErrorKind::kDevice, "the peer gave no frame");
  return watch->stop(frames);
}

}  // namespace

Result<Effort> perform(Contender contender, const Task& task) {
  Result<Effort> effort = fail(ErrorKind::kInternal, "no such contender");
  switch (contender) {
    case Contender::kOurs:
      effort = perform_ours(task, false);
      break;
    case Contender::kOursOneWorker:
      effort = perform_ours(task, true);
      break;
    case Contender::kLimit:
      effort = perform_limit(task, 1);
      break;
    case Contender::kOnnxInference:
      effort = perform_onnxinference(task, false);
      break;
    case Contender::kOnnxInferenceQueue:
      effort = perform_onnxinference(task, true);
      break;
  }
  if (effort && effort->frames != task.frames) {
    return fail(ErrorKind::kInternal,
                str_format("{} frames were done instead of {}", effort->frames, task.frames));
  }
  return effort;
}

std::filesystem::path library_or_default(const std::filesystem::path& library) {
  return library.empty() ? std::filesystem::path(PENSTOCK_ONNXRUNTIME_DEFAULT) : library;
}

Result<std::string> run_self(std::vector<std::string> words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(ErrorKind::kExhausted, "no pipe");
  std::vector<char*> argv{const_cast<char*>("bench")};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = -1;
  const int spawned =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  char bytes[256];
  for (ssize_t got; spawned == 0 && (got = ::read(ends[0], bytes, sizeof bytes)) > 0;) {
    text.append(bytes, std::size_t(got));
  }
  ::close(ends[0]);
  if (spawned != 0) return fail(ErrorKind::kIo, "cannot start a measuring process");
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) return fail(ErrorKind::kDevice, "the process ended badly");
  return text;
}

Result<Effort> perform_apart(Contender contender, const Task& task) {
  auto text = run_self({"--perform", std::to_string(int(contender)), task.clip.string(),
                        std::to_string(task.frames), task.manifest.string(), task.library.string(),
                        task.scratch.string()});
  long long wall = 0;
  long long cpu = 0;
  Effort effort;
  if (!text ||
      std::sscanf(text->c_str(), "effort %d %lld %lld", &effort.frames, &wall, &cpu) != 3) {
    return fail(ErrorKind::kDevice, str_format("measuring contender {} failed", int(contender)));
  }
  effort.wall = Nanoseconds(wall);
  effort.cpu = Nanoseconds(cpu);
  return effort;
}

Result<EngineLibrary> engine_apart(const std::filesystem::path& library) {
  auto text = run_self({"--engine", library.string()});
  const std::string of = library.empty() ? "onnxinference" : library.string();
  if (!text) return std::unexpected(text.error().context("asking for the ONNX Runtime of " + of));
  char version[64] = {};
  int path = 0;
  if (std::sscanf(text->c_str(), "engine %63s %n", version, &path) != 1 || path == 0) {
    return fail(ErrorKind::kUnsupported, str_format("{} has no ONNX Runtime", of));
  }
  std::string rest = text->substr(std::size_t(path));
  while (rest.ends_with('\n')) rest.pop_back();
  return EngineLibrary{.path = rest, .version = version};
}

int engine_from_arguments(int argc, char** argv) {
  if (argc != 3) return 64;
  const std::string library = argv[2];
  void* handle = nullptr;
  if (library.empty()) {
    gst_init(nullptr, nullptr);
    // The plugin brings its library along, under whatever name: a handle finds symbols in what it
    // depends on, too.
    GstPlugin* plugin = gst_plugin_load_by_name("onnx");
    const gchar* file = plugin != nullptr ? gst_plugin_get_filename(plugin) : nullptr;
    if (file != nullptr) handle = ::dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  } else {
    handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  void* symbol = handle != nullptr ? ::dlsym(handle, "OrtGetApiBase") : nullptr;
  Dl_info info{};
  if (symbol == nullptr || ::dladdr(symbol, &info) == 0) return 1;
  const auto base = reinterpret_cast<const OrtApiBase* (*)()>(symbol);
  std::printf("engine %s %s\n", base()->GetVersionString(), info.dli_fname);
  std::fflush(stdout);
  std::quick_exit(0);
}

int perform_from_arguments(int argc, char** argv) {
  if (argc != 8) return 64;
  gst_init(nullptr, nullptr);
  const Task task{.clip = argv[3],
                  .frames = std::atoi(argv[4]),
                  .manifest = argv[5],
                  .library = argv[6],
                  .scratch = argv[7]};
  auto effort = perform(Contender(std::atoi(argv[2])), task);
  if (!effort) {
    std::fprintf(stderr, "%s\n", effort.error().message().c_str());
    return 1;
  }
  std::printf("effort %d %lld %lld\n", effort->frames, (long long)effort->wall.count(),
              (long long)effort->cpu.count());
  std::fflush(stdout);
  // ONNX Runtime's and GStreamer's threads are not worth waiting for.
  std::quick_exit(0);
}

}  // namespace penstock::bench
