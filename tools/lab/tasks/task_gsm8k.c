#include <ctype.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "tools/lab/tasks/extract.h"
#include "tools/lab/tasks/task_internal.h"

/* The prompt that CITER's programs put around a question. Its training file has another wording,
 * which its items bring along. */
static const char before[] =
    "Solve the following math problem step by step. Ensure all reasoning is shown clearly in LaTeX "
    "format, and the final answer should be enclosed using the LaTeX command \\boxed{} to display "
    "it in a box.\nQuestion: ";
static const char after[] = "\nSolution: ";
static const char *const stops[] = { "Question:", "</s>", "<|im_end|>", NULL }; /* the harness's */

/* Remove what the harness ignores when it compares. */
static bool gsm8k_exact(char out[TASK_ANSWER], const char *text, size_t n)
{
    size_t m = 0;
    for (size_t i = 0; i < n && m + 1 < TASK_ANSWER; i++)
        if (!strchr(",$", text[i]))
            out[m++] = text[i];
    m -= m && out[m - 1] == '.';
    out[m] = 0;
    return m > 0;
}

/* The harness's filters: strict-match "#### (\-?[0-9\.\,]+)", the first; else flexible-extract
 * "(-?[$0-9.,]{2,})|(-?[0-9]+)", the last. */
static bool gsm8k_extract(char out[TASK_ANSWER], const char *text)
{
    size_t end = strlen(text), last = 0, len = 0;
    for (size_t i = 0; stops[i]; i++) {
        const char *stop = strstr(text, stops[i]);
        if (stop && (size_t)(stop - text) < end)
            end = (size_t)(stop - text);
    }
    for (const char *p = text; (p = strstr(p, "#### ")) != NULL && p < text + end; p++) {
        size_t sign = p[5] == '-', n = strspn(p + 5 + sign, "0123456789.,");
        if (n)
            return gsm8k_exact(out, p + 5, sign + n);
    }
    for (size_t i = 0; i < end;) {
        size_t sign = text[i] == '-', n = strspn(text + i + sign, "$0123456789.,");
        if (n > 1 || (n == 1 && isdigit((unsigned char)text[i + sign]))) {
            last = i;
            len = n + sign;
            i += len;
        } else {
            i++;
        }
    }
    return len && gsm8k_exact(out, text + last, len);
}

/* Set t->key from answerKey or, without one, from the solution: \boxed{18}, or #### 18 in the
 * authors' files. */
static int gsm8k_key(struct task *t, const char *key, const char *solution, struct err *err)
{
    char found[TASK_ANSWER];
    const char *from = key;
    if (!from && solution)
        from = strstr(solution, "\\boxed{");
    if (!from && solution)
        from = strstr(solution, "#### ");
    t->item.key = t->key;
    if (from && extract_number(t->key, from))
        return OK;
    if (!key)
        return task_bad(t, solution ? "solution" : "answerKey",
                        solution ? "a number in \\boxed{} or after ####" : "a number",
                        solution ? "none" : "nothing", err);
    json_input_line(found, sizeof(found), key, strlen(key));
    return task_bad(t, "answerKey", "a number", found, err);
}

/* Read a text under its name in CITER's or in the authors' files. */
static int gsm8k_field(const char **out, const struct task *t, const char *citer,
                       const char *authors, struct err *err)
{
    int rc = task_field_optional(out, t, citer, err);
    return rc == OK && !*out ? task_field_optional(out, t, authors, err) : rc;
}

static int gsm8k_read(struct task *t, struct err *err)
{
    const char *solution, *key, *own = t->sent;
    int rc = gsm8k_field(&t->asks, t, "problem", "question", err);
    if (rc == OK)
        rc = gsm8k_field(&solution, t, "solution", "answer", err);
    if (rc == OK)
        rc = task_field_optional(&key, t, "answerKey", err);
    if (rc == OK && !t->asks && (!own || t->form == TASK_LM_EVAL || t->own))
        rc = task_bad(t, "problem", own ? "a string, for its own prompt is citer's" : "a string",
                      "nothing", err);
    if (rc != OK)
        return rc;
    t->cot = t->cot ? t->cot : solution;
    t->item.subject = t->asks ? t->asks : own;
    return gsm8k_key(t, key, t->cot, err);
}

static void gsm8k_put(struct task *t)
{
    bool citer = t->form != TASK_LM_EVAL;
    task_put(&t->prompt, citer ? before : "Question: ");
    task_put(&t->prompt, t->asks);
    task_put(&t->prompt, citer ? after : "\nAnswer:");
}

const struct task_kind task_gsm8k = { .name = "gsm8k",
                                      .file = true,
                                      .read = gsm8k_read,
                                      .put = gsm8k_put,
                                      .stops = stops,
                                      .extract = gsm8k_extract };
