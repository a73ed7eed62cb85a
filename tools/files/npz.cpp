// .npz archives: see npz.hpp.
#include "files/npz.hpp"

#include "files/files.hpp"

#if GLGEMM_HAS_LIBZIP

#include <zip.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace glgemm::tools {
namespace {

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Entry = std::unique_ptr<zip_file_t, Discard>;
using Source = std::unique_ptr<zip_source_t, Discard>;

std::string array_name(const char* entry) {
  std::string name = entry;
  if (name.ends_with(".npy")) name.resize(name.size() - 4);
  return name;
}

zip_int64_t find(zip_t* archive, const std::string& path, const std::string& array) {
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  if (array.empty() && count == 1) return 0;
  std::string list;
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* const entry = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    const std::string name = array_name(entry ? entry : "");
    if (!array.empty() && name == array) return i;
    if (i < 16) list += (list.empty() ? "" : ", ") + name;
    if (i == 16) list += ", ...";
  }
  if (count == 0) throw FileError("'" + path + "' is an archive without arrays");
  throw FileError("'" + path + "' has " +
                  (array.empty() ? std::to_string(count) + " arrays, of which one must be named, as in '" + path + ":" +
                                       list.substr(0, list.find(',')) + "': " + list
                                 : "no array '" + array + "': it has " + list));
}

}  // namespace

bool npz_supported() noexcept {
  return true;
}

std::string read_npz(const std::string& path, const std::string& array) {
  InputFile readable(path);  // libzip's own messages about files are less clear
  int code = 0;
  const Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  const auto fail = [&](zip_error_t* error) {
    throw FileError("cannot read '" + path + "' as an .npz archive: " + zip_error_strerror(error));
  };
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    fail(&error);
  }
  const auto index = static_cast<zip_uint64_t>(find(archive.get(), path, array));
  zip_stat_t status;
  if (zip_stat_index(archive.get(), index, 0, &status) != 0) fail(zip_get_error(archive.get()));
  const Entry entry(zip_fopen_index(archive.get(), index, 0));
  if (!entry) fail(zip_get_error(archive.get()));
  // Read part by part, so that an archive that lies about its size takes no more memory than it has contents.
  std::string contents;
  std::string part(std::size_t{1} << 20, '\0');
  for (;;) {
    const zip_int64_t got = zip_fread(entry.get(), part.data(), part.size());
    if (got < 0) fail(zip_file_get_error(entry.get()));
    if (got == 0) return contents;
    contents.append(part, 0, static_cast<std::size_t>(got));
  }
}

std::string npz_of(const std::string& path, const std::string& array, std::string_view npy) {
  zip_error_t error;
  zip_error_init(&error);
  const auto require = [&](bool good, zip_error_t* why) {
    if (!good) throw FileError("cannot write '" + path + "': " + zip_error_strerror(why));
  };
  Source result(zip_source_buffer_create(nullptr, 0, 0, &error));
  require(result != nullptr, &error);
  zip_source_keep(result.get());  // zip_close gives up the archive's hold on it
  zip_t* const opened = zip_open_from_source(result.get(), ZIP_TRUNCATE, &error);
  if (!opened) zip_source_free(result.get());
  require(opened != nullptr, &error);
  Archive archive(opened);
  Source data(zip_source_buffer(opened, npy.data(), npy.size(), 0));
  require(data != nullptr, zip_get_error(opened));
  const zip_int64_t index = zip_file_add(opened, (array + ".npy").c_str(), data.get(), ZIP_FL_ENC_UTF_8);
  require(index >= 0, zip_get_error(opened));
  static_cast<void>(data.release());  // the archive's
  require(zip_set_file_compression(opened, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) == 0, zip_get_error(opened));
  require(zip_file_set_mtime(opened, static_cast<zip_uint64_t>(index), 315532800, 0) == 0, zip_get_error(opened));  // 1980
  require(zip_close(opened) == 0, zip_get_error(opened));
  static_cast<void>(archive.release());

  zip_stat_t status;
  require(zip_source_stat(result.get(), &status) == 0 && zip_source_open(result.get()) == 0, zip_source_error(result.get()));
  std::string contents(status.size, '\0');
  const zip_int64_t got = zip_source_read(result.get(), contents.data(), contents.size());
  zip_source_close(result.get());
  require(got == static_cast<zip_int64_t>(contents.size()), zip_source_error(result.get()));
  return contents;
}

}  // namespace glgemm::tools

#else

namespace glgemm::tools {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw FileError("cannot " + what + ": this glgemm was built without libzip; numpy.save writes an array of it as .npy");
}

}  // namespace

bool npz_supported() noexcept {
  return false;
}

std::string read_npz(const std::string& path, const std::string&) {
  refuse("read '" + path + "'");
}

std::string npz_of(const std::string& path, const std::string&, std::string_view) {
  refuse("write '" + path + "'");
}

}  // namespace glgemm::tools

#endif
