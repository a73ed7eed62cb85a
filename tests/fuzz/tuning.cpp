// Tuning tables: whatever the text, the entries that are read are valid. A table that is written and read again is the same.
#include <cmath>
#include <glgemm/engine.hpp>
#include <glgemm/error.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/tuning.hpp>

#include "fuzz/target.hpp"
#include "kernels/kernels.hpp"

using namespace glgemm;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> notes;
  TuningTable table = TuningTable::parse(fuzz::text(data, size), notes);
  for (const TuningEntry& entry : table.entries()) {
    const TunedChoice& choice = entry.choice;
    validate(choice.problem);
    fuzz::require(kernels::family(choice.kernel).malformed(choice.kernel).empty(), "an entry with a malformed kernel");
    fuzz::require(choice.split_k >= 0 && choice.split_k <= choice.problem.k, "an entry with a wrong split");
    fuzz::require(choice.gflops >= 0 && choice.gflops < HUGE_VAL, "an entry with wrong GFLOP/s");
    fuzz::require(!entry.device.empty() && !entry.driver.empty() && entry.date.size() == 10, "an entry without its device");
    const std::vector<TunedChoice> choices = table.choices_for({"", entry.device, entry.driver, true});
    for (const TunedChoice* const near : nearby(choices, choice.problem))
      fuzz::require(near->problem.k / 2 <= choice.problem.k && choice.problem.k / 2 <= near->problem.k, "a far one is nearby");
    for (const TunedChoice& found : choices) {
      try {
        make_plan(found.problem, Limits{.image_buffer_bytes = 1 << 27},
                  {.experimental = ExperimentalPlanOptions{.tuning = {found}}});
      } catch (const Unsupported&) {
      }
    }
  }
  const std::string text = table.to_json();
  notes.clear();
  TuningTable again = TuningTable::parse(text, notes);
  fuzz::require(notes.empty(), "a table that is written is not read: " + (notes.empty() ? "" : notes.front()));
  fuzz::require(again.to_json() == text, "a table that is written and read again differs");
  for (const TuningEntry& entry : table.entries()) again.add(entry);
  fuzz::require(again.entries().size() == table.entries().size(), "a table that gets its own entries again grows");
  return 0;
}
