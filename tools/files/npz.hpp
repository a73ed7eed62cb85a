// NumPy's .npz archives: zip files of .npy files. Read and written by libzip, where glgemm was built with it.
#pragma once

#include <string>
#include <string_view>

namespace glgemm::tools {

/// Whether glgemm was built with libzip. Without it, the functions below throw what to do instead.
bool npz_supported() noexcept;

/// An array of an archive as an .npy file, in memory. Without a name: the only one. More than its header says is not read.
/// @throws FileError  the archive cannot be read, has no such array, or several and no name was given; the message lists them
std::string read_npz(const std::string& path, const std::string& array);

/// An archive with `array`.npy of these contents, not compressed, as numpy.savez writes it, and with all other arrays of the
/// archive at the path `kept` (empty: of none).
/// @throws FileError  `path`, which is named, cannot be written, or `kept` not read
std::string npz_with(const std::string& path, const std::string& kept, const std::string& array, std::string_view npy);

/// @throws FileError  the file is there and is no archive that an array can be added to
void require_archive(const std::string& path);

}  // namespace glgemm::tools
