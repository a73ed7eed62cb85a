// This program and the machine: its arguments, variables and end, its terminal, its time, and main memory.
#pragma once

#include <cstddef>
#include <string_view>

namespace glgemm::tools {

/// What a program's main() calls first: arguments become UTF-8, the standard streams carry bytes as they are, and those that are
/// closed fail without another file in their place. A write past the limit of a file's size is an error, no signal.
void begin_program(int& argc, char**& argv);

/// The variables that name the user's folder for what can be made again, for messages.
extern const std::string_view user_folder_variables;

/// Sets a variable of the environment, unless it is set already and `overwrite` is false.
void set_variable(const char* name, const char* value, bool overwrite);

enum class Stream { in, out, error };
/// Whether it is a terminal; `error` on Windows only if it understands a terminal's sequences.
bool is_terminal(Stream stream);
/// The width of the terminal that a stream goes to; 0 if it is none, or not known.
int terminal_columns(Stream stream);

/// The bytes of main memory; and what of it can be had now without swapping, or all of it if the system does not say.
double machine_memory();
double available_memory();

/// Milliseconds of CPU that this thread, and all of this process, have had.
double thread_cpu_milliseconds();
double process_cpu_milliseconds();

// ---- The end from outside: SIGINT, SIGTERM, SIGHUP, and SIGPIPE where nobody reads what is printed; on Windows Ctrl-C,
// Ctrl-Break, and the console's and the session's end

/// Has the end call `f` first. `f` may do only what a signal handler may: call the functions below, and use lock-free atomics.
void before_end(void (*f)());
void write_at_end(const char* text, std::size_t bytes) noexcept;  ///< to stderr
void remove_file_at_end(const char* path) noexcept;
void remove_folder_at_end(const char* path) noexcept;

/// While it lives, the end waits. Not two of a thread at a time.
class EndHeld {
 public:
  EndHeld();
  ~EndHeld();
  EndHeld(const EndHeld&) = delete;
  EndHeld& operator=(const EndHeld&) = delete;
};

}  // namespace glgemm::tools
