// Other programs on Windows: see processes.hpp. Each child is in a job of its own, which ends with this program.
#include "system/processes.hpp"

#include "system/windows/windows.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>

#include "system/files.hpp"
#include "system/lines.hpp"
#include "system/program.hpp"

namespace glgemm::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// The variable that tells a child the handles of its channel and of the shared memory.
constexpr const char* channel_variable = "GLGEMM_CHANNEL";

int last_error() {
  return static_cast<int>(GetLastError());
}

std::wstring this_program() {
  std::wstring path(32768, L'\0');
  path.resize(GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return path;
}

std::wstring random_name() {
  std::random_device random;
  return L"glgemm-" + std::to_wstring(GetCurrentProcessId()) + L"-" + std::to_wstring(random()) + L"-" +
         std::to_wstring(random());
}

/// A word as CommandLineToArgvW reads it back: before a quote, backslashes count double.
std::wstring quoted(const std::wstring& word) {
  std::wstring result = L"\"";
  std::size_t backslashes = 0;
  for (const wchar_t c : word) {
    if (c == L'"') result.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    result += c;
  }
  return result.append(backslashes, L'\\') + L'"';
}

/// This process's environment with some variables set, as CreateProcessW takes it.
std::wstring environment_with(const Variables& variables) {
  const auto name_of = [](std::wstring_view text) { return text.substr(0, text.find(L'=', 1)); };  // "=C:" is a name too
  const auto compare = [](std::wstring_view a, std::wstring_view b) {
    return CompareStringOrdinal(a.data(), static_cast<int>(a.size()), b.data(), static_cast<int>(b.size()), TRUE);
  };
  std::vector<std::wstring> all;
  for (const auto& [name, value] : variables) all.push_back(wide(name) + L"=" + wide(value));
  const std::size_t set = all.size();
  wchar_t* const block = GetEnvironmentStringsW();
  for (const wchar_t* text = block; text && *text; text += std::wcslen(text) + 1) {
    const auto same = [&](const std::wstring& other) { return compare(name_of(other), name_of(text)) == CSTR_EQUAL; };
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(set);
    if (std::find_if(all.begin(), end, same) == end) all.emplace_back(text);
  }
  FreeEnvironmentStringsW(block);
  std::sort(all.begin(), all.end(),
            [&](const std::wstring& a, const std::wstring& b) { return compare(name_of(a), name_of(b)) == CSTR_LESS_THAN; });
  std::wstring result;
  for (const std::wstring& text : all) result += text + L'\0';
  return result + L'\0';
}

/// Handles that a child gets, and no others.
class Inherited {
 public:
  /// A copy that can be inherited.
  HANDLE add(HANDLE handle) {
    HANDLE copy = nullptr;
    DuplicateHandle(GetCurrentProcess(), handle, GetCurrentProcess(), &copy, 0, TRUE, DUPLICATE_SAME_ACCESS);
    owned_.emplace_back(copy);
    if (copy) list_.push_back(copy);
    return copy;
  }
  HANDLE open(const std::wstring& path, DWORD access, DWORD how) {
    return add(Handle(CreateFileW(path.c_str(), access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, how,
                                  FILE_ATTRIBUTE_NORMAL, nullptr))
                   .get());
  }
  std::vector<HANDLE>& list() { return list_; }

 private:
  std::vector<Handle> owned_;
  std::vector<HANDLE> list_;
};

/// The list of attributes that CreateProcessW takes, here the handles alone.
class Attributes {
 public:
  explicit Attributes(std::vector<HANDLE>& handles) {
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &size);
    memory_.resize(size);
    InitializeProcThreadAttributeList(get(), 1, 0, &size);
    UpdateProcThreadAttribute(get(), 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles.data(), handles.size() * sizeof(HANDLE),
                              nullptr, nullptr);
  }
  ~Attributes() { DeleteProcThreadAttributeList(get()); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  LPPROC_THREAD_ATTRIBUTE_LIST get() { return reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory_.data()); }

 private:
  std::vector<std::byte> memory_;
};

/// A job whose processes end when the last handle of it is closed, and so with this program, however that ends.
Handle make_job() {
  Handle job(CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits, sizeof limits);
  return job;
}

/// A view of a file's bytes that other programs see.
class View {
 public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() { unmap(); }
  /// Makes the file as long if it is shorter. False: it cannot be mapped.
  bool map(HANDLE file, std::int64_t bytes) {
    unmap();
    const auto size = static_cast<std::uint64_t>(bytes);
    const Handle section(CreateFileMappingW(file, nullptr, PAGE_READWRITE, static_cast<DWORD>(size >> 32),
                                            static_cast<DWORD>(size & 0xffffffffu), nullptr));
    data_ = section ? static_cast<char*>(MapViewOfFile(section.get(), FILE_MAP_ALL_ACCESS, 0, 0, static_cast<SIZE_T>(bytes)))
                    : nullptr;
    return data_ != nullptr;
  }
  void unmap() {
    if (data_) UnmapViewOfFile(data_);
    data_ = nullptr;
  }
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
};

const char* name_of_exception(DWORD code) {
  switch (code) {
    case EXCEPTION_ACCESS_VIOLATION:
      return "access violation";
    case EXCEPTION_STACK_OVERFLOW:
      return "stack overflow";
    case EXCEPTION_ILLEGAL_INSTRUCTION:
      return "illegal instruction";
    case EXCEPTION_INT_DIVIDE_BY_ZERO:
      return "integer division by zero";
    case EXCEPTION_IN_PAGE_ERROR:
      return "page that cannot be read";
    case 0xC000013A:
      return "interrupted";
    case 0xC0000135:
      return "a DLL is missing";
    case 0xC0000409:
      return "stack buffer overrun";
    default:
      return "exception";
  }
}

}  // namespace

std::string program_folder() {
  const std::wstring path = this_program();
  return utf8(path.substr(0, path.find_last_of(L"\\/")));
}

const std::string_view program_suffix = ".exe";

std::string program_beside(const std::string& name) {
  const std::string path = program_folder() + "\\" + name + std::string(program_suffix);
  return GetFileAttributesW(native_path(path).c_str()) != INVALID_FILE_ATTRIBUTES ? path : "";
}

// ---- Shared memory: a file that goes with its last handle. It never gets shorter, since the other side may still see it.

struct SharedMemory::State {
  Handle file;
  View view;
};

SharedMemory::SharedMemory() : state_(std::make_unique<State>()) {
  const std::wstring path = (std::filesystem::temp_directory_path() / random_name()).wstring();
  state_->file =
      Handle(CreateFileW(path.c_str(), GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                         nullptr, CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  if (!state_->file) throw std::runtime_error("a temporary file cannot be had: " + system_message(last_error()));
}
SharedMemory::~SharedMemory() = default;

void SharedMemory::resize(std::int64_t bytes) {
  if (!state_->view.map(state_->file.get(), bytes))
    throw std::runtime_error("there is no room for a temporary file of " + std::to_string(bytes) + " bytes");
  std::memset(state_->view.data(), 0, static_cast<std::size_t>(bytes));
}

char* SharedMemory::data() const noexcept {
  return state_->view.data();
}

// ---- Children

struct Child::State {
  Handle process, job;
  DWORD id = 0;
  bool group = false;
  ExitStatus end;
  Handle channel, ready;  ///< `ready`: something has happened on the channel
  std::string received;
  std::array<char, 4096> part{};

  /// A pipe, whose other end the child inherits.
  HANDLE open_channel(Inherited& inherited) {
    const std::wstring name = L"\\\\.\\pipe\\" + random_name();
    channel.reset(CreateNamedPipeW(name.c_str(), PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE,
                                   PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS, 1, 65536, 65536,
                                   0, nullptr));
    ready.reset(CreateEventW(nullptr, TRUE, FALSE, nullptr));
    if (!channel || !ready) return nullptr;
    return inherited.open(name, GENERIC_READ | GENERIC_WRITE, OPEN_EXISTING);
  }
  /// Waits for what was begun with `place`. False: the other side is gone, or the time is over, which `late` says.
  bool complete(OVERLAPPED& place, DWORD milliseconds, DWORD& bytes, bool& late) {
    late = WaitForSingleObject(ready.get(), milliseconds) == WAIT_TIMEOUT;
    if (late) CancelIo(channel.get());
    return GetOverlappedResult(channel.get(), &place, &bytes, TRUE) != 0;
  }
};

Child::Child() : state_(std::make_unique<State>()) {}
Child::~Child() = default;

int Child::start(const Words& words, const Options& options) {
  State& s = *state_;
  Inherited inherited;
  Variables variables = options.variables;
  STARTUPINFOEXW startup{};
  startup.StartupInfo.cb = sizeof startup;
  startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  startup.StartupInfo.hStdInput = inherited.open(L"NUL", GENERIC_READ, OPEN_EXISTING);
  if (options.channel) {
    const HANDLE theirs = s.open_channel(inherited);
    if (!theirs) return last_error();
    const HANDLE memory = options.memory ? inherited.add(options.memory->state_->file.get()) : nullptr;
    variables[channel_variable] =
        std::to_string(reinterpret_cast<std::uintptr_t>(theirs)) + " " + std::to_string(reinterpret_cast<std::uintptr_t>(memory));
    // What a driver prints is no result.
    startup.StartupInfo.hStdOutput = startup.StartupInfo.hStdError = inherited.add(GetStdHandle(STD_ERROR_HANDLE));
  } else {
    s.group = true;
    startup.StartupInfo.hStdOutput = inherited.open(native_path(options.out), GENERIC_WRITE, CREATE_ALWAYS);
    startup.StartupInfo.hStdError = inherited.open(native_path(options.err), GENERIC_WRITE, CREATE_ALWAYS);
  }
  std::wstring line, environment = environment_with(variables);
  for (const std::string& word : words) line += (line.empty() ? L"" : L" ") + quoted(wide(word));
  const std::wstring self = this_program();
  Attributes attributes(inherited.list());
  startup.lpAttributeList = attributes.get();
  s.job = make_job();
  const EndHeld held;  // until the end's function knows of the child
  PROCESS_INFORMATION started{};
  if (!CreateProcessW(
          words[0] == "glgemm" ? self.c_str() : nullptr, line.data(), nullptr, nullptr, TRUE,
          EXTENDED_STARTUPINFO_PRESENT | CREATE_UNICODE_ENVIRONMENT | CREATE_SUSPENDED | (s.group ? CREATE_NEW_PROCESS_GROUP : 0),
          environment.data(), nullptr, &startup.StartupInfo, &started))
    return last_error();
  s.process.reset(started.hProcess);
  s.id = started.dwProcessId;
  const Handle thread(started.hThread);
  AssignProcessToJobObject(s.job.get(), s.process.get());
  ResumeThread(thread.get());
  if (options.group) *options.group = reinterpret_cast<std::intptr_t>(s.job.get());
  return 0;
}

bool Child::wait(std::chrono::milliseconds limit) {
  if (!state_->process) return true;
  const auto milliseconds = static_cast<DWORD>(std::min<std::int64_t>(limit.count(), 0x7fffffff));
  if (WaitForSingleObject(state_->process.get(), milliseconds) != WAIT_OBJECT_0) return false;
  DWORD code = 0;
  GetExitCodeProcess(state_->process.get(), &code);
  if (code < 0xC0000000u) {
    state_->end.status = static_cast<int>(code);
  } else {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "exception 0x%08lx", code);
    state_->end.by = text.data();
    state_->end.by_name = name_of_exception(code);
  }
  return true;
}

const ExitStatus& Child::end() const noexcept {
  return state_->end;
}

void Child::ask_to_end() {
  if (!state_->process) return;
  // Which needs a console that both have.
  if (!state_->group || !GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, state_->id)) kill();
}

void Child::kill() {
  if (state_->job) TerminateJobObject(state_->job.get(), 1);
}

bool Child::send(std::string_view text) {
  if (text.empty()) return true;
  OVERLAPPED place{};
  place.hEvent = state_->ready.get();
  DWORD bytes = 0;
  bool late = false;
  if (!WriteFile(state_->channel.get(), text.data(), static_cast<DWORD>(text.size()), nullptr, &place) &&
      GetLastError() != ERROR_IO_PENDING)
    return false;
  return state_->complete(place, INFINITE, bytes, late) && bytes == text.size();
}

Heard Child::receive(std::string& line, std::optional<Clock::time_point> deadline) {
  State& s = *state_;
  while (!take_line(s.received, line)) {
    DWORD milliseconds = INFINITE;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      milliseconds = static_cast<DWORD>(std::clamp<std::int64_t>(left, 0, 0x7fffffff));
    }
    OVERLAPPED place{};
    place.hEvent = s.ready.get();
    DWORD bytes = 0;
    bool late = false;
    if (!ReadFile(s.channel.get(), s.part.data(), static_cast<DWORD>(s.part.size()), nullptr, &place) &&
        GetLastError() != ERROR_IO_PENDING)
      return Heard::gone;
    if (!s.complete(place, milliseconds, bytes, late)) return late ? Heard::late : Heard::gone;
    s.received.append(s.part.data(), bytes);
  }
  return Heard::line;
}

void Child::hang_up() {
  state_->channel.reset();
}

void end_group(std::intptr_t group) noexcept {
  TerminateJobObject(reinterpret_cast<HANDLE>(group), 1);
  Sleep(100);  // its files are closed a moment later
}

// ---- The other side

struct Parent::State {
  Handle channel, file;
  View memory;
  std::string received;
};

Parent::Parent() : state_(std::make_unique<State>()) {
  const char* const variable = std::getenv(channel_variable);
  unsigned long long channel = 0, file = 0;
  if (!variable || std::sscanf(variable, "%llu %llu", &channel, &file) != 2)
    throw std::runtime_error("another program starts this, nobody else");
  state_->channel.reset(reinterpret_cast<HANDLE>(static_cast<std::uintptr_t>(channel)));
  state_->file.reset(reinterpret_cast<HANDLE>(static_cast<std::uintptr_t>(file)));
  if (GetFileType(state_->channel.get()) != FILE_TYPE_PIPE) throw std::runtime_error("another program starts this, nobody else");
  // No debugger, and nobody to be asked.
  SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
  SetUnhandledExceptionFilter([](EXCEPTION_POINTERS* what) -> LONG {
    TerminateProcess(GetCurrentProcess(), what->ExceptionRecord->ExceptionCode);
    return EXCEPTION_EXECUTE_HANDLER;
  });
}
Parent::~Parent() = default;

bool Parent::send(std::string_view text) {
  DWORD bytes = 0;
  return WriteFile(state_->channel.get(), text.data(), static_cast<DWORD>(text.size()), &bytes, nullptr) && bytes == text.size();
}

std::optional<std::string> Parent::receive() {
  std::string line;
  std::array<char, 4096> part{};
  while (!take_line(state_->received, line)) {
    DWORD bytes = 0;
    if (!ReadFile(state_->channel.get(), part.data(), static_cast<DWORD>(part.size()), &bytes, nullptr) || bytes == 0)
      return std::nullopt;
    state_->received.append(part.data(), bytes);
  }
  return line;
}

char* Parent::memory(std::int64_t bytes) {
  if (!state_->memory.map(state_->file.get(), bytes))
    throw std::runtime_error("the shared memory of " + std::to_string(bytes) + " bytes cannot be mapped");
  return state_->memory.data();
}

void crash() {
  RaiseException(static_cast<DWORD>(EXCEPTION_ACCESS_VIOLATION), 0, 0, nullptr);
  std::abort();
}

}  // namespace glgemm::tools
