#include <ctype.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "tools/tasks/task_internal.h"

/* The prompt that CITER's programs put around a question. Its training file has another wording,
 * which its items bring along. */
static const char before[] =
    "Solve the following math problem step by step. Ensure all reasoning is shown clearly in LaTeX "
    "format, and the final answer should be enclosed using the LaTeX command \\boxed{} to display "
    "it in a box.\nQuestion: ";
static const char after[] = "\nSolution: ";
static const char *const stops[] = { "Question:", "</s>", "<|im_end|>", NULL }; /* the harness's */

/* Copy text[n] without the bytes of `drop`, cut to TASK_ANSWER. */
static void gsm8k_drop(char out[TASK_ANSWER], const char *text, size_t n, const char *drop)
{
    size_t m = 0;
    for (size_t i = 0; i < n && m + 1 < TASK_ANSWER; i++)
        if (!strchr(drop, text[i]))
            out[m++] = text[i];
    out[m] = 0;
}

/* True when s is an integer or a decimal number, perhaps with a unit or a full stop after it; what
 * follows the number is then cut off, as are zeros at the end of a fraction. */
static bool gsm8k_number(char *s)
{
    size_t sign = *s == '-', whole = strspn(s + sign, "0123456789"), n = sign + whole;
    if (!whole)
        return false;
    if (s[n] == '.' && isdigit((unsigned char)s[n + 1])) {
        size_t end = n + 1 + strspn(s + n + 1, "0123456789");
        n = end;
        while (s[n - 1] == '0')
            n--;
        n -= s[n - 1] == '.';
        memmove(s + n, s + end, strlen(s + end) + 1);
    }
    if (s[n] && s[n] != '%' && !isalpha((unsigned char)s[n]) && strcmp(s + n, ".") != 0)
        return false;
    s[n] = 0;
    return true;
}

/* What does not count in an answer of \boxed{}. */
static const char noise[] = ",$\\! \t\r\n";

/* Return the contents of the first \boxed{} that is closed and not empty, or NULL. A brace is
 * closed if one that closes is left over to its right, so one pass from the end is enough: scanning
 * ahead from each mark would take minutes for a line of nothing but marks. */
static const char *gsm8k_find_boxed(const char *text)
{
    static const char mark[] = "\\boxed{";
    const size_t len = sizeof(mark) - 1;
    const char *found = NULL;
    size_t closing = 0;
    for (size_t i = strlen(text); i-- > 0;) {
        closing += text[i] == '}';
        if (text[i] != '{' || !closing)
            continue;
        closing--;
        const char *inside = text + i + 1;
        if (i + 1 >= len && !memcmp(inside - len, mark, len) &&
            inside[strspn(inside, noise)] != '}')
            found = inside;
    }
    return found;
}

/* Find the first \boxed{} that is not empty; its braces may be nested. */
static bool gsm8k_boxed(char out[TASK_ANSWER], const char *text)
{
    size_t depth = 1, n = 0;
    text = gsm8k_find_boxed(text);
    if (!text)
        return false;
    for (;; n++) {
        depth += text[n] == '{';
        depth -= text[n] == '}';
        if (!depth)
            break;
    }
    gsm8k_drop(out, text, n, noise);
    gsm8k_number(out);
    return true;
}

/* Remove what the harness ignores when it compares. */
static bool gsm8k_exact(char out[TASK_ANSWER], const char *text, size_t n)
{
    gsm8k_drop(out, text, n, ",$");
    n = strlen(out);
    if (n && out[n - 1] == '.')
        out[n - 1] = 0;
    return *out != 0;
}

/* The harness's filters: strict-match "#### (\-?[0-9\.\,]+)", the first; else flexible-extract
 * "(-?[$0-9.,]{2,})|(-?[0-9]+)", the last. */
static bool gsm8k_lm_eval(char out[TASK_ANSWER], const char *text)
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

static bool gsm8k_extract(char out[TASK_ANSWER], const struct task *t, const char *text)
{
    return t->form == TASK_LM_EVAL ? gsm8k_lm_eval(out, text) : gsm8k_boxed(out, text);
}

/* Set t->key from answerKey or, without one, from the solution: \boxed{18}, or #### 18 in the
 * authors' files. */
static int gsm8k_key(struct task *t, const char *key, const char *solution, struct err *err)
{
    char found[TASK_ANSWER];
    const char *mark = solution ? strstr(solution, "#### ") : NULL;
    t->item.key = t->key;
    t->key[0] = 0;
    if (key)
        gsm8k_drop(t->key, key, strlen(key), ",$ ");
    else if (solution && !gsm8k_boxed(t->key, solution) && mark)
        gsm8k_drop(t->key, mark + 5, strlen(mark + 5), ",$ \r\n");
    if (gsm8k_number(t->key))
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

static int gsm8k_read(struct task *t, size_t i, struct err *err)
{
    const char *problem, *solution, *cot, *key, *own;
    (void)i;
    int rc = gsm8k_field(&problem, t, "problem", "question", err);
    if (rc == OK)
        rc = gsm8k_field(&solution, t, "solution", "answer", err);
    if (rc == OK)
        rc = task_field_optional(&cot, t, "cot", err);
    if (rc == OK)
        rc = task_field_optional(&key, t, "answerKey", err);
    if (rc == OK)
        rc = task_field_optional(&own, t, "prompt", err);
    if (rc == OK && !problem && (!own || t->form == TASK_LM_EVAL || t->own))
        rc = task_bad(t, "problem", own ? "a string, for its own prompt is citer's" : "a string",
                      "nothing", err);
    if (rc == OK)
        rc = gsm8k_key(t, key, cot ? cot : solution, err);
    if (rc != OK)
        return rc;
    t->item.gold = task_put_gold(t, cot ? cot : solution);
    if (t->form != TASK_LM_EVAL && own) {
        t->item.prompt = own;
    } else {
        bool citer = t->form != TASK_LM_EVAL;
        task_put(&t->prompt, citer ? before : "Question: ");
        task_put(&t->prompt, problem);
        task_put(&t->prompt, citer ? after : "\nAnswer:");
        t->item.prompt = t->prompt.p;
    }
    t->asks = problem;
    t->item.subject = problem ? problem : own;
    return OK;
}

const struct task_kind task_gsm8k = {
    .name = "gsm8k", .file = true, .read = gsm8k_read, .stops = stops, .extract = gsm8k_extract
};
