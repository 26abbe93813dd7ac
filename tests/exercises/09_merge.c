/* 09_merge.c - exercise 9: byte pair encoding, the merges of one word.
 *
 * Source    Sennrich, Haddow and Birch, Neural Machine Translation of Rare Words with Subword
 *           Units (arXiv 1508.07909), section 3.2; on bytes as in GPT-2.
 * Formula   As long as two neighbours merge: replace the pair of the lowest rank, the leftmost of
 *           equals, by t->merges[rank].merged. tokenizer_rank(t, left, right, &rank) is false if
 *           the two do not merge. ids[n] has one id for each byte; return how many are left in it.
 * Measure   The time of a word of 10 bytes and of one of 1,000 (a line of base64, for instance).
 *           The plain way takes n steps for each of n merges: what does a heap change, and for
 *           whom?
 * Solution  encode_word in model/text/tokenizer_encode.c. */
#include "tests/exercises/exercise.h"

static size_t merge_word(const struct tokenizer *t, uint32_t *ids, size_t n)
{
    UNWRITTEN();
}

const struct exercise exercise = { .merge = merge_word };
