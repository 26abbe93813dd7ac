/* fuzz_text.h - what the fuzz programs of tokenizers share. */
#ifndef TESTS_FUZZ_FUZZ_TEXT_H
#define TESTS_FUZZ_FUZZ_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Open the tokenizer of a folder; if it opens, encode a text, decode it, and look at every piece.
 */
void fuzz_text_open(const char *path);
/* Write a vocab.json of all bytes with `end` instead of its brace; return its length. */
size_t fuzz_text_vocab(uint8_t *out, size_t room, const char *end);

#endif
