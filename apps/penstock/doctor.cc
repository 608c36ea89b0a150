// SPDX-License-Identifier: Apache-2.0
//
// penstock doctor: what this machine has and lacks for a run, in plain words. Exit code 0 when the
// main job can work, else 69.
#include <gst/gst.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "gst/register.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/json_writer.h"
#include "penstock/base/str_format.h"
#include "penstock/model/engine_offer.h"
#include "penstock/model/manifest.h"

namespace penstock {
namespace {

struct Flags {
  std::string models;
  std::string engine_library;
  bool json = false;
};

/// What was found, in the order of being found.
class Doctor {
 public:
  struct Finding {
    const char* area;   ///< "Processor"
    const char* state;  ///< ok, note, lacks
    std::string text;
  };

  void ok(const std::string& text) { add("ok", text); }
  void note(const std::string& text) { add("note", text); }
  void lacks(const std::string& text) { add("lacks", text); }
  void head(const char* area) { area_ = area; }
  std::ptrdiff_t missing() const {
    return std::ranges::count_if(findings_, [](const Finding& finding) {
      return std::string_view(finding.state) == "lacks";
    });
  }
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  void add(const char* state, const std::string& text) {
    findings_.push_back({.area = area_, .state = state, .text = text});
  }

  const char* area_ = "";
  std::vector<Finding> findings_;
};

void check_processor(Doctor& doctor) {
  doctor.head("Processor");
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown";
  std::set<std::string> flags;
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) model = line.substr(std::min(colon + 2, line.size()));
    if (line.starts_with("flags") || line.starts_with("Features")) {
      std::istringstream words(line.substr(colon + 1));
      for (std::string word; words >> word;) flags.insert(word);
    }
  }
  std::string simd;
  for (const char* name : {"sse4_2", "avx2", "fma", "avx512f", "avx512_vnni", "asimd", "sve"}) {
    if (flags.contains(name)) simd += std::string(simd.empty() ? "" : ", ") + name;
  }
  doctor.ok(str_format("{}, {} cores online", model, ::sysconf(_SC_NPROCESSORS_ONLN)));
  if (simd.empty()) {
    doctor.note("no SIMD beyond the baseline: preprocessing will be slow, but right");
  } else {
    doctor.ok("SIMD: " + simd);
  }
}

void check_gstreamer(Doctor& doctor) {
  doctor.head("GStreamer");
  guint major = 0, minor = 0, micro = 0, nano = 0;
  gst_version(&major, &minor, &micro, &nano);
  const std::string version = str_format("{}.{}.{}", major, minor, micro);
  if (major > 1 || (major == 1 && minor >= 28)) {
    doctor.ok("version " + version);
  } else {
    doctor.lacks("version 1.28 or later; this is " + version);
  }
  struct Need {
    const char* element;
    const char* what;
    const char* package;
  };
  const auto check = [&](const Need& need, bool needed) {
    GstElementFactory* factory = gst_element_factory_find(need.element);
    if (factory != nullptr) {
      doctor.ok(str_format("{} ({})", need.element, need.what));
      gst_object_unref(factory);
    } else if (needed) {
      doctor.lacks(str_format("{} ({}): install {}", need.element, need.what, need.package));
    } else {
      doctor.note(str_format("no {} ({}): comes with {}", need.element, need.what, need.package));
    }
  };
  for (const Need& need :
       {Need{"peninfer", "inference", "penstock"}, Need{"pentrack", "follows objects", "penstock"},
        Need{"penzone", "counts them by places", "penstock"},
        Need{"penmux", "joins streams", "penstock"},
        Need{"pendemux", "parts them again", "penstock"},
        Need{"penaggregate", "joins what several models found", "penstock"},
        Need{"decodebin3", "picks decoders", "gstreamer1.0-plugins-base"},
        Need{"qtdemux", "reads MP4", "gstreamer1.0-plugins-good"},
        Need{"avidemux", "reads AVI", "gstreamer1.0-plugins-good"},
        Need{"avdec_h264", "decodes H.264", "gstreamer1.0-libav"},
        Need{"penwatermark", "draws what was found", "penstock"},
        Need{"videoconvert", "converts for the encoder", "gstreamer1.0-plugins-base"},
        Need{"openh264enc", "encodes the MP4 output", "gstreamer1.0-plugins-bad"},
        Need{"h264parse", "frames it", "gstreamer1.0-plugins-bad"},
        Need{"mp4mux", "writes the MP4 output", "gstreamer1.0-plugins-good"},
        Need{"jpegenc", "encodes the report's pictures", "gstreamer1.0-plugins-good"}}) {
    check(need, true);
  }
  for (const Need& need :
       {Need{"objectdetectionoverlay", "draws for model try --out", "gstreamer1.0-plugins-bad"},
        Need{"rtspsrc", "reads RTSP", "gstreamer1.0-plugins-good"},
        Need{"avdec_h265", "decodes H.265", "gstreamer1.0-libav"},
        Need{"matroskademux", "reads MKV", "gstreamer1.0-plugins-good"},
        Need{"av1dec", "decodes AV1", "gstreamer1.0-plugins-bad"}}) {
    check(need, false);
  }
}

void check_engine(Doctor& doctor, const std::string& library) {
  doctor.head("ONNX Runtime");
  const auto offer = describe_engine(library);
  if (!offer) return doctor.lacks(offer.error().message());
  doctor.ok(str_format("version {} from {}", offer->version, offer->library));
  std::string names;
  for (const std::string& name : offer->providers) names += (names.empty() ? "" : ", ") + name;
  doctor.ok("offers the providers " + names);
  doctor.note(
      "a model's manifest names its provider (engine.provider), else it is CPUExecutionProvider; "
      "one that is not built into this library is loaded by --provider-library FILE of run and of "
      "the model tools, or by peninfer's provider-library");
}

void check_models(Doctor& doctor, const std::filesystem::path& folder) {
  doctor.head("Models");
  const auto names = prepared_names(folder);
  for (const std::string& name : names) {
    if (auto loaded = load_manifest(folder / name); loaded) {
      doctor.ok(str_format("{}: {}, hash checked", name, short_licence(loaded->licence)));
    } else {
      doctor.note(loaded.error().message());
    }
  }
  if (names.empty()) {
    doctor.note(
        str_format("none in {}; get one with: penstock model fetch nanodet", folder.string()));
  }
}

void check_devices(Doctor& doctor) {
  doctor.head("Devices");
  doctor.ok("cpu: system memory, every stage");
  std::error_code ec;
  bool any = false;
  for (std::filesystem::directory_iterator it("/dev/dri", ec), end; !ec && it != end;
       it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with("renderD")) continue;
    any = true;
    const bool usable = ::access(it->path().c_str(), R_OK | W_OK) == 0;
    doctor.note(str_format("render node {}{}; GPUs are not used by this release",
                           it->path().string(),
                           usable ? "" : " (this user may not open it: join its group)"));
  }
  if (!any) doctor.note("no GPU render node in /dev/dri; GPUs are not used by this release anyway");
  if (std::filesystem::exists("/dev/nvidiactl", ec)) {
    doctor.note("an NVIDIA driver is loaded; device 'cuda' does not exist yet");
  }
  if (std::filesystem::exists("/dev/kfd", ec)) {
    doctor.note("an AMD compute driver is loaded; device 'hip' does not exist yet");
  }
}

void check_disk(Doctor& doctor) {
  doctor.head("Disk");
  std::error_code ec;
  const auto space = std::filesystem::space(".", ec);
  if (ec) {
    doctor.note("cannot tell the free space of this folder: " + ec.message());
    return;
  }
  const double free = double(space.available) / 1e9;
  const std::string text = str_format("{:.1f} GB free in this folder", free);
  if (free < 0.2) {
    doctor.lacks("room for outputs: " + text);
  } else {
    doctor.ok(text);
  }
}

void print_text(const Doctor& doctor) {
  std::printf("penstock %s\n", PENSTOCK_VERSION);
  std::string_view area;
  for (const Doctor::Finding& finding : doctor.findings()) {
    if (finding.area != area) say(finding.area);
    area = finding.area;
    const std::string_view state = finding.state;
    say(str_format("  {:<7} {}", state == "lacks" ? "LACKS" : state, finding.text));
  }
  say(doctor.missing() == 0 ? std::string("This machine can run the main job on device cpu.")
                            : str_format("{} things are lacking; see above.", doctor.missing()));
}

void print_json(const Doctor& doctor) {
  JsonWriter out;
  out.open('{');
  out.key("version").string(PENSTOCK_VERSION);
  out.key("can_run").boolean(doctor.missing() == 0);
  out.key("findings").open('[');
  for (const Doctor::Finding& finding : doctor.findings()) {
    out.open('{');
    out.key("area").string(finding.area);
    out.key("state").string(finding.state);
    out.key("text").string(finding.text);
    out.close('}');
  }
  out.close(']');
  out.close('}');
  std::printf("%s", out.take().c_str());
}

int examine(const Flags& flags) {
  gst_init(nullptr, nullptr);
  gst::register_elements(nullptr);
  Doctor doctor;
  check_processor(doctor);
  check_gstreamer(doctor);
  check_engine(doctor, flags.engine_library);
  check_models(doctor, models_folder(flags.models));
  check_devices(doctor);
  check_disk(doctor);
  flags.json ? print_json(doctor) : print_text(doctor);
  return doctor.missing() == 0 ? kExitOk : kExitUnavailable;
}

}  // namespace

Command add_doctor(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* doctor = app.add_subcommand("doctor", "Say what this machine has and lacks");
  doctor->add_option("--models", flags->models, "Folder of prepared models");
  doctor->add_option("--engine-library", flags->engine_library, "The ONNX Runtime library to load");
  doctor->add_flag("--json", flags->json, "As JSON");
  return [flags] { return examine(*flags); };
}

}  // namespace penstock
