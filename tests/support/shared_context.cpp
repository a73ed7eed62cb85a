// Makes the shared context before the first test. Made within a test, it would take the place of the context that this test has
// made current: whether that happens would depend on the order of the tests.
#include <doctest/doctest.h>

#include "support/context.hpp"

namespace {

struct MakeFirst : doctest::IReporter {
  explicit MakeFirst(const doctest::ContextOptions&) {}
  void test_run_start() override { glgemm::test::context(); }
  void report_query(const doctest::QueryData&) override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("shared_context", 1, MakeFirst);

}  // namespace
