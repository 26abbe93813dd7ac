/* t_task_bad.c - every kind of file that a task refuses, with the line and the field that the
 * message names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/sys/base.h"
#include "tests/tools/eval/task_help.h"

static const char *path;

#define CHOICES "[{\"label\":\"A\",\"text\":\"x\"},{\"label\":\"B\",\"text\":\"y\"}]"
#define CHOICES3(a, b, c)                                                                        \
    "[{\"label\":\"" a "\",\"text\":\"x\"},{\"label\":\"" b "\",\"text\":\"y\"},{\"label\":\"" c \
    "\",\"text\":\"z\"}]"
#define STEM(stem, choices)    "{\"stem\":" stem ",\"choices\":" choices "}"
#define AUTHORS(question, key) "{\"id\":\"1\",\"question\":" question ",\"answerKey\":" key "}"
#define CITER(label, text) \
    "{\"question\":\"q\",\"choices\":{\"label\":" label ",\"text\":" text "},\"answerKey\":\"A\"}"
#define GOOD        AUTHORS(STEM("\"q\"", CHOICES), "\"A\"")
#define WITH(field) "{\"question\":" STEM("\"q\"", CHOICES) ",\"answerKey\":\"A\"," field "}"

static const struct {
    const char *task;
    const char *text;
    const char *message;
} bad[] = {
    /* Lines. */
    { "csqa", "", "line 1: expected a JSON object, found an empty file" },
    { "csqa", "\n", "line 1: the line: expected a JSON object, found an empty" },
    { "csqa", GOOD "\n\n" GOOD, "line 2: the line: expected a JSON object" },
    { "csqa", GOOD "\n{\"id\":", "line 2: the line: expected JSON, found at" },
    { "csqa", GOOD " " GOOD "\n", "line 1: the line: expected JSON, found at" },
    { "csqa", "[" GOOD "]\n",
      "line 1: the line: expected a JSON object, as each item has a line of its own, found an" },
    { "csqa", "[\n{}\n]\n", "line 1: the line: expected a JSON object, as each" },
    { "csqa", "3\n", "line 1: the line: expected a JSON object, found a number" },
    { "csqa", "{\"id\":\"1\",\"id\":\"2\"}", "duplicate object key" },
    { "csqa", "{\"id\":NaN}", "line 1: the line: expected JSON" },
    { "csqa", "{\"id\":1e999}", "line 1: the line: expected JSON" },
    { "csqa", GOOD "\n\xff", "line 2: the line: expected UTF-8" },
    { "csqa",
      "\xef\xbb\xbf"
      "3",
      "expected a JSON object, found a number" },
    { "csqa", WITH("\"id\":\"\\ud800\""), "line 1: the line: expected JSON" },
    { "gsm8k", "{}", "line 1: problem: expected a string, found nothing" },
    /* Questions with choices. */
    { "csqa", "{\"answerKey\":\"A\"}", "question: expected a string, found not" },
    { "csqa", AUTHORS("7", "\"A\""), "question: expected a string, found a num" },
    { "csqa", AUTHORS(STEM("\" \"", CHOICES), "\"A\""),
      "question.stem: expected a text, found an empty one" },
    { "csqa", AUTHORS(STEM("\"a\\u0000b\"", CHOICES), "\"A\""),
      "question.stem: expected a text, found a byte 0" },
    { "csqa", AUTHORS("{\"stem\":\"q\"}", "\"A\""),
      "question.choices: expected a list, found nothing" },
    { "csqa", AUTHORS(STEM("\"q\"", "[]"), "\"A\""),
      "question.choices: expected 2 to 26 choices, found 0" },
    { "csqa", AUTHORS(STEM("\"q\"", "[1,2]"), "\"A\""),
      "question.choices[0].label: expected a string, found nothing" },
    { "arc", GOOD, "question.choices: expected 3 to 5 choices, found 2" },
    { "arc",
      CITER("[\"A\",\"B\",\"C\",\"D\",\"E\",\"F\"]", "[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]"),
      "choices: expected 3 to 5 choices, found 6" },
    { "csqa", CITER("[\"A\",\"B\"]", "[\"x\"]"),
      "choices: expected as many texts as labels, 2, found 1" },
    { "csqa", CITER("[\"A\",\"B\"]", "3"),
      "choices: expected lists label and text, found a number" },
    { "csqa", CITER("[\"A\",\"B\"]", "[\"x\",\"\"]"),
      "choices.text[1]: expected a text, found an empty one" },
    { "csqa", CITER("[\"A\",\"B\"]", "[\"x\",null]"),
      "choices.text[1]: expected a string, found null" },
    { "csqa", CITER("[\"A\",\"AB\"]", "[\"x\",\"y\"]"),
      "choices.label[1]: expected one letter or digit, found AB" },
    { "csqa", CITER("[\"A\",\"a\"]", "[\"x\",\"y\"]"),
      "choices.label[1]: expected a label of its own, found a" },
    { "arc", AUTHORS(STEM("\"q\"", CHOICES3("1", "2", "1")), "\"1\""),
      "question.choices[2].label: expected a label of its own, found 1" },
    { "csqa", AUTHORS(STEM("\"q\"", CHOICES), "\"E\""), "answerKey: expected one of A B, found E" },
    { "csqa", AUTHORS(STEM("\"q\"", CHOICES), "1"),
      "answerKey: expected a string, found a number" },
    { "csqa", "{\"question\":" STEM("\"q\"", CHOICES) "}",
      "answerKey: expected a string, found nothing" },
    { "csqa", WITH("\"id\":7"), "id: expected a string, found a number" },
    { "csqa", WITH("\"group\":7"), "group: expected a string, found a number" },
    { "csqa", WITH("\"cot\":[]"), "cot: expected a string, found a list" },
    { "csqa", WITH("\"prompt\":\"\""), "prompt: expected a text, found an empt" },
    { "csqa",
      "{\"question\":\"q\",\"question_concept\":{},\"choices\":" CHOICES ",\"answerKey\":\"A\"}",
      "question_concept: expected a string, found an object" },
    /* gsm8k */
    { "gsm8k", "{\"problem\":\"p\"}", "answerKey: expected a number, found noth" },
    { "gsm8k", "{\"problem\":\"p\",\"solution\":\"\\\\boxed{x}\"}",
      "solution: expected a number in \\boxed{} or after ####, found none" },
    { "gsm8k", "{\"problem\":\"p\",\"answerKey\":\"half\"}",
      "answerKey: expected a number, found half" },
    { "gsm8k", "{\"problem\":true,\"answerKey\":\"1\"}",
      "problem: expected a string, found a boolean" },
};

static void refuses(const char *name, const char *file, int code, const char *message)
{
    refused(&(struct task_options){ .name = name, .data = file }, code, message);
    if (file)
        refused(&(struct task_options){ .name = name, .data = file }, code, file);
}

/* A line of TASK_LINE bytes is read, a longer one is not. */
static void long_lines(void)
{
    static char text[TASK_LINE + 64];
    static const char head[] = "{\"problem\":\"", tail[] = "\",\"answerKey\":\"7\"}\n";
    const struct task_options o = { .name = "gsm8k", .data = path };
    struct task *t;
    struct err err = { "" };
    memset(text, 'x', sizeof(text));
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + TASK_LINE - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
    spill(path, text, TASK_LINE);
    CHECK(task_open(&t, &o, &err) == OK && task_size(t) == 1);
    task_close(t);
    memset(text, 'x', sizeof(text));
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + TASK_LINE + 1 - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
    spill(path, text, TASK_LINE + 1);
    refuses("gsm8k", path, ERR_FORMAT,
            "line 1: the line: expected at most 1048576 bytes, found 1048577");
}

int main(void)
{
    path = in_scratch("items.jsonl");
    CHECK(sizeof(bad) / sizeof(bad[0]) >= 38);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        spill(path, bad[i].text, strlen(bad[i].text));
        refuses(bad[i].task, path, ERR_FORMAT, bad[i].message);
    }
    spill(path, GOOD "\0\n", sizeof(GOOD) + 1);
    refuses("csqa", path, ERR_FORMAT, "line 1: the line: expected JSON, found a byte 0");
    write_file(path, GOOD); /* what all of them are variations of */
    struct task *t;
    struct err err = { "" };
    CHECK(task_open(&t, &(struct task_options){ .name = "csqa", .data = path }, &err) == OK);
    task_close(t);
    long_lines();
    unlink(path);
    refuses("csqa", path, ERR_IO, strerror(ENOENT));
    refuses("csqa", "build", ERR_IO, strerror(EISDIR));
    refuses("csqa", NULL, ERR_ARG, "csqa: expected --data FILE");
    refuses("milli", path, ERR_ARG, "milli: expected no --data");
    refuses("mmlu", "", ERR_ARG, "found mmlu");
    return 0;
}
