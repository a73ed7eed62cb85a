# readme_block LANGUAGE WORD: README's block of that language that has the word.
readme_block() {
  awk -v language="$1" -v word="$2" '/^```/ { if (inside && index(text, word)) printf "%s", text; inside = !inside && $0 == "```" language; text = ""; next }
    inside { text = text $0 "\n" }' "$root/README.md"
}
