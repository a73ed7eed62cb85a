// This program on Windows: see program.hpp.
#include "system/program.hpp"

#include "system/windows/windows.hpp"

#include <fcntl.h>
#include <io.h>
#include <shellapi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

namespace glgemm::tools {
namespace {

HANDLE handle_of(Stream stream) {
  return GetStdHandle(stream == Stream::in ? STD_INPUT_HANDLE : stream == Stream::out ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE);
}

UINT code_page_before = 0;

void restore_code_page() {
  if (code_page_before != 0) SetConsoleOutputCP(code_page_before);
}

std::atomic<void (*)()> before{};
std::recursive_mutex end_mutex;

/// Windows calls it on a new thread. It ends the program at once, with a status that says why: the system's own way has the
/// driver's library clean up while the other threads still use it, and Wine's status is 0.
BOOL WINAPI end(DWORD) {
  const std::lock_guard lock(end_mutex);
  if (void (*const f)() = before) f();
  restore_code_page();
  TerminateProcess(GetCurrentProcess(), static_cast<UINT>(STATUS_CONTROL_C_EXIT));
  return TRUE;
}

double milliseconds(const FILETIME& kernel, const FILETIME& user) {
  const auto ticks = [](const FILETIME& time) {
    return static_cast<double>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
  };
  return (ticks(kernel) + ticks(user)) * 1e-4;
}

MEMORYSTATUSEX memory_status() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  GlobalMemoryStatusEx(&status);
  return status;
}

}  // namespace

void begin_program(int& argc, char**& argv) {
  static std::vector<std::string> texts;
  static std::vector<char*> pointers;
  int count = 0;
  if (wchar_t** const words = CommandLineToArgvW(GetCommandLineW(), &count)) {
    for (int i = 0; i < count; ++i) texts.push_back(utf8(words[i]));
    LocalFree(words);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    argc = count;
    argv = pointers.data();
  }
  for (std::FILE* stream : {stdin, stdout, stderr}) _setmode(_fileno(stream), _O_BINARY);
  code_page_before = GetConsoleOutputCP();
  if (code_page_before != 0 && code_page_before != CP_UTF8 && SetConsoleOutputCP(CP_UTF8)) std::atexit(restore_code_page);
}

void set_variable(const char* name, const char* value, bool overwrite) {
  if (overwrite || !std::getenv(name)) _putenv_s(name, value);
}

bool is_terminal(Stream stream) {
  DWORD mode = 0;
  if (!GetConsoleMode(handle_of(stream), &mode)) return false;
  constexpr DWORD sequences = 0x0004;  // ENABLE_VIRTUAL_TERMINAL_PROCESSING
  return stream != Stream::error || (mode & sequences) != 0 || SetConsoleMode(handle_of(stream), mode | sequences) != 0;
}

int terminal_columns(Stream stream) {
  CONSOLE_SCREEN_BUFFER_INFO info{};
  return GetConsoleScreenBufferInfo(handle_of(stream), &info) ? info.srWindow.Right - info.srWindow.Left + 1 : 0;
}

double machine_memory() {
  return static_cast<double>(memory_status().ullTotalPhys);
}

double available_memory() {
  return static_cast<double>(memory_status().ullAvailPhys);
}

double thread_cpu_milliseconds() {
  FILETIME created{}, ended{}, kernel{}, user{};
  GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user);
  return milliseconds(kernel, user);
}

double process_cpu_milliseconds() {
  FILETIME created{}, ended{}, kernel{}, user{};
  GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user);
  return milliseconds(kernel, user);
}

void before_end(void (*f)()) {
  if (!before.exchange(f)) SetConsoleCtrlHandler(end, TRUE);
}

void write_at_end(const char* text, std::size_t bytes) noexcept {
  DWORD written = 0;
  WriteFile(handle_of(Stream::error), text, static_cast<DWORD>(bytes), &written, nullptr);
}

void remove_file_at_end(const char* path) noexcept {
  DeleteFileW(native_path(path).c_str());
}

void remove_folder_at_end(const char* path) noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(native_path(path), ignored);
}

EndHeld::EndHeld() {
  end_mutex.lock();
}

EndHeld::~EndHeld() {
  end_mutex.unlock();
}

}  // namespace glgemm::tools
