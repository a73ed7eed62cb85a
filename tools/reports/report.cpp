// Finds out all that one wants to know of glgemm on a device, and writes it as JSON and in Markdown.
#include "reports/report.hpp"

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <glgemm/version.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "bench/samples.hpp"
#include "files/files.hpp"
#include "peers/peers.hpp"
#include "processes/child.hpp"
#include "product/shapes.hpp"
#include "reports/text.hpp"
#include "system/files.hpp"
#include "terminal/progress.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string joined(const Words& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

class Reporter {
 public:
  explicit Reporter(const ReportOptions& options) : options_(options) {
    std::error_code none;
    if (!options_.checks.empty() && !fs::is_directory(to_path(options_.checks), none))
      throw std::invalid_argument("--checks: '" + options_.checks + "' is not a folder");
    if (!options_.device.empty()) {
      variables_["GLGEMM_DEVICE"] = options_.device;
      const ProgramResult ended = run_program({"glgemm", "inspect", "--shape", "1,1,1"}, variables_, 300, scratch_);
      if (ended.status == 2) throw std::invalid_argument("--device: " + last_words(ended.err));
    }
    std::error_code error;
    fs::create_directories(to_path(options_.output), error);
    // Proves that they can be written, before long work.
    OutputFile{path("report.json")};
    OutputFile{path("report.md")};
    report_ = {{"format", "glgemm report 2"},
               {"date", today()},
               {"glgemm", GLGEMM_VERSION_STRING},
               {"command", command()},
               {"quick", options_.quick},
               {"device", Json::object()},
               {"steps", Json::array()},
               {"goals", Json::array()},
               {"devices", Json::array()},
               {"bench", Json::array()},
               {"cublas", nullptr},
               {"tuning", nullptr},
               {"tune", nullptr},
               {"tests_say", Json::array()}};
  }

  int run() {
    using Section = void (Reporter::*)();
    using Sections = std::array<Section, 13>;
    constexpr Sections all{&Reporter::devices, &Reporter::roofline, &Reporter::checks, &Reporter::tune,  &Reporter::table,
                           &Reporter::peers,   &Reporter::narrow,   &Reporter::shapes, &Reporter::types, &Reporter::enqueue,
                           &Reporter::first,   &Reporter::streamed, &Reporter::cublas};
    constexpr Sections by_worth{&Reporter::devices, &Reporter::roofline, &Reporter::table,   &Reporter::cublas, &Reporter::types,
                                &Reporter::narrow,  &Reporter::tune,     &Reporter::checks,  &Reporter::shapes, &Reporter::peers,
                                &Reporter::enqueue, &Reporter::first,    &Reporter::streamed};
    const Sections& sections = limited() ? by_worth : all;
    write();
    Progress progress(static_cast<double>(sections.size()));
    progress_ = &progress;
    for (const Section section : sections) {
      (this->*section)();
      ++sections_done_;
    }
    progress_ = nullptr;
    progress.clear();
    write();
    std::cout << "wrote " << path("report.json") << " and " << path("report.md") << '\n';
    return failed_ ? 1 : 0;
  }

 private:
  bool limited() const { return options_.minutes > 0; }
  /// The seconds that are left, 0 if there is no limit; or `most`, if that is less and not 0.
  double left(double most = 0) const {
    if (!limited()) return most;
    const double seconds = std::max(0.001, 60 * options_.minutes - milliseconds_since(begin_) / 1e3);
    return most > 0 ? std::min(most, seconds) : seconds;
  }
  /// Whether there is time for another step; else it is left out.
  bool has_time(const std::string& name) {
    constexpr double least = 1;
    if (!limited() || left() > least) return true;
    left_out(name, time_was_up);
    return false;
  }

  static std::string name_of(const std::string& file) { return to_text(to_path(file).filename()); }
  std::string path(const std::string& name) const { return to_text(to_path(options_.output) / name); }

  std::string command() const {
    Words words{"tools/report"};
    const auto option = [&](const char* name, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {name, value});
    };
    if (options_.quick) words.emplace_back("--quick");
    if (limited()) words.insert(words.end(), {"--minutes", number(options_.minutes)});
    option("--device", options_.device);
    option("--size", options_.sizes);
    for (const std::string& file : options_.shapes) option("--shapes", name_of(file));
    if (options_.peer != "auto") option("--peer", options_.peer);
    if (options_.no_tune) words.emplace_back("--no-tune");
    if (options_.no_checks) words.emplace_back("--no-checks");
    return joined(words);
  }

  /// Both files, whole, with what is known by now.
  void write() {
    report_["goals"] = goals(report_);
    write_file(path("report.md"), markdown(report_));
    write_file(path("report.json"), json_text(report_));
  }

  void ends(const std::string& name, const std::string& command, const std::string& state, const std::string& why,
            double seconds) {
    const std::string reason = without_folders(why);
    report_["steps"].push_back(
        {{"name", name}, {"state", state}, {"why", reason}, {"seconds", seconds}, {"command", without_folders(command)}});
    failed_ |= state == "failed";
    if (progress_) progress_->clear();
    std::cout << name << ": " << state << (reason.empty() ? "" : ": " + reason) << ", " << static_cast<int>(seconds + 0.5) << " s"
              << std::endl;
    write();
  }
  void left_out(const std::string& name, const std::string& why) { ends(name, "", "left out", why, 0); }

  /// Says what is under way.
  void begins(const std::string& name) {
    if (progress_) progress_->clear();
    std::cout << name << " ..." << std::endl;
    if (progress_) progress_->show(sections_done_, name);
  }

  ProgramResult start(const std::string& name, const Words& words, double limit = 0) {
    begins(name);
    return run_program(words, variables_, left(limit), scratch_);
  }

  void devices() {
    const Words words{"glgemm", "devices", "--json"};
    const ProgramResult ended = start("devices", words, 300);
    const Json found = Json::parse(ended.out, nullptr, false);
    if (found.is_object()) report_["devices"] = found.at("devices");
    const bool failed = ended.status != 0 || !found.is_object();
    ends("devices", joined(words), failed ? "failed" : "ok", failed ? why(ended) : "", ended.seconds);
  }

  /// `glgemm bench` with these arguments; what it found, or null.
  const Json* bench(const std::string& section, const std::string& name, const Words& arguments, bool tell = true) {
    if (!has_time(name)) return nullptr;
    Words words{"glgemm", "bench"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    if (options_.quick && section != "first") words.insert(words.end(), {"--repeats", "3", "--warmup", "1"});
    const std::string shown = joined(words), json = scratch_.file("bench.json");
    std::error_code ignored;
    fs::remove(json, ignored);
    words.insert(words.end(), {"--json", json});
    const ProgramResult ended = tell ? start(name, words, left() / 2)  // no step takes all that is left
                                     : run_program(words, variables_, left(), scratch_);
    Json found = Json::parse(contents(json), nullptr, false);
    const bool complete = found.is_object();
    if (complete && report_["device"].empty()) report_["device"] = found.at("device");
    if (ended.status == 0 && complete) {
      if (tell) {
        take(section, shown, found);
        ends(name, shown, "ok", "", ended.seconds);
      }
    } else {
      const bool wrong = ended.status == 1 && complete;
      if (wrong && tell) take(section, shown, found);
      if (ended.late) {
        ends(name, shown, "left out", time_was_up, ended.seconds);
        return nullptr;
      }
      ends(name, shown, "failed", wrong ? "a result is wrong" : why(ended), ended.seconds);
      if (!wrong) return nullptr;
    }
    last_ = std::move(found);
    return &last_;
  }
  void take(const std::string& section, const std::string& command, const Json& found) {
    report_["bench"].push_back({{"section", section}, {"command", without_folders(command)}, {"found", found}});
  }

  bool software() const { return report_["device"].value("software", false); }

  void roofline() {
    Words words{"--size", "1024", "--kernel", "auto"};
    if (options_.quick) words = {"--shape", "256,1,256", "--kernel", "auto,naive"};  // of the few columns, see narrow()
    words.insert(words.end(), {"--roofline", "--cpu-seconds", "1"});
    const Json* const found = bench("roofline", "roofline", words);
    if (!found && options_.device.empty() && !std::getenv("GLGEMM_DEVICE"))
      for (const Json& device : report_["devices"])  // at least what devices says
        if (device.at("usable").get<bool>() && report_["device"].empty())
          for (const char* field : {"vendor", "renderer", "version", "software"}) report_["device"][field] = device.at(field);
  }

  void checks() {
    if (options_.no_checks) return left_out("checks", "as asked for");
    if (options_.quick && options_.checks.empty()) return left_out("checks", "a quick run has none");
    if (options_.checks.empty()) return left_out("checks", "no build folder with tests was named");
    if (!has_time("checks")) return;
    const fs::path folder = fs::absolute(to_path(options_.checks));
    Variables variables = variables_;
    const std::string figures = variables["GLGEMM_TEST_FIGURES"] = scratch_.file("figures");  // one in JSON on each line
    variables["GLGEMM_PROGRAM_CACHE"] = variables["GLGEMM_TUNING"] = "";  // tests do not depend on what the user has there
    std::string commands, results, log;
    bool passed = true;
    double seconds = 0;
    for (const std::string name :
         {"bin/glgemm_tests", "bin/glgemm_gl_tests", "tests/multiply/cli.sh", "tests/multiply/cli_streamed.sh",
          "tests/multiply/cli_formats.sh", "tests/multiply/cli_verify.sh", "tests/product/cli_convolution.sh",
          "tests/files/cli_models.sh", "tests/tune/cli.sh"}) {
      const bool script = name.ends_with(".sh");
      if (script && !program_suffix.empty()) {
        results += "; " + name + ": left out, bash runs it and this is Windows";
        continue;
      }
      const std::string file = script ? name : name + std::string(program_suffix);
      const auto words = [&](const fs::path& in) {
        return script ? Words{"bash", to_text(in / file), to_text(in / "bin/glgemm")} : Words{to_text(in / file), "--duration"};
      };
      TestResult result{false, "it is not there"};
      if (std::error_code error; fs::exists(folder / file, error)) {
        begins("checks, " + name);
        const bool by_files = limited() && program_suffix.empty() && name == "bin/glgemm_gl_tests";
        const ProgramResult ended =
            run_program(by_files ? side_by_side(to_text(folder / file)) : words(folder), variables, left(7200), scratch_);
        result = by_files ? results_by_files(ended.out) : test_result(ended.out, ended.status == 0 ? "" : why(ended));
        if (limited() && ended.late) result = {result.passed || !by_files, result.text + ", " + time_was_up};
        seconds += ended.seconds;
        log += "==== " + name + ": " + result.text + "\n" + ended.out + ended.err + "\n";
      }
      passed &= result.passed;
      commands += (commands.empty() ? "" : "; ") + joined(words(""));
      results += (results.empty() ? "" : "; ") + name + ": " + result.text;
    }
    std::istringstream lines(contents(figures));
    for (std::string line; std::getline(lines, line);)
      if (Json figure = Json::parse(line, nullptr, false); figure.is_object())  // the last may be cut off
        report_["tests_say"].push_back(std::move(figure));
    write_file(path("checks.txt"), without_folders(log));
    ends("checks", commands, passed ? "ok" : "failed", results, seconds);
  }

  /// The files of a program's test cases, each a process with a time limit, as many at once as there are cores. A line of what
  /// this prints is an exit status and a file; what the file's tests have printed is beside it.
  Words side_by_side(const std::string& program) const {
    // clang-format off
    constexpr const char* script =
        R"sh("$0" -ltc -r=xml | grep -o 'filename="[^"]*"' | cut -d'"' -f2 | sort -u | xargs -P "$(nproc)" -I{} bash -c )sh"
        R"sh('timeout 120 "$0" --duration "-sf=$2" >"$1.$(basename "$2")" 2>&1; echo "$? $2"' "$0" "$1" {})sh";
    // clang-format on
    return {"bash", "-c", script, program, scratch_.file("tests")};
  }
  TestResult results_by_files(const std::string& ended) const {
    TestResult all{true, ""};
    int passed = 0;
    std::istringstream lines(ended);
    std::string file;
    for (int status = 0; lines >> status && std::getline(lines >> std::ws, file);) {
      if (status == 77) continue;  // nothing that this device can run
      const std::string name = name_of(file);
      const std::string trouble = status == 0     ? ""
                                  : status == 124 ? "no end within 120 s"
                                                  : fmt::format("exit status {}", status);
      const TestResult one = test_result(contents(scratch_.file("tests." + name)), trouble);
      passed += one.passed;
      if (!one.passed) all = {false, all.text + "; " + name + ": " + one.text};
    }
    all.passed &= passed > 0;
    all.text = fmt::format("{} files passed", passed) + all.text;
    return all;
  }

  void tune() {
    if (options_.no_tune) return left_out("tune", "as asked for");
    if (!has_time("tune")) return;
    const std::string table = path("tuning.json");
    Words words{"glgemm", "tune", "--resume"};
    if (options_.quick) words.insert(words.end(), {"--size", "64", "--kernel", "naive"});
    if (limited()) words.insert(words.end(), {"--candidates", "30"});
    if (!options_.device.empty()) words.insert(words.end(), {"--device", options_.device});
    words.insert(words.end(), {"--output", table});
    const std::string shown = joined(words), tried = scratch_.file("tune.json");
    words.insert(words.end(), {"--json", tried});
    const ProgramResult ended = start("tune", words, std::min(60 * options_.tune_minutes, limited() ? left() / 2 : 1e9));
    if (const Json found = Json::parse(contents(tried), nullptr, false); found.is_object()) report_["tune"] = found;
    std::error_code error;
    if (fs::exists(to_path(table), error)) {
      report_["tuning"] = Json::parse(contents(table), nullptr, false);
      if (!report_["tuning"].is_object()) report_["tuning"] = nullptr;
      variables_["GLGEMM_TUNING"] = to_text(fs::absolute(to_path(table)));  // what follows goes by it
    }
    ends("tune", shown, ended.status == 0 || ended.late ? "ok" : "failed",
         ended.status == 0 ? ""
         : ended.late      ? "ended when its time was up; run again, it goes on from there"
                           : why(ended),
         ended.seconds);
  }

  void table() {
    std::string sizes = options_.sizes;
    if (sizes.empty()) sizes = options_.quick ? "32,64" : software() ? "128,256,512,1024" : "128,256,512,1024,2048,4096,8192";
    for (const Shape& shape : parse_sizes(sizes, "--size"))  // one after the other: what fails costs one size
      bench("table", "table, N = " + std::to_string(shape.n),
            {"--size", std::to_string(shape.n), "--kernel", limited() ? "auto" : "auto,tiled,naive", "--cpu-seconds",
             options_.quick || limited() ? "0.1" : "5"});
  }

  /// The libraries that are built in and work here.
  Words find_peers() {
    Words names;
    if (options_.peer == "none") return names;
    if (options_.peer != "auto") return parse_peers(options_.peer);
    for (const std::string& name : peer_names()) try {
        const PeerClient peer(parse_peers(name).front(), "");
        names.push_back(name);
      } catch (const std::exception&) {
        // Not built in, or without a device.
      }
    return names;
  }

  void peers() {
    peers_ = find_peers();
    if (peers_.empty()) return left_out("peers", options_.peer == "none" ? "as asked for" : "none is built in and works here");
    for (const char* size : {"512", "1024", "2048"}) {
      bench("peers", std::string("peers, N = ") + (options_.quick ? "64" : size),
            {"--size", options_.quick ? "64" : size, "--kernel", "auto", "--peer", joined(peers_, ","), "--cpu-seconds", "0.1"});
      if (options_.quick) break;
    }
  }

  void narrow() {
    if (options_.quick) return left_out("few columns", "a quick run has them beside the roofline");
    Words words;
    // A GPU's caches hold most of the smaller A.
    for (const char* size : {"4096", "16384"})
      for (const char* n : {",1,", ",2,", ",4,"})
        if (size == std::string("4096") || !software()) words.insert(words.end(), {"--shape", std::string(size) + n + size});
    words.insert(words.end(), {"--shape", "512,4,500000"});
    words.insert(words.end(), {"--kernel", "auto,naive", "--roofline", "--cpu-seconds", "0.1"});
    bench("narrow", "few columns", words);
  }

  const std::vector<std::string>& shapes_of_device() const {
    return options_.shapes.empty() && !options_.quick && !software() ? options_.gpu_shapes : options_.shapes;
  }

  void shapes() {
    if (shapes_of_device().empty()) return left_out("shapes", "no files were given");
    for (const std::string& file : shapes_of_device()) {
      Words words{"--shapes", file, "--kernel", "auto", "--cpu-seconds", "0.1"};
      if (!peers_.empty()) words.insert(words.end(), {"--peer", joined(peers_, ",")});
      bench("shapes", "shapes of " + name_of(file), words);
    }
  }

  /// "4096" or less, for what a device computes in some milliseconds.
  std::string size_for(const char* quick, const char* on_cpu, const char* on_gpu) const {
    return options_.quick ? quick : software() ? on_cpu : on_gpu;
  }

  void types() {
    const std::string size = size_for("32", "512", "4096");
    for (const std::string type : {"f64", "f16", "bf16", "i8"}) {
      if (options_.quick && type != "f16") continue;
      bench("types", "type " + type + ", N = " + size,
            {"--size", size, "--type", type, "--kernel", "auto", "--check", "probe", "--cpu-seconds", "0.1"});
    }
    const std::string sizes = options_.quick ? "4" : "4,16,32,64", count = options_.quick ? "100" : "10000";
    bench("types", "batches of " + count,
          {"--size", sizes, "--batch", count, "--kernel", "auto", "--check", "probe", "--cpu-seconds", "0.1"});
    if (options_.quick) left_out("other types and sizes", "a quick run has f16 and one batch");
  }

  void enqueue() { bench("enqueue", "enqueue", {"--enqueue", "--size", size_for("64", "64,512", "64,4096")}); }

  void first() {
    Words words{"--first", "--size", size_for("64", "128,512", "512")};
    if (options_.quick) words.insert(words.end(), {"--kernel", "naive", "--repeats", "1"});
    if (!options_.device.empty()) words.insert(words.end(), {"--device", options_.device});
    bench("first", "first product", words);
  }

  /// Within an eighth of A, B and C.
  void streamed() {
    std::istringstream sizes(size_for("256", "1024 2048", "8192 16384"));
    for (std::int64_t n = 0; sizes >> n;)
      bench("streamed", "streamed, N = " + std::to_string(n),
            {"--size", std::to_string(n), "--device-memory-limit", std::to_string(3 * 4 * n * n / 8), "--kernel",
             options_.quick ? "naive" : "auto"});
  }

  void cublas() {
    if (options_.cublas.empty()) return left_out("cuBLAS", "no program for it was named");
    if (!has_time("cuBLAS")) return;
    const ProgramResult found = run_program({options_.cublas}, variables_, left(300), scratch_);
    if (found.status == 127) return left_out("cuBLAS", "there is no python3");
    if (found.status != 0)
      return left_out("cuBLAS", found.status == 3
                                    ? "neither PyTorch nor CuPy with a CUDA device is here (" + last_words(found.err) + ")"
                                    : why(found));
    const int rounds = options_.quick || limited() ? 1 : 3;
    report_["cublas"] = {{"library", ""}, {"rounds", rounds}, {"sets", Json::array()}};
    const auto shapes_file = [&](const char* name, const std::vector<int>& sizes) {
      const std::string path = scratch_.file(name);
      std::ofstream out{to_path(path)};
      out << "m,n,k,trans_a,trans_b\n";
      for (const int n : sizes) out << n << ',' << n << ',' << n << ",N,N\n";
      return path;
    };
    compare("squares", shapes_file("squares.csv", options_.quick ? std::vector{64} : std::vector{2048, 4096, 8192}), rounds);
    const auto given = [&] {
      for (const std::string& one : shapes_of_device()) compare(name_of(one), one, rounds);
    };
    if (!limited()) given();
    if (options_.quick) return compare("f64", shapes_file("types.csv", {32}), rounds, "f64");
    const std::string one = shapes_file("types.csv", {4096}), small = shapes_file("batches.csv", {4, 16, 32, 64});
    for (const char* type : {"f64", "f16", "bf16", "i8"}) compare(type, one, rounds, type);
    compare("batches", small, rounds, "f32", 10000);
    if (limited()) given();
  }

  /// glgemm and cuBLAS in turn on the shapes of a file, `rounds` times.
  void compare(const std::string& name, const std::string& file, int rounds, const std::string& type = "f32", int batch = 1) {
    const std::string step = "cuBLAS, " + name;
    const Words words{options_.cublas, file, type, std::to_string(batch)};
    const std::string shown = joined(words);
    const auto begin = Clock::now();
    begins(step);
    std::vector<std::vector<double>> ours, theirs;
    Json results, set{{"name", name}, {"type", type}, {"batch", batch}};
    for (int round = 0; round < rounds; ++round) {
      const Json* const found = bench("", step + ", glgemm",
                                      {"--shapes", file, "--type", type, "--batch", std::to_string(batch), "--kernel", "auto",
                                       "--check", "probe", "--cpu-seconds", "0"},
                                      false);
      if (!found) return;
      results = found->at("results");
      const ProgramResult ended = run_program(words, variables_, left(3600), scratch_);
      if (ended.late && limited()) return left_out(step, time_was_up);
      const Json cublas = Json::parse(ended.out, nullptr, false);
      if (ended.status == 4) return left_out(step, last_words(ended.err));
      if (ended.status != 0 || !cublas.is_object()) return ends(step, shown, "failed", why(ended), ended.seconds);
      if (const std::size_t timed = cublas.at("results").size(); timed != results.size())
        return ends(step, shown, "failed", fmt::format("it timed {} of {} products", timed, results.size()), ended.seconds);
      report_["cublas"]["library"] = cublas.at("library");
      set.update({{"arithmetic", cublas.at("arithmetic")}, {"tensor_cores", cublas.at("tensor_cores")}});
      ours.resize(results.size());
      theirs.resize(results.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        ours[i].push_back(results[i].at("kernel_ms"));
        theirs[i].push_back(cublas.at("results")[i].at("ms"));
      }
    }
    set["results"] = Json::array();
    for (std::size_t i = 0; i < results.size(); ++i) {
      Json x;
      for (const char* field : {"m", "n", "k", "op_a", "op_b", "kernel", "tile"}) x[field] = results[i].at(field);
      const double flops = 2.0 * batch * x.at("m").get<double>() * x.at("n").get<double>() * x.at("k").get<double>();
      const double our_ms = median(ours[i]), their_ms = median(theirs[i]);
      x.update({{"glgemm_ms", our_ms},
                {"cublas_ms", their_ms},
                {"glgemm_gflops", flops / our_ms / 1e6},
                {"cublas_gflops", flops / their_ms / 1e6},
                {"ratio", their_ms / our_ms}});
      set["results"].push_back(std::move(x));
    }
    report_["cublas"]["sets"].push_back(std::move(set));
    ends(step, shown, "ok", "", milliseconds_since(begin) / 1e3);
  }

  const ReportOptions& options_;
  Clock::time_point begin_ = Clock::now();
  ScratchFolder scratch_;
  Variables variables_;
  Json report_;
  Json last_;
  Words peers_;
  bool failed_ = false;
  Progress* progress_ = nullptr;
  double sections_done_ = 0;
};

}  // namespace

int run_report(const ReportOptions& options) {
  return Reporter(options).run();
}

}  // namespace glgemm::tools
