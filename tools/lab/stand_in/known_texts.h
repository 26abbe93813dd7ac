/* known_texts.h - answers of the stand-in that are read from a file instead of computed.
 *
 * Each line of the file is a JSON object with "prompt" and "cot" (or "text"). A prefix whose text
 * begins with a prompt is continued with a blank, the cot and end-of-text. Prefixes are matched as
 * text, not as ids, because a client may have cut it into other tokens. As in the tokenizer, text
 * is in NFC. */
#ifndef TOOLS_LAB_STAND_IN_KNOWN_TEXTS_H
#define TOOLS_LAB_STAND_IN_KNOWN_TEXTS_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct known_texts; /* immutable: threads may share it */
struct tokenizer;

/* Read the file. ERR_IO if it cannot be read. ERR_FORMAT, with the number of the line: not JSON, a
 * field is missing or empty, or a prompt that an earlier line continues with another text; also for
 * a file without texts or of more than 256 MiB, and a tokenizer without end-of-text. ERR_NOMEM. The
 * tokenizer is borrowed. */
int known_texts_open(struct known_texts **out, const char *path, const struct tokenizer *t,
                     struct err *err);
void known_texts_close(struct known_texts *k); /* NULL is fine */

/* Set *next to the token after the prefix ids[n], which depends on the text of the prefix alone.
 * The longest prompt with which it begins counts. The text is cut as the tokenizer cuts it; where
 * the prefix ends inside a token of that, its rest is encoded anew. Takes time proportional to n,
 * however many texts there are. ERR_TEXT, without a message: the prefix begins with no prompt, or
 * leaves the text of its prompt; ERR_NOMEM. */
int known_texts_next(uint32_t *next, const struct known_texts *k, const uint32_t *ids, size_t n);

#endif
