// glgemm multiply, streamed: pieces of C are computed from files' sections and written to a file as they come, with a journal.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <glgemm/accelerators.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>
#include <glgemm/version.hpp>

#include "files/files.hpp"
#include "files/journal.hpp"
#include "multiply/multiply.hpp"
#include "multiply/sample_check.hpp"
#include "product/shapes.hpp"
#include "terminal/progress.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;
/// The format of the journals. A run with a journal of another format cannot be resumed.
constexpr int journal_format = 2;

std::string size_text(std::int64_t m, std::int64_t n, std::int64_t k) {
  return fmt::format("{}x{}x{}", m, n, k);
}

/// C in the file, from `offset` on and in C order, as a matrix that is read and written in sections.
HostMatrix matrix_in(PartFile& file, std::int64_t offset, std::int64_t rows, std::int64_t columns, Type type) {
  const std::int64_t bytes = element_bytes(type);
  // Calls f(offset in the file, offset in the section, bytes) for what is contiguous in both.
  const auto for_each_run = [=](const Section& section, const auto& f) {
    const bool whole = section.columns == columns;
    const std::int64_t runs = whole ? 1 : section.rows, length = (whole ? section.rows : 1) * section.columns * bytes;
    for (std::int64_t i = 0; i < runs; ++i)
      f(offset + ((section.row + i) * columns + section.column) * bytes, i * length, static_cast<std::size_t>(length));
  };
  HostMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.type = type;
  matrix.read = [&file, for_each_run](const Section& section, void* to) {
    for_each_run(section, [&](std::int64_t at, std::int64_t here, std::size_t length) {
      file.read(at, static_cast<char*>(to) + here, length);
    });
  };
  matrix.write = [&file, for_each_run](const Section& section, const void* from) {
    for_each_run(section, [&](std::int64_t at, std::int64_t here, std::size_t length) {
      file.write(at, static_cast<const char*>(from) + here, length);
    });
  };
  return matrix;
}

Json file_json(const InputFile& file) {
  const FileStatus& status = file.status();
  const MatrixPath path = parse_matrix_path(file.path());
  std::string real;
  if (find_real_path(path.file, real) != 0) real = whole_path(path.file);
  return {{"path", real + (path.array.empty() ? "" : ":" + path.array)},
          {"bytes", status.size},
          {"modified_ns", status.modified_ns},
          {"changed_ns", status.changed_ns},
          {"inode", status.number}};
}

/// All that the bits of the result depend on but for the plan.
Json identity(const MultiplyArguments& arguments, const FileProduct& product) {
  Json json{{"format", journal_format},
            {"glgemm", GLGEMM_VERSION_STRING},
            {"A", file_json(product.a.file())},
            {"B", file_json(product.b.file())},
            {"op A", to_string(product.op_a)},
            {"op B", to_string(product.op_b)},
            {"alpha", {product.alpha.real(), product.alpha.imag()}},
            {"beta", {product.beta.real(), product.beta.imag()}},
            {"type", product.types_text()},
            {"type of C", to_string(product.c_type)},
            {"kernel", arguments.kernel}};
  if (arguments.precision != "standard") json["precision"] = arguments.precision;
  if (product.c0) json["C0"] = file_json(product.c0->file());
  return json;
}

Json plan_json(const StreamPlan& plan) {
  return {{"piece", size_text(plan.piece_m, plan.piece_n, plan.piece_k)},
          {"order", plan.by_columns ? "columns" : "rows"},
          {"kernel", to_string(plan.window.kernel)},
          {"transposed", plan.window.transposed},
          {"parts of k", plan.window.parts},
          {"window", size_text(plan.window.piece_m, plan.window.piece_n, plan.window.piece_k)}};
}

std::string percent(std::chrono::nanoseconds part, std::chrono::nanoseconds whole) {
  return tools::percent(static_cast<double>(part.count()) / static_cast<double>(std::max<std::int64_t>(1, whole.count())));
}

Json device_json(const DeviceInfo& device) {
  return {{"renderer", device.renderer}, {"version", device.version}};
}

/// What computes a product: one device, or several.
class Computer {
 public:
  virtual ~Computer() = default;
  /// Fills in the options that the caller left open, so that another run decides alike. Returns what the bits depend on.
  virtual Json decide(const HostGemm& product, StreamOptions& options) = 0;
  virtual void multiply(const HostGemm& product, const StreamOptions& options) = 0;
  /// Lines for a person about what multiply() did.
  virtual std::string text() const = 0;
};

std::string stream_text(const StreamReport& report) {
  const std::int64_t windows = report.windows / std::max<std::int64_t>(1, report.pieces);
  std::string text = fmt::format(
      "{} {} of at most {}x{}, k in {} {}; {} moved (all pieces: {}, {:.2f} of the bound of {}); {} of the time in transfers, {} "
      "computing",
      report.pieces, report.pieces == 1 ? "piece" : "pieces", report.piece_m, report.piece_n, windows,
      windows == 1 ? "window" : fmt::format("windows of at most {}", report.piece_k),
      bytes_text(static_cast<double>(report.bytes_to_device + report.bytes_from_device)), bytes_text(report.planned_bytes),
      report.bound_bytes > 0 ? report.planned_bytes / report.bound_bytes : 1.0, bytes_text(report.bound_bytes),
      percent(report.transfer_time, report.total_time), percent(report.compute_time, report.total_time));
  if (report.contexts_lost > 0) text += fmt::format("; contexts lost: {}", report.contexts_lost);
  if (report.out_of_memory > 0) text += fmt::format("; smaller pieces for want of memory: {}", report.out_of_memory);
  return text;
}

class OneDevice : public Computer {
 public:
  OneDevice(const std::string& name, EngineOptions options) : name_(name), engine_options_(std::move(options)) { make(); }
  ~OneDevice() override {
    try {
      if (engine_) engine_->release();
    } catch (const std::exception&) {  // its context is gone
      engine_->abandon();
    }
  }

  Json decide(const HostGemm& product, StreamOptions& options) override {
    if (options.device_memory_limit_bytes == 0) options.device_memory_limit_bytes = engine_->device_memory_bytes();
    if (options.memory_limit_bytes > 0)
      options.device_memory_limit_bytes = std::min(options.device_memory_limit_bytes, options.memory_limit_bytes);
    return {{"device", device_json(engine_->device())}, {"plan", plan_json(make_stream_plan(*engine_, product, options))}};
  }
  void multiply(const HostGemm& product, const StreamOptions& options) override {
    StreamOptions own = options;
    own.new_engine = [this]() -> Engine& {
      engine_->abandon();
      engine_.reset();
      context_.reset();
      make();
      return *engine_;
    };
    glgemm::multiply(*engine_, product, own, &report_);
  }
  std::string text() const override {
    return fmt::format("{} on {}: {} with transfers and compiling\n{}", report_.kernel, engine_->device().renderer,
                       time_text(report_.total_time), stream_text(report_));
  }

 private:
  void make() {
    HeadlessOptions options;
    options.device = name_;
    options.robust = true;
    try {
      context_.emplace(options);
    } catch (const Unsupported&) {
      options.robust = false;  // a context that is lost is then not told
      context_.emplace(options);
    }
    engine_.emplace(HeadlessContext::get_proc_address, engine_options_);
  }

  std::string name_;
  EngineOptions engine_options_;
  std::optional<HeadlessContext> context_;
  std::optional<Engine> engine_;
  StreamReport report_;
};

class SeveralDevices : public Computer {
 public:
  SeveralDevices(const std::string& list, EngineOptions options)
      : accelerators_(headless_accelerators(list), {.engine = std::move(options)}) {}

  Json decide(const HostGemm&, StreamOptions&) override {
    Json devices = Json::array();
    for (const AcceleratorInfo& info : accelerators_.info())
      if (info.failure.empty()) devices.push_back(device_json(info.device));
    return {{"accelerators", devices}};
  }
  void multiply(const HostGemm& product, const StreamOptions& options) override {
    accelerators_.multiply(product, options, &report_);
  }
  std::string text() const override {
    std::string lines = fmt::format("{} accelerators: {} with transfers and compiling, {} moved", report_.accelerators.size(),
                                    time_text(report_.total_time), bytes_text(static_cast<double>(report_.bytes_moved())));
    for (const AcceleratorReport& one : report_.accelerators) {
      const StreamReport& stream = one.stream;
      lines += "\n  " + one.name + ": ";
      lines += stream.pieces == 0 ? "no piece"
                                  : fmt::format("{}, {}, {} waiting", stream.kernel, stream_text(stream),
                                                percent(one.waiting_time, stream.total_time));
      if (!one.failure.empty()) lines += "; given up: " + one.failure;
    }
    return lines;
  }

 private:
  Accelerators accelerators_;
  AcceleratorsReport report_;
};

/// The output, and what is known of an earlier run.
class Output {
 public:
  Output(const MultiplyArguments& arguments, const FileProduct& product)
      : header_(npy_header(product.result, product.shape())),
        file_(arguments.output),
        journal_path_(file_.target() + ".glgemm-journal") {
    const double bytes = static_cast<double>(header_.size()) + static_cast<double>(product.m) * static_cast<double>(product.n) *
                                                                   static_cast<double>(element_bytes(product.c_type));
    const double room =
        static_cast<double>(free_bytes(to_text(to_path(file_.target()).parent_path()))) + static_cast<double>(file_.size());
    if (bytes > room)
      throw cannot_write(arguments.output, fmt::format("it would have {} for a product of {}x{}, and its disk has {} to be had",
                                                       bytes_text(bytes), product.m, product.n, bytes_text(room)));
    bytes_ = static_cast<std::int64_t>(header_.size()) + product.m * product.n * element_bytes(product.c_type);
    if (!arguments.resume) {
      if (file_.size() > 0) multiply_note("what an interrupted run has left is replaced; --resume goes on with it");
      return;
    }
    earlier_ = Journal::read(journal_path_);
    if (!earlier_ || file_.size() == 0) {
      multiply_note("there is no interrupted run to go on with" +
                    (earlier_ ? ": " + quote(file_.temporary()) + " is missing" : std::string()) +
                    "; it starts from the beginning");
      earlier_.reset();
    }
  }

  PartFile& file() noexcept { return file_; }
  std::int64_t data_offset() const noexcept { return static_cast<std::int64_t>(header_.size()); }
  const std::optional<JournalContents>& earlier() const noexcept { return earlier_; }
  Journal& journal() noexcept { return *journal_; }

  /// Begins, or goes on.  @throws std::invalid_argument  the earlier run was another one
  void begin(const Json& header) {
    if (earlier_) {
      if (const Json& format = earlier_->header.value("format", Json()); format != journal_format)
        throw std::invalid_argument(
            fmt::format("--resume: {} has the format {} of another version of glgemm, and this one goes on with the format {}; "
                        "without --resume it starts from the beginning",
                        quote(journal_path_), format.dump(), journal_format));
      if (const auto list = differences(earlier_->header, header); !list.empty())
        throw std::invalid_argument(
            fmt::format("--resume: {} is of another product: {}; without --resume it starts from the beginning",
                        quote(journal_path_), fmt::join(list, "; ")));
      if (file_.size() != bytes_)
        throw FileError(fmt::format("--resume: {} has {} bytes instead of {}; without --resume it starts from the beginning",
                                    quote(file_.temporary()), file_.size(), bytes_));
      journal_.emplace(journal_path_, *earlier_);
      return;
    }
    remove_file(journal_path_);  // it must not be taken for this file's
    file_.allocate(bytes_);
    file_.write(0, header_.data(), header_.size());
    file_.sync();
    journal_.emplace(journal_path_, header);
  }
  /// How to go on, for messages; once begin() has returned.
  std::string kept() const {
    return "what is done is kept in " + quote(file_.temporary()) + " and " + quote(journal_path_) + "; --resume goes on with it";
  }
  void commit() {
    file_.sync();
    file_.commit();
    journal_->remove();
  }
  void remove() noexcept {
    file_.remove();
    journal_->remove();
  }

 private:
  std::string header_;
  PartFile file_;
  std::string journal_path_;
  std::int64_t bytes_ = 0;
  std::optional<JournalContents> earlier_;
  std::optional<Journal> journal_;
};

}  // namespace

HostMatrix matrix_of(const NpyFile& file, const Quantization& as_it_lies) {
  HostMatrix matrix;
  matrix.rows = file.header().rows;
  matrix.columns = file.header().columns;
  matrix.type = file.type();
  matrix.layout = file.layout();
  matrix.read = [&file](const Section& section, void* to) { file.read(section, to, file.layout()); };
  matrix.quantization = as_it_lies;
  if (as_it_lies)
    matrix.read_codes = [&file](const Section& section, const QuantizedTarget& to) { file.read_codes(section, to.codes); };
  return matrix;
}

HostGemm host_gemm_of(const FileProduct& product) {
  HostGemm gemm;
  gemm.op_a = product.op_a;
  gemm.op_b = product.op_b;
  gemm.alpha = product.alpha;
  gemm.beta = product.beta;
  const Formats formats = product.stored.value_or(Formats{});
  gemm.a = matrix_of(product.a, formats.a.quantization);
  gemm.b = matrix_of(product.b, formats.b.quantization);
  return gemm;
}

void note_conversions(const FileProduct& product) {
  const Formats stored = product.stored.value_or(Formats{});
  for (const NpyFile* file : product.files()) {
    const bool as_it_lies = (file == &product.a && stored.a.quantization) || (file == &product.b && stored.b.quantization);
    if (const std::string conversion = file->conversion(); !as_it_lies && !conversion.empty()) multiply_note(conversion);
  }
}

void note_overflow(const NpyFile& file, std::int64_t overflowed) {
  if (overflowed > 0)
    multiply_note(fmt::format("some elements of {} are beyond the range of {} and become {}", quote(file.file().path()),
                              to_string(file.type()), overflow_name(file.type())));
}

int multiply_streamed(const MultiplyArguments& arguments, FileProduct& product) {
  product.read_as_stored();
  HostGemm gemm = host_gemm_of(product);
  note_conversions(product);
  Output output(arguments, product);
  const auto recorded = [&](const char* name, const std::optional<std::int64_t>& given) {
    if (given || !output.earlier()) return given.value_or(0);
    return output.earlier()->header.value("limits", Json::object()).value(name, std::int64_t{0});
  };

  const std::unique_ptr<Computer> computer =
      arguments.accelerators
          ? std::unique_ptr<Computer>(std::make_unique<SeveralDevices>(*arguments.accelerators, arguments.engine_options()))
          : std::make_unique<OneDevice>(arguments.device, arguments.engine_options());
  const HostMatrix c = gemm.c = matrix_in(output.file(), output.data_offset(), product.m, product.n, product.c_type);
  if (product.c0) gemm.c.read = [&](const Section& section, void* to) { product.c0->read(section, to, Layout::row_major); };

  StreamOptions options;
  options.plan = arguments.plan_options();
  // Limits that were not given are taken from the earlier run, so that the plan is the same.
  options.memory_limit_bytes = recorded("memory", arguments.memory_limit_bytes);
  options.device_memory_limit_bytes = recorded("device memory", arguments.device_memory_limit_bytes);
  const Json decided = computer->decide(gemm, options);
  Json header = identity(arguments, product);
  header["limits"] = {{"memory", options.memory_limit_bytes}, {"device memory", options.device_memory_limit_bytes}};
  header.update(decided);
  output.begin(header);

  const double all = static_cast<double>(product.m) * static_cast<double>(product.n);
  double done = 0;
  if (output.earlier()) {
    options.done = output.earlier()->pieces;
    for (const Section& piece : options.done) done += static_cast<double>(piece.rows) * static_cast<double>(piece.columns) / all;
    multiply_note(fmt::format("{} {}, {} of the product, are there from an interrupted run", options.done.size(),
                              options.done.size() == 1 ? "piece" : "pieces", percent(done)));
  }

  std::optional<Check> result;
  {
    const LastWords last_words("multiply", output.kept());
    try {
      Progress progress(1);
      const TimeLeft left(done);
      options.progress = [&](double share) { progress.show(share, left.text(share)); };
      options.piece_done = [&](const Section& piece) {
        output.file().sync();
        product.require_unchanged();
        output.journal().add(piece);
      };
      progress.show(done, "");
      computer->multiply(gemm, options);
      product.require_unchanged();
      if (arguments.check != "none") {
        progress.show(1, "checking");
        product.read_in_one_type();
        HostGemm numbers = host_gemm_of(product);
        numbers.c = gemm.c;
        result = check_sample(numbers, c, options.memory_limit_bytes > 0 ? options.memory_limit_bytes : std::int64_t{1} << 28,
                              options.plan.precision);
        product.require_unchanged();
      }
      // A wrong product is not to be gone on with.
      if (!result || result->passed)
        output.commit();
      else
        output.remove();
    } catch (const FileChanged&) {
      output.remove();
      throw;
    } catch (const std::bad_alloc&) {
      throw std::runtime_error("not enough memory; " + output.kept());
    } catch (const std::exception& error) {
      throw std::runtime_error(error.what() + ("; " + output.kept()));
    }
  }

  for (const NpyFile* file : product.files()) note_overflow(*file, file->overflowed());
  return print_done(std::cout, arguments, product, computer->text(), result,
                    arguments.check == "none" ? "" : ": the memory limit holds no row and column of the factors");
}

}  // namespace glgemm::tools
