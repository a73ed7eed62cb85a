// .npz archives: see formats.hpp.
#include "files/formats.hpp"

#include "terminal/texts.hpp"

#if GLGEMM_HAS_LIBZIP

#include <zip.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

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

std::string array_name(std::string name) {
  if (name.ends_with(".npy")) name.resize(name.size() - 4);
  return name;
}

std::string message_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string message = zip_error_strerror(&error);
  zip_error_fini(&error);
  return message;
}

Archive open_archive(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive) throw FileError(fmt::format("cannot read {} as an .npz archive: {}", quote(path), message_of(code)));
  return archive;
}

std::vector<std::string> entries_of(zip_t* archive) {
  std::vector<std::string> result;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
    const char* const entry = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    result.emplace_back(entry ? entry : "");
  }
  return result;
}

/// The entry that NumPy takes for an array of that name: the one with the very name, else with ".npy" behind it; of entries with
/// equal names the last. None: `entries.size()`.
std::size_t find_entry(const std::vector<std::string>& entries, const std::string& array) {
  for (const std::string& name : {array, array + ".npy"})
    for (std::size_t i = entries.size(); i-- > 0;)
      if (entries[i] == name) return i;
  return entries.size();
}

zip_uint64_t find(zip_t* archive, const std::string& path, const std::string& array) {
  const std::vector<std::string> entries = entries_of(archive);
  const std::size_t count = entries.size();
  if (array.empty() && count == 1) return 0;
  if (const std::size_t found = find_entry(entries, array); !array.empty() && found < count) return found;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 16); ++i) names.push_back(visible(array_name(entries[i])));
  if (count > 16) names.emplace_back("...");
  if (count == 0) throw FileError(quote(path) + " is an archive without arrays");
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  if (!array.empty()) throw FileError(fmt::format("{} has no array {}: it has {}", quote(path), quote(array), list));
  throw FileError(fmt::format("{} has {} arrays, of which one must be named, as in '{}:{}': {}", quote(path), count,
                              visible(path), names.front(), list));
}

}  // namespace

bool npz_supported() noexcept {
  return true;
}

void require_archive(const std::string& path) {
  open_archive(path);
}

std::string read_npz(const std::string& path, const std::string& array) {
  const InputFile readable(path);  // libzip's own messages about files are less clear
  const Archive archive = open_archive(path);
  const std::string name = array.empty() ? path : path + ":" + array;
  const auto fail = [&](zip_error_t* error) {
    throw FileError(fmt::format("cannot read {} as an .npz archive: {}", quote(path), zip_error_strerror(error)));
  };
  const zip_uint64_t index = find(archive.get(), path, array);
  zip_stat_t status;
  if (zip_stat_index(archive.get(), index, 0, &status) != 0) fail(zip_get_error(archive.get()));
  const Entry entry(zip_fopen_index(archive.get(), index, 0));
  if (!entry) fail(zip_get_error(archive.get()));
  std::string contents;
  std::string part(std::size_t{1} << 20, '\0');
  // Reads on until there are so many bytes, or the end. It goes part by part, so that memory grows with what was really read.
  const auto read_to = [&](std::size_t bytes) {
    for (zip_int64_t got = 1; got > 0 && contents.size() < bytes; contents.append(part, 0, static_cast<std::size_t>(got)))
      if (got = zip_fread(entry.get(), part.data(), std::min(part.size(), bytes - contents.size())); got < 0)
        fail(zip_file_get_error(entry.get()));
  };
  // What the array's own header says comes first: some megabytes of an archive can be many gigabytes of zeros.
  constexpr std::size_t longer_than_any_header = std::size_t{1} << 21;
  read_to(std::min<std::size_t>(status.size, longer_than_any_header));
  require_whole(InputFile(name, contents, static_cast<std::int64_t>(status.size)));
  if (const std::string why = why_not_in_memory(static_cast<double>(status.size)); !why.empty())
    throw cannot_read(name, "it " + why);
  read_to(status.size);
  read_to(contents.size() + 1);  // the end, where libzip compares the checksum
  if (contents.size() > status.size) throw cannot_read(name, "it is longer than the archive says");
  readable.require_unchanged();
  return contents;
}

std::string npz_with(const std::string& path, const std::string& kept, const std::string& array, std::string_view npy) {
  zip_error_t error;
  zip_error_init(&error);
  const auto require = [&](bool good, zip_error_t* why) {
    if (!good) throw cannot_write(path, zip_error_strerror(why));
  };
  const Archive old = kept.empty() ? nullptr : open_archive(kept);  // read until zip_close is done
  Source result(zip_source_buffer_create(nullptr, 0, 0, &error));
  require(result != nullptr, &error);
  zip_source_keep(result.get());  // zip_close gives up the archive's hold on it
  zip_t* const opened = zip_open_from_source(result.get(), ZIP_TRUNCATE, &error);
  if (!opened) zip_source_free(result.get());
  require(opened != nullptr, &error);
  Archive archive(opened);
  const std::vector<std::string> entries = old ? entries_of(old.get()) : std::vector<std::string>();
  const std::size_t replaced = find_entry(entries, array);
  const std::string written = replaced < entries.size() ? entries[replaced] : array + ".npy";
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& entry = entries[i];
    if (i == replaced) continue;
    if (std::count(entries.begin(), entries.end(), entry) > 1)
      throw cannot_write(path, fmt::format("it has several arrays {}, and an archive is written with one of each name",
                                           quote(array_name(entry))));
    Source copy(zip_source_zip(opened, old.get(), i, 0, 0, -1));  // as it is, compressed or not
    require(copy != nullptr, zip_get_error(opened));
    require(zip_file_add(opened, entry.c_str(), copy.get(), ZIP_FL_ENC_GUESS) >= 0, zip_get_error(opened));
    static_cast<void>(copy.release());  // the archive's
  }
  Source data(zip_source_buffer(opened, npy.data(), npy.size(), 0));
  require(data != nullptr, zip_get_error(opened));
  const zip_int64_t index = zip_file_add(opened, written.c_str(), data.get(), ZIP_FL_ENC_UTF_8);
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

static constexpr const char* no_libzip = "this glgemm was built without libzip; numpy.save writes an array of it as .npy";

bool npz_supported() noexcept {
  return false;
}

void require_archive(const std::string& path) {
  throw cannot_write(path, no_libzip);
}

std::string read_npz(const std::string& path, const std::string&) {
  throw cannot_read(path, no_libzip);
}

std::string npz_with(const std::string& path, const std::string&, const std::string&, std::string_view) {
  throw cannot_write(path, no_libzip);
}

}  // namespace glgemm::tools

#endif
