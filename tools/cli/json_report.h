/* json_report.h - builds JSON, reports for stdout and replies to clients. Lack of memory is noticed
 * once, at the end: what cannot be added whole makes the object or list NULL, so does whatever
 * contains it, and a report that is NULL is not printed. */
#ifndef TOOLS_CLI_JSON_REPORT_H
#define TOOLS_CLI_JSON_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct buf;
struct err;

/* Add a value, which is taken over. If it is NULL, or there is no memory, *object (or *list) is
 * released and becomes NULL, and stays so. */
void json_report_set(json_t **object, const char *key, json_t *value);
void json_report_add(json_t **list, json_t *value);

/* Return a number; null if it is not finite, which JSON cannot express. NULL: out of memory. */
json_t *json_report_real(double v);

/* Return p[n] as a string, with U+FFFD for what is no UTF-8, or a list of ids. NULL: out of memory.
 */
json_t *json_report_text(const char *p, size_t n);
json_t *json_report_ids(const uint32_t *ids, size_t n);

/* Append the JSON as text, with jansson's flags, and release it. False: it is NULL, or there is no
 * memory. */
bool json_report_append(struct buf *out, json_t *json, size_t flags);
/* Write the JSON as json_dumpf does, but with what could steer a terminal (text_harmless) as
 * \uXXXX. Not 0: it is not whole. */
int json_report_dump(const json_t *json, FILE *to, size_t flags);
/* Print root so, with jansson's flags, between two texts as one line, and release it. ERR_NOMEM,
 * which names what is reported: root is NULL, or its text cannot be made; then nothing is printed.
 */
int json_report_print(const char *what, json_t *root, size_t flags, const char *before,
                      const char *after, struct err *err);

/* Return a malloc'ed copy of s[n], at most 400 bytes of it, with bytes that could harm a terminal
 * written as \xNN; NULL if there is no memory. */
char *escaped_text(const char *s, size_t n);
/* Print text from a file on stdout, escaped. */
void escaped_put(const char *s, size_t n);
/* Return a JSON string; text that is not UTF-8 is escaped first. NULL: out of memory. */
json_t *escaped_json(const char *s, size_t n);

#endif
