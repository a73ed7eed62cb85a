// {fmt} itself: what <fmt/core.h> only declares, compiled once for each of our libraries that uses it.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
// Templates of which the headers promise an instance.
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
}  // namespace detail
FMT_END_NAMESPACE
