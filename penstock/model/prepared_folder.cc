// SPDX-License-Identifier: Apache-2.0
//
// write_prepared: the disk's side of a preparation.
#include <stdlib.h>

#include <cerrno>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "penstock/base/file_ops.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest_writer.h"
#include "penstock/model/preparation.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> io(const std::string& what, const std::error_code& error) {
  const ErrorKind kind = error == std::errc::permission_denied           ? ErrorKind::kPermission
                         : error == std::errc::no_space_on_device        ? ErrorKind::kExhausted
                         : error == std::errc::no_such_file_or_directory ? ErrorKind::kNotFound
                                                                         : ErrorKind::kIo;
  return fail(kind, str_format("{}: {}", what, error.message()));
}

/// A folder beside the models that is gone with this object.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create(const fs::path& beside) {
    std::string name = (beside / ".prepare-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      return io(str_format("cannot make a folder in '{}'", beside.string()),
                std::error_code(errno, std::generic_category()));
    }
    return TemporaryFolder(name);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

Result<ManifestArtefact> copy_artefact(const fs::path& from, const fs::path& folder,
                                       const std::string& relative, bool is_model) {
  std::error_code error;
  fs::create_directories((folder / relative).parent_path(), error);
  if (!error) fs::copy_file(from, folder / relative, error);
  if (error) return io(str_format("cannot copy '{}'", from.string()), error);
  auto hash = sha256_file(folder / relative);
  if (!hash) return std::unexpected(hash.error());
  return ManifestArtefact{.path = relative, .sha256 = *hash, .is_model = is_model};
}

/// Data files must stay where the model expects them, beside it or below.
Result<void> check_data(const std::string& relative) {
  const fs::path path(relative);
  const fs::path plain = path.lexically_normal();
  if (path.is_absolute() || plain.empty() || *plain.begin() == ".." || relative == "model.onnx" ||
      relative == "manifest.json") {
    return fail(ErrorKind::kCorrupt,
                str_format("the model's data file '{}' is not beside it", relative));
  }
  return {};
}

}  // namespace

Result<fs::path> write_prepared(const Preparation& plan, const fs::path& models, bool replace) {
  const fs::path folder = models / plan.manifest.name;
  std::error_code error;
  if (fs::exists(folder, error) && !replace) {
    return fail(
        ErrorKind::kInvalidArgument,
        str_format("'{}' is there already; give --replace or another --name", folder.string()));
  }
  fs::create_directories(models, error);
  if (error) return io(str_format("cannot make '{}'", models.string()), error);
  auto temporary = TemporaryFolder::create(models);
  if (!temporary) return std::unexpected(temporary.error());
  const fs::path made = temporary->path() / "new";
  std::vector<ManifestArtefact> artefacts;
  auto model = copy_artefact(plan.file, made, "model.onnx", true);
  if (!model) return std::unexpected(model.error());
  artefacts.push_back(*std::move(model));
  for (const std::string& relative : plan.data) {
    PENSTOCK_TRY(check_data(relative));
    auto data = copy_artefact(plan.file.parent_path() / relative, made, relative, false);
    if (!data) return std::unexpected(data.error());
    artefacts.push_back(*std::move(data));
  }
  const std::string json = to_manifest_json(plan.manifest, artefacts, plan.spdx, plan.confidence);
  FileOps& files = FileOps::system();
  auto file = files.create(made / "manifest.json");
  if (!file) return std::unexpected(file.error());
  PENSTOCK_TRY(files.write_all(file->get(), std::as_bytes(std::span(json))));
  PENSTOCK_TRY(files.sync(file->get()));
  // What is written must be what load_manifest takes; nothing else is put in its place.
  if (auto loaded = load_manifest(made); !loaded) return std::unexpected(loaded.error());
  if (fs::exists(folder, error)) fs::rename(folder, temporary->path() / "old", error);
  if (!error) fs::rename(made, folder, error);
  if (error) return io(str_format("cannot put '{}' in place", folder.string()), error);
  return folder / "manifest.json";
}

}  // namespace penstock
