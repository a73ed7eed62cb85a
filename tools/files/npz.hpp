// NumPy's .npz archives: zip files of .npy files. Read and written by libzip, where glgemm was built with it.
#pragma once

#include <string>
#include <string_view>

namespace glgemm::tools {

/// Whether glgemm was built with libzip. Without it, the functions below throw what to do instead.
bool npz_supported() noexcept;

/// An array of an archive as an .npy file, in memory. Without a name: the only one.
/// @throws FileError  the archive cannot be read, has no such array, or several and no name was given; the message lists them
std::string read_npz(const std::string& path, const std::string& array);

/// An archive that holds one array, `array`.npy with these contents, not compressed, as numpy.savez writes it.
/// @throws FileError  `path`, which is named, cannot be written
std::string npz_of(const std::string& path, const std::string& array, std::string_view npy);

}  // namespace glgemm::tools
