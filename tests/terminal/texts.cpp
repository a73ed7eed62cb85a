// Texts for people: what comes from outside cannot control a terminal; amounts and times.
#include "terminal/texts.hpp"

#include <doctest/doctest.h>

using namespace glgemm::tools;
using namespace std::string_literals;

TEST_CASE("texts: what is printable stays") {
  for (const char* text :
       {"", "A.npy", "a b'c\\n~", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8d", "\xc2\xa0\xed\x9f\xbf\xee\x80\x80"}) {
    CAPTURE(std::string(text));
    CHECK(visible(text) == text);
    CHECK(quote(text) == "'" + std::string(text) + "'");
  }
}

TEST_CASE("texts: what controls a terminal, ends a line or is no UTF-8 becomes visible") {
  CHECK(quote("\x1b]0;title\a.csv") == "'\\x1b]0;title\\x07.csv'");
  CHECK(visible("a\nb\tc\rd\0e\x7f"s) == "a\\nb\\tc\\rd\\x00e\\x7f");
  CHECK(visible("\x1b a\nb", "\n") == "\\x1b a\nb");
  CHECK(visible("\xc2\x9b"
                "31m") == "\\xc2\\x9b31m");  // a control character of Latin-1
  CHECK(visible("\xe2\x80\xae"
                "ypn.A") == "\\xe2\\x80\\xaeypn.A");                               // writes backwards
  CHECK(visible("\xe2\x80\xa8\xe2\x81\xa6") == "\\xe2\\x80\\xa8\\xe2\\x81\\xa6");  // ends a line; isolates
  CHECK(visible("\xff\x80"
                "a\xc3") == "\\xff\\x80a\\xc3");                                            // no UTF-8, and cut off
  CHECK(visible("\xc0\x8a\xe0\x80\x8a") == "\\xc0\\x8a\\xe0\\x80\\x8a");                    // a line break, written too long
  CHECK(visible("\xed\xa0\x80\xf4\x90\x80\x80") == "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");  // a surrogate; beyond Unicode
}

TEST_CASE("texts: amounts and times") {
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(999) == "999 bytes");
  CHECK(bytes_text(1234) == "1.23 kB");
  CHECK(bytes_text(12345) == "12.3 kB");
  CHECK(bytes_text(999600) == "1.00 MB");
  CHECK(bytes_text(123456789) == "123 MB");
  CHECK(bytes_text(20e12) == "20.0 TB");
  CHECK(bytes_text(4e20) == "400 EB");
  CHECK(bytes_text(4e25) == "4e+07 EB");
  CHECK(percent(0.126) == "13 %");
  CHECK(duration_text(44.2) == "45 s");
  CHECK(duration_text(725) == "12 min 5 s");
  CHECK(duration_text(12000) == "3 h 20 min");
  CHECK(time_text(std::chrono::milliseconds(123)) == "123 ms");
  CHECK(time_text(std::chrono::microseconds(12345678)) == "12.35 s");
  CHECK(time_text(std::chrono::seconds(725)) == "12 min 5 s");
  CHECK(today().size() == 10);
}
