// What an engine learns of a program's speed from the slices that it has run.
#include <doctest/doctest.h>

#include "engine/pace.hpp"

using namespace glgemm;

TEST_CASE("pace: a rate is learnt from the slices that tell it") {
  Rate rate;
  CHECK_FALSE(rate.known());
  CHECK(rate.work(1, 1000) <= 1000);
  rate.learn(100, 1, 2);
  CHECK(rate.per_second == 100);
  CHECK(rate.proven == 100);

  rate.learn(1, 0.5, 1);  // too small to keep the device busy, and done in time: it says nothing
  CHECK(rate.per_second == 100);
  rate.learn(50, 2, 1);  // too long
  CHECK(rate.per_second == 25);
  CHECK(rate.proven == 100);
  rate.learn(200, 0.1, 1);  // 2000 a second; one measurement raises it by no more than a factor
  CHECK(rate.per_second == Rate::growth * 25);
  CHECK(rate.proven == 200);
}

TEST_CASE("pace: a slice grows with what was proven, up to its time") {
  Rate rate;
  rate.learn(10, 0.01, 1);
  CHECK(rate.per_second == doctest::Approx(1000));
  CHECK(rate.work(1, 0) == Rate::growth * 10);
  CHECK(rate.work(0.02, 0) == doctest::Approx(20));
}
