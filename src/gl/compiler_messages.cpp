// What the driver's compiler says while programs are made, by GL_KHR_debug.
#include "gl/compiler_messages.hpp"

#include <bit>
#include <chrono>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/system.hpp"
#include "gl/api.hpp"
#include "gl/queries.hpp"

namespace glgemm::gl {
namespace {

struct Message {
  GLenum source = 0, type = 0, severity = 0;
  GLuint id = 0;
  std::string text{};
};

/// Where the callback puts messages: for each CompilerMessages that lives, by its number. A driver may say something after its
/// end, even at the end of the process, so that this is never destroyed and the callback gets a number and no pointer.
struct Inboxes {
  std::mutex mutex;
  std::uintptr_t last = 0;
  std::map<std::uintptr_t, std::vector<Message>> open;
};
Inboxes& inboxes() {
  static Inboxes* const all = new Inboxes;
  return *all;
}

void GLAD_API_PTR receive(GLenum source, GLenum type, GLuint id, GLenum severity, GLsizei length, const GLchar* text,
                          const void* user) try {
  std::string_view said = length < 0 ? std::string_view(text) : std::string_view(text, static_cast<std::size_t>(length));
  said = said.substr(0, said.find_last_not_of(std::string_view(" \n\r\0", 4)) + 1);
  Inboxes& all = inboxes();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.open.find(std::bit_cast<std::uintptr_t>(user)); found != all.open.end())
    found->second.push_back({source, type, severity, id, std::string(said)});
} catch (const std::exception&) {  // without memory the message is lost: nothing is thrown through the driver
}

void set(const Api& api, GLenum name, bool on) {
  (on ? api.Enable : api.Disable)(name);
}

bool is_of_compiler(const Message& message) {
  return message.source == GL_DEBUG_SOURCE_SHADER_COMPILER;
}

}  // namespace

CompilerMessages::CompilerMessages(const Api& api) : api_(api) {
  if (!api.DebugMessageCallback || !DebugGroup::has_room(api) || is_wine()) return;
  api.GetPointerv(GL_DEBUG_CALLBACK_FUNCTION, &callback_);
  api.GetPointerv(GL_DEBUG_CALLBACK_USER_PARAM, &user_);
  output_ = api.IsEnabled(GL_DEBUG_OUTPUT) != GL_FALSE;
  synchronous_ = api.IsEnabled(GL_DEBUG_OUTPUT_SYNCHRONOUS) != GL_FALSE;
  {
    const std::lock_guard lock(inboxes().mutex);
    number_ = ++inboxes().last;
    inboxes().open[number_];
  }
  api.DebugMessageCallback(receive, std::bit_cast<void*>(number_));
  group_.emplace(api, "glgemm compiles");
  api.DebugMessageControl(GL_DEBUG_SOURCE_SHADER_COMPILER, GL_DONT_CARE, GL_DONT_CARE, 0, nullptr, GL_TRUE);
  // Mesa drops what its compilers say in threads of their own while output is synchronous.
  api.Disable(GL_DEBUG_OUTPUT_SYNCHRONOUS);
  api.Enable(GL_DEBUG_OUTPUT);
}

CompilerMessages::~CompilerMessages() {
  if (number_ == 0) return;
  group_.reset();
  const auto callback = std::bit_cast<GLDEBUGPROC>(callback_);
  api_.DebugMessageCallback(callback, user_);
  set(api_, GL_DEBUG_OUTPUT, output_);
  set(api_, GL_DEBUG_OUTPUT_SYNCHRONOUS, synchronous_);
  std::vector<Message> messages;
  {
    const std::lock_guard lock(inboxes().mutex);
    const auto found = inboxes().open.find(number_);
    messages = std::move(found->second);
    inboxes().open.erase(found);
  }
  if (!callback || !output_) return;
  for (const Message& message : messages)
    if (!is_of_compiler(message) && message.type != GL_DEBUG_TYPE_PUSH_GROUP && message.type != GL_DEBUG_TYPE_POP_GROUP)
      callback(message.source, message.type, message.id, message.severity, static_cast<GLsizei>(message.text.size()),
               message.text.c_str(), user_);
}

std::vector<std::string> CompilerMessages::take() const {
  std::vector<std::string> result;
  if (number_ == 0) return result;
  Sync end(api_);
  end.wait(api_, std::chrono::seconds(10));
  end.destroy(api_);
  const std::lock_guard lock(inboxes().mutex);
  // Warnings about performance, such as Intel's of spills, are about the program as well.
  for (const Message& message : inboxes().open.at(number_))
    if (is_of_compiler(message) || message.type == GL_DEBUG_TYPE_PERFORMANCE) result.push_back(message.text);
  return result;
}

}  // namespace glgemm::gl
