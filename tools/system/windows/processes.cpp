// Other programs on Windows: see processes.hpp. Each child is in a job of its own, which ends with this program.
#include "system/processes.hpp"

#include "system/windows/windows.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>

#include "system/files.hpp"
#include "system/program.hpp"

namespace glgemm::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// The variable that tells a child the handle of its channel.
constexpr const char* channel_variable = "GLGEMM_CHANNEL";

HANDLE handle_of(std::intptr_t channel) {
  return reinterpret_cast<HANDLE>(channel);
}

/// How much of a text is sent at a time.
DWORD part_of(std::string_view text) {
  return static_cast<DWORD>(std::min<std::size_t>(text.size(), 65536));
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

/// A job: its processes end when its last handle is closed, so at the latest when this program ends, in whatever way.
Handle make_job() {
  Handle job(CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits, sizeof limits);
  return job;
}

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

std::string program_beside(const std::string& name) {
  const std::string path = program_folder() + "\\" + name + ".exe";
  return GetFileAttributesW(native_path(path).c_str()) != INVALID_FILE_ATTRIBUTES ? path : "";
}

// ---- Children

struct Child::State {
  Handle process, job;
  DWORD id = 0;
  bool group = false;
  ExitStatus end;
  Handle channel, ready;  ///< `ready`: something has happened on the channel
  std::array<char, 65536> part{};

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
    variables[channel_variable] = std::to_string(reinterpret_cast<std::intptr_t>(theirs));
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
  for (DWORD bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
    OVERLAPPED place{};
    place.hEvent = state_->ready.get();
    bool late = false;
    if (!WriteFile(state_->channel.get(), text.data(), part_of(text), nullptr, &place) && GetLastError() != ERROR_IO_PENDING)
      return false;
    if (!state_->complete(place, INFINITE, bytes, late) || bytes == 0) return false;
  }
  return true;
}

Heard Child::receive_some(std::optional<Clock::time_point> deadline) {
  State& s = *state_;
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
  received_.append(s.part.data(), bytes);
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

Parent::Parent() {
  const char* const variable = std::getenv(channel_variable);
  long long channel = 0;
  if (variable && std::sscanf(variable, "%lld", &channel) == 1) channel_ = static_cast<std::intptr_t>(channel);
  if (channel_ == 0 || GetFileType(handle_of(channel_)) != FILE_TYPE_PIPE)
    throw std::runtime_error("another program starts this, nobody else");
  // No debugger, and nobody to be asked.
  SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
  SetUnhandledExceptionFilter([](EXCEPTION_POINTERS* what) -> LONG {
    TerminateProcess(GetCurrentProcess(), what->ExceptionRecord->ExceptionCode);
    return EXCEPTION_EXECUTE_HANDLER;
  });
}

bool Parent::send(std::string_view text) {
  for (DWORD bytes = 0; !text.empty(); text.remove_prefix(bytes))
    if (!WriteFile(handle_of(channel_), text.data(), part_of(text), &bytes, nullptr)) return false;
  return true;
}

bool Parent::receive_some() {
  std::array<char, 65536> part;
  DWORD bytes = 0;
  if (!ReadFile(handle_of(channel_), part.data(), static_cast<DWORD>(part.size()), &bytes, nullptr) || bytes == 0) return false;
  received_.append(part.data(), bytes);
  return true;
}

void crash() {
  RaiseException(static_cast<DWORD>(EXCEPTION_ACCESS_VIOLATION), 0, 0, nullptr);
  std::abort();
}

}  // namespace glgemm::tools
