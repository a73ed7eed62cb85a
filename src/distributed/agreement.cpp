// Ranks that agree on what went wrong, and on the arguments of a collective call.
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <exception>
#include <new>
#include <stdexcept>
#include <thread>

#include <glgemm/distributed.hpp>
#include <glgemm/error.hpp>

#include "distributed/cluster.hpp"

namespace glgemm {
namespace {

/// The types of exceptions that pass from rank to rank.
enum class Failure : int { none, invalid_argument, unsupported, out_of_memory, device_lost, gl_error, other };

struct Caught {
  Failure kind = Failure::none;
  std::string message{};
  std::int64_t bytes = 0;
};

Caught call(const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const std::invalid_argument& error) {
    return {Failure::invalid_argument, error.what()};
  } catch (const Unsupported& error) {
    return {Failure::unsupported, error.what()};
  } catch (const OutOfMemory& error) {
    return {Failure::out_of_memory, error.what(), error.bytes()};
  } catch (const DeviceLost& error) {
    return {Failure::device_lost, error.what()};
  } catch (const GlError& error) {
    return {Failure::gl_error, error.what()};
  } catch (const std::bad_alloc&) {
    return {Failure::other, "not enough main memory"};
  } catch (const std::exception& error) {
    return {Failure::other, error.what()};
  } catch (...) {
    return {Failure::other, "an exception of an unknown type"};
  }
}

[[noreturn]] void raise(const Caught& caught) {
  if (caught.kind == Failure::invalid_argument) throw std::invalid_argument(caught.message);
  if (caught.kind == Failure::unsupported) throw Unsupported(caught.message);
  if (caught.kind == Failure::out_of_memory) throw OutOfMemory(caught.message, caught.bytes);
  if (caught.kind == Failure::device_lost) throw DeviceLost(caught.message);
  if (caught.kind == Failure::gl_error) throw GlError(caught.message);
  throw std::runtime_error(caught.message);
}

/// The least of all ranks' numbers. A wait of MPI's own takes a core, and another rank, or a driver that computes on the CPU, may
/// need it.
int least(int mine, MPI_Comm communicator) {
  int result = 0, done = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &result, 1, MPI_INT, MPI_MIN, communicator, &request);
  for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  return result;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

}  // namespace

void on_all_ranks(MPI_Comm communicator, const std::function<void()>& f) {
  Caught caught = call(f);
  int rank = 0, size = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const int first = least(caught.kind == Failure::none ? size : rank, communicator);
  if (first == size) return;
  if (rank == first && size > 1) caught.message += fmt::format(" (on rank {} of {}, host {})", rank, size, host_name());
  std::array<std::int64_t, 3> header{static_cast<int>(caught.kind), caught.bytes,
                                     static_cast<std::int64_t>(caught.message.size())};
  MPI_Bcast(header.data(), 3, MPI_INT64_T, first, communicator);
  caught.kind = static_cast<Failure>(header[0]);
  caught.bytes = header[1];
  caught.message.resize(static_cast<std::size_t>(header[2]));
  MPI_Bcast(caught.message.data(), static_cast<int>(header[2]), MPI_CHAR, first, communicator);
  raise(caught);
}

namespace distributed {

Communicator::~Communicator() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (!ended && communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
}

void require_agreement(MPI_Comm communicator, const NamedValues& values) {
  std::vector<std::int64_t> first;
  for (const NamedValue& value : values) first.push_back(value.bits);
  MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_INT64_T, 0, communicator);
  on_all_ranks(communicator, [&] {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto& [name, bits, is_real] = values[i];
      const auto text = [real = is_real](std::int64_t of) {
        return real ? fmt::format("{}", std::bit_cast<double>(of)) : fmt::format("{}", of);
      };
      if (bits != first[i])
        throw std::invalid_argument(fmt::format("distributed multiply: the ranks disagree: {} is {} on rank 0 and {} here", name,
                                                text(first[i]), text(bits)));
    }
  });
}

}  // namespace distributed
}  // namespace glgemm
