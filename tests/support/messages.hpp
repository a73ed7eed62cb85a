// What tests ask of messages.
#pragma once

#include <string>
#include <string_view>

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What `call` throws: the message of an `Error`, or a text that no message is.
template <class Error, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}
