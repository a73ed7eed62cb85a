// The verbs of the glgemm tool. Each add_ function adds one subcommand; running it sets `status`: 0, or 1 if a check failed.
//
// A verb reports bad input by an exception whose message is one sentence; main() prints it after the verb's name and exits
// with 2.
#pragma once

namespace CLI {
class App;
}

namespace glgemm::tools {

void add_bench(CLI::App& app, int& status);
void add_devices(CLI::App& app, int& status);
void add_inspect(CLI::App& app, int& status);
void add_multiply(CLI::App& app, int& status);
void add_transpose(CLI::App& app, int& status);
/// `tune`, and the hidden `tune-worker`.
void add_tune(CLI::App& app, int& status);
void add_verify(CLI::App& app, int& status);

}  // namespace glgemm::tools
