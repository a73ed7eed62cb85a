// Which device a context is made on: trying them, and what the caller asks for. The same over EGL and over WGL.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <glgemm/headless.hpp>

namespace glgemm::headless {

/// Has the context that is current multiply, and notes what driver it has.  @throws std::exception  it does not compute
void try_product(HeadlessDevice& device);

/// The API that the caller asks for, or else the variable GLGEMM_API.  @throws std::invalid_argument  that is none
ContextApi wanted_api(ContextApi asked);

/// What a message begins with that goes on with describe().
inline const std::string no_usable = "no device gives a usable context of OpenGL 4.3, OpenGL ES 3.1 or newer; tried ";
/// Devices and what became of them.
std::string describe(const std::vector<HeadlessDevice>& devices);

/// What the caller or the environment asks for: an index or a part of a name, or nothing.
class Wish {
 public:
  explicit Wish(std::string text);

  bool fits(const HeadlessDevice& device) const;
  /// A name is known only once a device was tried; an index at once. `list[i]` has the index i.
  template <class Candidate>
  std::vector<Candidate> narrow(std::vector<Candidate> list) const {
    if (!index_ || *index_ < 0 || static_cast<std::size_t>(*index_) >= list.size()) return list;
    return {list[static_cast<std::size_t>(*index_)]};
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::optional<int> index_;
};

/// The indices that a list for headless_accelerators() stands for.  @throws as that
std::vector<std::size_t> listed(const std::string& list, const std::vector<HeadlessDevice>& devices);

}  // namespace glgemm::headless
