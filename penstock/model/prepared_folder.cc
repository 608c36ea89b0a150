// SPDX-License-Identifier: Apache-2.0
//
// write_prepared: the disk's side of a preparation.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
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
  const ErrorKind kind =
      error == std::errc::permission_denied       ? ErrorKind::kPermission
      : error == std::errc::read_only_file_system ? ErrorKind::kPermission
      : error == std::errc::no_space_on_device || error == std::errc::file_too_large
          ? ErrorKind::kExhausted
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

using Step = OutputError::Step;

std::unexpected<OutputError> io_at(Step step, const std::string& what,
                                   const std::error_code& error) {
  return std::unexpected(OutputError(step, io(what, error).error()));
}

/// A file or folder reaches the disk.
Result<void, OutputError> sync_path(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_valid()) {
    return io_at(Step::kWrite, str_format("cannot open '{}'", path.string()),
                 std::error_code(errno, std::generic_category()));
  }
  auto synced = FileOps::system().sync(fd.get());
  if (!synced) return cannot_write(std::move(synced).error().context(path.string()));
  return {};
}

/// The copy must have the bytes that were planned with: those were checked, and tried.
Result<ManifestArtefact, OutputError> copy_artefact(const fs::path& from, const fs::path& folder,
                                                    const std::string& relative,
                                                    const std::string& planned, bool is_model) {
  std::error_code error;
  const fs::path to = folder / relative;
  fs::create_directories(to.parent_path(), error);
  if (error) {
    return io_at(Step::kCreate, str_format("cannot make '{}'", to.parent_path().string()), error);
  }
  // What can't be read is not the output's fault.
  if (const UniqueFd readable(::open(from.c_str(), O_RDONLY | O_CLOEXEC)); !readable.is_valid()) {
    return io(str_format("cannot read '{}'", from.string()),
              std::error_code(errno, std::generic_category()));
  }
  fs::copy_file(from, to, error);
  if (error) return io_at(Step::kWrite, str_format("cannot copy '{}'", from.string()), error);
  auto hash = sha256_file(to);
  if (!hash) return std::unexpected(hash.error());
  if (*hash != planned) {
    return fail(ErrorKind::kCorrupt,
                str_format("'{}' changed while it was prepared; prepare it again", from.string()));
  }
  PENSTOCK_TRY(sync_path(to));
  return ManifestArtefact{.path = relative, .sha256 = *hash, .is_model = is_model};
}

/// Data files must stay where the model expects them, beside it or below.
Result<void> check_data(const std::string& relative) {
  const fs::path path(relative);
  const fs::path plain = path.lexically_normal();
  if (path.is_absolute() || plain.empty() || *plain.begin() == ".." || plain == "model.onnx" ||
      plain == "manifest.json") {
    return fail(ErrorKind::kCorrupt,
                str_format("the model's data file '{}' is not beside it", relative));
  }
  return {};
}

std::unexpected<Error> is_there(const fs::path& folder) {
  return fail(
      ErrorKind::kInvalidArgument,
      str_format("'{}' is there already; give --replace or another --name", folder.string()));
}

/// 0 or errno.
int rename_with(const fs::path& from, const fs::path& to, unsigned flags) {
  const long done = ::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags);
  return done == 0 ? 0 : errno;
}

bool is_not_offered(int error) { return error == ENOSYS || error == EINVAL || error == ENOTSUP; }

/// Where nothing is. A file system without RENAME_NOREPLACE still refuses to put a folder over one
/// that holds something, or over a file.
int rename_new(const fs::path& from, const fs::path& to) {
  int error = rename_with(from, to, RENAME_NOREPLACE);
  if (is_not_offered(error)) error = ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  return error == ENOTEMPTY || error == ENOTDIR ? EEXIST : error;
}

/// `made` in the place of `folder`; what was there is then in the place of `made`.
Result<void, OutputError> put_in_place(const fs::path& made, const fs::path& folder, bool replace) {
  // Another program may make or remove the folder between two attempts, but hardly for ever.
  constexpr int kAttempts = 8;
  int error = 0;
  for (int i = 0; i < kAttempts; ++i) {
    error = rename_new(made, folder);
    if (error != EEXIST) break;
    if (!replace) return is_there(folder);
    // What is replaced is removed, so it must be what it is taken for.
    std::error_code ec;
    if (!fs::is_regular_file(folder / "manifest.json", ec)) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("'{}' is there and is no prepared model; give another --name",
                             folder.string()));
    }
    error = rename_with(made, folder, RENAME_EXCHANGE);
    if (is_not_offered(error)) {
      return fail(ErrorKind::kUnsupported,
                  str_format("the file system of '{}' can't exchange two folders at once; remove "
                             "the old model first, or give another --name",
                             folder.string()));
    }
    if (error != ENOENT) break;
  }
  if (error == 0) return {};
  return io_at(Step::kCreate, str_format("cannot put '{}' in place", folder.string()),
               std::error_code(error, std::generic_category()));
}

Result<std::vector<ManifestArtefact>, OutputError> copy_files(const Preparation& plan,
                                                              const fs::path& made) {
  std::vector<ManifestArtefact> artefacts;
  auto model = copy_artefact(plan.file, made, "model.onnx", plan.model_sha256, true);
  if (!model) return std::unexpected(std::move(model).error());
  artefacts.push_back(*std::move(model));
  for (const std::string& relative : plan.data) {
    PENSTOCK_TRY(check_data(relative));
    const auto planned = plan.data_sha256.find(relative);
    auto data =
        copy_artefact(plan.file.parent_path() / relative, made, relative,
                      planned == plan.data_sha256.end() ? std::string() : planned->second, false);
    if (!data) return std::unexpected(std::move(data).error());
    artefacts.push_back(*std::move(data));
  }
  return artefacts;
}

Result<void, OutputError> write_manifest(const fs::path& path, const std::string& json) {
  FileOps& files = FileOps::system();
  auto file = files.create(path);
  if (!file) return cannot_create(std::move(file).error());
  if (auto written = files.write_all(file->get(), std::as_bytes(std::span(json))); !written) {
    return cannot_write(std::move(written).error().context(path.string()));
  }
  if (auto synced = files.sync(file->get()); !synced) {
    return cannot_write(std::move(synced).error().context(path.string()));
  }
  return {};
}

}  // namespace

Result<void> check_place(const Preparation& plan, const fs::path& models, bool replace) {
  std::error_code error;
  const fs::path folder = models / plan.manifest.name;
  if (!replace && fs::exists(fs::symlink_status(folder, error))) return is_there(folder);
  return {};
}

Result<fs::path, OutputError> write_prepared(const Preparation& plan, const fs::path& models,
                                             bool replace) {
  PENSTOCK_TRY(check_place(plan, models, replace));
  const fs::path folder = models / plan.manifest.name;
  std::error_code error;
  fs::create_directories(models, error);
  if (error) return io_at(Step::kCreate, str_format("cannot make '{}'", models.string()), error);
  auto temporary = TemporaryFolder::create(models);
  if (!temporary) return cannot_create(std::move(temporary).error());
  const fs::path made = temporary->path() / "new";
  const auto artefacts = copy_files(plan, made);
  if (!artefacts) return std::unexpected(artefacts.error());
  const std::string json = to_manifest_json(plan.manifest, *artefacts, plan.spdx, plan.confidence);
  PENSTOCK_TRY(write_manifest(made / "manifest.json", json));
  // What is written must be what load_manifest takes; nothing else is put in its place.
  if (auto loaded = load_manifest(made); !loaded) return std::unexpected(loaded.error());
  for (fs::recursive_directory_iterator it(made, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error)) PENSTOCK_TRY(sync_path(it->path()));
  }
  PENSTOCK_TRY(sync_path(made));
  PENSTOCK_TRY(put_in_place(made, folder, replace));
  PENSTOCK_TRY(sync_path(models));
  return folder / "manifest.json";
}

Result<void> remove_prepared(const std::string& name, const fs::path& models) {
  if (name.empty() || name.starts_with('.') || name.contains('/')) {
    return fail(ErrorKind::kInvalidArgument, str_format("'{}' is no name of a model", name));
  }
  const fs::path folder = models / name;
  std::error_code error;
  const bool is_link = fs::is_symlink(fs::symlink_status(folder, error));
  if (!is_link && !fs::exists(fs::symlink_status(folder / "manifest.json", error))) {
    return fail(ErrorKind::kNotFound, str_format("no model '{}' in '{}'", name, models.string()));
  }
  if (is_link) {
    if (!fs::remove(folder, error))
      return io(str_format("cannot remove '{}'", folder.string()), error);
    return {};
  }
  // Away in one step, so that nobody finds half a model.
  const auto temporary = TemporaryFolder::create(models);
  if (!temporary) return std::unexpected(temporary.error());
  const fs::path away = temporary->path() / "old";
  if (const int cause = rename_new(folder, away); cause != 0) {
    return io(str_format("cannot remove '{}'", folder.string()),
              std::error_code(cause, std::generic_category()));
  }
  fs::remove_all(away, error);
  if (error) return io(str_format("cannot remove all of '{}'", away.string()), error);
  return {};
}

}  // namespace penstock
