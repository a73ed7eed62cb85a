// Finds the BLAS below by the loader, and calls it.
#include "blas/next.hpp"

#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string_view>

#include "base/thread.hpp"

namespace glgemm::blas {
namespace {

/// The handle of the library that GLGEMM_BLAS_NEXT names; null without one.
void* named_library() noexcept {
  static void* const handle = []() -> void* {
    const char* path = ::secure_getenv("GLGEMM_BLAS_NEXT");
    if (!path || !*path) return nullptr;
    void* loaded = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) say("GLGEMM_BLAS_NEXT={} can't be loaded, and is not used: {}", path, ::dlerror());
    return loaded;
  }();
  return handle;
}

void* system_library() noexcept {
  static void* const handle = ::dlopen(GLGEMM_BLAS_SYSTEM, RTLD_NOW | RTLD_LOCAL);
  return handle;
}

/// Where the file of a function begins in memory.
void* base_of(const void* function) noexcept {
  Dl_info found{};
  return ::dladdr(function, &found) ? found.dli_fbase : nullptr;
}

/// Whether it is of this library.
bool is_own(const void* function) noexcept {
  static void* const own = base_of(reinterpret_cast<const void*>(&find_next));
  return base_of(function) == own;
}

/// Not our own: the system's BLAS may be a link to this library.
void* foreign(void* function) noexcept {
  return function && !is_own(function) ? function : nullptr;
}

constexpr std::array fortran_names = {"sgemm_", "dgemm_", "cgemm_", "zgemm_"};
constexpr std::array fortran_names_64 = {"sgemm_64_", "dgemm_64_", "cgemm_64_", "zgemm_64_"};

std::array<AnyFunction, 4> find_all(const std::array<const char*, 4>& names) noexcept {
  std::array<AnyFunction, 4> found{};
  std::transform(names.begin(), names.end(), found.begin(), [](const char* name) { return find_next(name); });
  return found;
}

/// The number that a parameter of CBLAS's gemm has in the call with A and B exchanged: m and n, lda and ldb.
constexpr std::array exchanged = {0, 1, 2, 3, 5, 4, 6, 7, 8, 11, 10, 9, 12, 13, 14, 15, 16};

}  // namespace

thread_local const InsideNext* InsideNext::innermost_ = nullptr;

/// Then code of others stands between code of this library, and the outer part of that has the object. Where the stack cannot be
/// followed so far, it is taken to be there.
bool InsideNext::is_on_stack(const InsideNext* object) noexcept {
  struct Walk {
    std::uintptr_t object;
    bool is_past_this_call = false, is_gone = false;
  } walk{reinterpret_cast<std::uintptr_t>(object)};
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* given) {
        auto& [at, is_past_this_call, is_gone] = *static_cast<Walk*>(given);
        is_gone = _Unwind_GetCFA(frame) > at;  // where the frame begins: it and all outer ones lie behind the object
        const bool own = is_own(reinterpret_cast<const void*>(_Unwind_GetIP(frame)));
        if (is_gone || (own && is_past_this_call)) return _URC_END_OF_STACK;
        is_past_this_call = is_past_this_call || !own;
        return _URC_NO_REASON;
      },
      &walk);
  return !walk.is_gone;
}

AnyFunction find_next(const char* name) noexcept {
  void* const named = named_library();
  void* found = foreign(::dlsym(named ? named : RTLD_NEXT, name));
  if (!found && !named && system_library()) found = foreign(::dlsym(system_library(), name));
  return reinterpret_cast<AnyFunction>(found);
}

std::string next_file() {
  for (const char* name : {"sgemm_", "sgemm_64_", "cblas_sgemm"}) {
    const AnyFunction function = find_next(name);
    Dl_info found{};
    if (!function || !::dladdr(reinterpret_cast<const void*>(function), &found)) continue;
    char* whole = ::realpath(found.dli_fname, nullptr);
    std::string path = whole ? whole : found.dli_fname;
    std::free(whole);
    return path;
  }
  return "none";
}

bool multiply_by_next(const Product& p) {
  static const std::array<AnyFunction, 4> plain = find_all(fortran_names), suffixed = find_all(fortran_names_64);
  const bool is_large = std::max({p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) > INT_MAX;
  const std::size_t index = index_of(p.type);
  const AnyFunction function = is_large || !plain[index] ? suffixed[index] : plain[index];
  if (!function) return false;
  // The plain name may belong to a BLAS with 32- or with 64-bit integers. A pointer to a 64-bit one is right for both.
  static_assert(std::endian::native == std::endian::little);
  using Integer = const std::int64_t*;
  using Fortran = void(const char*, const char*, Integer, Integer, Integer, const void*, const void*, Integer, const void*,
                       Integer, const void*, void*, Integer, std::size_t, std::size_t);
  constexpr char letters[] = "NTCR?";
  const InsideNext inside;
  reinterpret_cast<Fortran*>(function)(&letters[static_cast<int>(p.op_a)], &letters[static_cast<int>(p.op_b)], &p.m, &p.n, &p.k,
                                       p.alpha, p.a, &p.lda, p.b, &p.ldb, p.beta, p.c, &p.ldc, 1, 1);
  return true;
}

void report_to_xerbla(const char* routine, int parameter) {
  // "sgemm_" and "sgemm_64_" are "SGEMM " there. This takes no memory, which may be short.
  std::array<char, 40> text{};
  std::string_view name(text.data(), std::string_view(routine).copy(text.data(), text.size()));
  if (!name.starts_with("cblas")) {
    std::transform(text.begin(), text.begin() + 5, text.begin(), [](char x) { return static_cast<char>(x - 'a' + 'A'); });
    text[5] = ' ';
    name = name.substr(0, 6);
  }
  const std::int64_t number = parameter;
  void* function = ::dlsym(RTLD_DEFAULT, "xerbla_");
  if (!function) function = reinterpret_cast<void*>(find_next("xerbla_"));
  if (function)
    reinterpret_cast<void (*)(const char*, const std::int64_t*, std::size_t)>(function)(name.data(), &number, name.size());
  else
    say("on entry to {} parameter number {} had an illegal value", name, parameter);
}

bool report_to_own_cblas_xerbla(const char* routine, int parameter, bool row_major, int value) {
  // The program's own comes before this library in the loader's order. The one of the BLAS below ends the program, at wrong sizes
  // as well, which that BLAS itself reports by xerbla_.
  void* const function = ::dlsym(RTLD_DEFAULT, "cblas_xerbla");
  if (!function || function == ::dlsym(RTLD_NEXT, "cblas_xerbla") ||
      function == reinterpret_cast<void*>(find_next("cblas_xerbla")))
    return false;
  // Reference CBLAS sets these two for the time of a call, and its cblas_xerbla exchanges what a row-major call has exchanged.
  int* const is_row_major = static_cast<int*>(::dlsym(RTLD_DEFAULT, "RowMajorStrg"));
  int* const is_from_c = static_cast<int*>(::dlsym(RTLD_DEFAULT, "CBLAS_CallFromC"));
  if (row_major && !is_row_major) parameter = exchanged.at(static_cast<std::size_t>(parameter));
  constexpr const char* forms[] = {"Illegal layout setting, %d\n", "Illegal TransA setting, %d\n",
                                   "Illegal TransB setting, %d\n"};
  const struct Setting {
    Setting(int* place, int value) : at(place) {
      if (at) *at = value;
    }
    ~Setting() {  // also where cblas_xerbla throws
      if (at) *at = 0;
    }
    int* at;
  } storage(is_row_major, row_major), origin(is_from_c, 1);
  // An integer of either size is right in a register.
  reinterpret_cast<void (*)(std::int64_t, const char*, const char*, ...)>(function)(
      parameter, routine, parameter <= 3 ? forms[parameter - 1] : "", value);
  return true;
}

void say_line(fmt::string_view form, fmt::format_args values, bool once) noexcept {
  // Never destroyed: calls may come while the program ends.
  static auto& mutex = *new std::mutex;
  static std::array<std::size_t, 100> said{};  // by their hashes
  static std::size_t count = 0;
  std::array<char, 2000> text;
  const auto written = fmt::vformat_to_n(text.data(), text.size(), form, values);
  const std::string_view line(text.data(), std::min(text.size(), written.size));
  const Undisturbed undisturbed;  // a thread may be cancelled where it writes
  const UnsignalledWrites unsignalled;
  const std::lock_guard lock(mutex);
  if (once) {
    const std::size_t hash = std::hash<std::string_view>{}(line);
    const auto end = said.begin() + static_cast<std::ptrdiff_t>(count);
    if (count == said.size() || std::find(said.begin(), end, hash) != end) return;
    said[count++] = hash;
  }
  std::fprintf(stderr, "glgemm_blas: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace glgemm::blas
