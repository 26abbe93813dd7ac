/* prefix_key.h - a prefix of token ids as 128 bits, under which its answer is kept.
 *
 * SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012; the reference's variant for
 * 128 bits), keyed by a fingerprint of the model's name and the tokenizer: an answer of another
 * model or tokenizer is under another key and never found. With 2^32 answers kept, two prefixes
 * share a key with a probability of 2^-65. Values are the same on every machine. */
#ifndef NET_ANSWERS_PREFIX_KEY_H
#define NET_ANSWERS_PREFIX_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key {
    uint64_t lo, hi;
};

enum { KEY_TEXT = 33 }; /* 32 hexadecimal digits and a 0 */

/* The fingerprint. model: its name at the server, or the server's URL where it names none. */
struct key key_print(const char *model, uint64_t tokenizer);
/* Of ids[n] under a fingerprint. n may be 0. */
struct key key_prefix(const struct key *print, const uint32_t *ids, size_t n);

/* A number for a hash table of keys that come from a file: with a seed that its author cannot know,
 * keys cannot be chosen so that they collide. */
struct key key_seed(void);
uint64_t key_mix(const struct key *seed, const struct key *k);

bool key_same(const struct key *a, const struct key *b);
void key_text(char out[KEY_TEXT], const struct key *k);
/* False unless text[n] is 32 digits as key_text writes them. */
bool key_parse(struct key *out, const char *text, size_t n);

#endif
