/* demo_questions.h - the questions about the demo world that come with its models, in the file
 * questions.jsonl beside them: {"prompt":"Question: ...","answer":" ..."}, one in a line. */
#ifndef TOOLS_CLI_DEMO_QUESTIONS_H
#define TOOLS_CLI_DEMO_QUESTIONS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define DEMO_QUESTIONS "questions.jsonl"
enum { DEMO_QUESTIONS_COUNT = 1000 };

/* Read the first n of them, at most DEMO_QUESTIONS_COUNT, into an array of such objects, which is
 * the caller's to release; NULL after an error. ERR_IO: no file; ERR_FORMAT names file, line and
 * what was expected; ERR_NOMEM. */
int demo_questions_read(json_t **out, size_t n, struct err *err);
/* Read question n, in the order of the file for seed 1, drawn from it for any other; it is the
 * caller's to release. ERR_ARG: n is DEMO_QUESTIONS_COUNT or more; other errors as above. */
int demo_question(json_t **out, size_t n, uint64_t seed, struct err *err);
/* Return the value of this key; lives as long as the question. */
const char *demo_question_text(const json_t *question, const char *key);

#endif
