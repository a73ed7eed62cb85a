// OpenGL's state as far as it can be asked for, to be compared before and after a call.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace glgemm::test {

/// The values of each piece of state of the current context, by its name.
using Snapshot = std::map<std::string, std::vector<double>>;

/// Asks for bindings of every kind, with their ranges; the fixed-function state; active queries; the debug group's depth. Makes
/// no error of its own and leaves a pending one pending.
Snapshot take_snapshot();

/// What differs, one line each; empty if nothing does.
std::string difference(const Snapshot& before, const Snapshot& after);

}  // namespace glgemm::test
