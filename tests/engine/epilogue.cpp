// Activations and biases as values: none of them can lack what it needs.
#include <doctest/doctest.h>

#include <glgemm/gemm.hpp>
#include <glgemm/streaming.hpp>
#include <limits>
#include <stdexcept>
#include <type_traits>

using namespace glgemm;

// An activation is made with its parameters, or not at all.
static_assert(!std::is_constructible_v<Activation, ActivationKind> && !std::is_aggregate_v<Activation>);
static_assert(!std::is_convertible_v<ActivationKind, Activation>);
template <class T>
constexpr bool defaults_parameters = requires {
  T::leaky_relu();
}
|| requires {
  T::sine();
}
|| requires {
  T::clamp();
}
|| requires {
  T::clamp(1.0);
};
static_assert(!defaults_parameters<Activation>);

// A bias is a kind and what holds it, or none.
static_assert(!std::is_aggregate_v<BiasView> && !std::is_constructible_v<BiasView, unsigned> &&
              !std::is_constructible_v<BiasView, Bias> && !std::is_constructible_v<BiasView, Bias, unsigned, std::int64_t>);
static_assert(!std::is_aggregate_v<HostBias> && !std::is_constructible_v<HostBias, HostMatrix> &&
              !std::is_constructible_v<HostBias, Bias> && !std::is_constructible_v<HostBias, Bias, HostMatrix>);

TEST_CASE("activations have the parameters that they were made with") {
  CHECK(Activation() == Epilogue{}.activation);
  CHECK(Activation().kind() == ActivationKind::none);
  CHECK(Activation::leaky_relu(0.25).kind() == ActivationKind::leaky_relu);
  CHECK(Activation::leaky_relu(0.25).low() == 0.25);
  CHECK(Activation::leaky_relu(0.25) != Activation::leaky_relu(0.5));
  CHECK(Activation::sine(30).kind() == ActivationKind::sine);
  CHECK(Activation::sine(30).low() == 30);
  const Activation clamp = Activation::clamp(-1, 6);
  CHECK(clamp.kind() == ActivationKind::clamp);
  CHECK(clamp.low() == -1);
  CHECK(clamp.high() == 6);
  CHECK_NOTHROW(Activation::clamp(2, 2));
  CHECK(Activation::none() == Activation());
  CHECK(Activation::silu().kind() == ActivationKind::silu);
}

TEST_CASE("an activation of a kind takes as many parameters as its row has") {
  const double parameters[] = {-1, 6, 7};
  CHECK(Activation::of(ActivationKind::hard_swish) == Activation::hard_swish());
  CHECK(Activation::of(ActivationKind::leaky_relu, std::span(parameters, 1)) == Activation::leaky_relu(-1));
  CHECK(Activation::of(ActivationKind::clamp, std::span(parameters, 2)) == Activation::clamp(-1, 6));
  for (const ActivationInfo& row : activation_table) {
    CHECK(&info(row.kind) == &row);
    for (std::size_t count = 0; count <= 3; ++count)
      if (count != row.parameter_count)
        CHECK_THROWS_AS(Activation::of(row.kind, std::span(parameters, count)), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(Activation::of(ActivationKind::clamp, std::span(parameters, 1)),
                       "Activation::of: clamp has 2 parameters, and 1 are given", std::invalid_argument);
}

TEST_CASE("a clamp between whose ends no number lies is refused") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(Activation::clamp(2, 1), "Activation::clamp: from 2 to 1 lies no number", std::invalid_argument);
  CHECK_THROWS_WITH_AS(Activation::clamp(0, nan), "Activation::clamp: from 0 to nan lies no number", std::invalid_argument);
  CHECK_THROWS_AS(Activation::clamp(nan, 0), std::invalid_argument);
}

TEST_CASE("a bias knows what it is for and where it lies") {
  CHECK(Epilogue{}.bias.kind() == Bias::none);
  const BiasView rows = BiasView::for_each_row(7, 16), columns = BiasView::for_each_column(7);
  CHECK(rows.kind() == Bias::for_each_row);
  CHECK(rows.buffer() == 7);
  CHECK(rows.offset_bytes() == 16);
  CHECK(columns.kind() == Bias::for_each_column);
  CHECK(columns.offset_bytes() == 0);
  CHECK(columns.type() == Type::f32);
  const BiasView outputs = BiasView::for_each_output(7, 4, Type::f16);
  CHECK(outputs.kind() == Bias::for_each_output);
  CHECK(outputs.type() == Type::f16);
  CHECK(BiasView::of(Bias::for_each_output, 7, 4, Type::f16) == outputs);
  CHECK(BiasView::of(Bias::none, 7) == BiasView());
  CHECK(static_cast<bool>(rows));
  CHECK(!static_cast<bool>(BiasView()));
  CHECK(HostEpilogue{}.bias.kind() == Bias::none);
  const float values[3] = {1, 2, 3};
  const HostBias on_host = HostBias::for_each_column(host_matrix(values, 1, 3, Type::f32));
  CHECK(on_host.kind() == Bias::for_each_column);
  CHECK(on_host.values().columns == 3);
}
