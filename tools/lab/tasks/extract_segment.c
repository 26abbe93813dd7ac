#include <string.h>

#include "tools/lab/tasks/extract.h"

/* What a text that runs on to another question has at the beginning of a line, and anywhere. */
static const char *const lines[] = { "Question:", "Question ", "Q:",    "Choices:",
                                     "Problem:",  "Human:",    "User:", "### Quest" };
static const char *const anywhere[] = { "<|im_end|>", "<|im_start|>", "<|endoftext|>", "</s>" };

/* Return how long the mark at p is that ends an answer, or 0. */
static size_t segment_mark(const char *p, bool line)
{
    for (size_t i = 0; i < sizeof(anywhere) / sizeof(anywhere[0]); i++)
        if (!strncmp(p, anywhere[i], strlen(anywhere[i])))
            return strlen(anywhere[i]);
    for (size_t i = 0; line && i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strncmp(p, lines[i], strlen(lines[i])))
            return strlen(lines[i]);
    return 0;
}

const char *extract_segment(size_t *n, const char *text)
{
    bool line = true, blank = true, asked = false;
    const char *thought = strstr(text, "</think>");
    const char *p = text = thought ? thought + strlen("</think>") : text;
    for (size_t mark; *p; p++) {
        mark = segment_mark(p, line);
        if (mark && !blank && !(asked && !strncmp(p, "Choices:", 8)))
            break;
        asked = asked || (mark && blank); /* the text begins with the question that was asked */
        blank = blank && (mark || strchr(" \t\r\n*#", *p));
        p += mark ? mark - 1 : 0;
        line = *p == '\n' || (line && strchr(" \t\r*#", *p));
    }
    *n = (size_t)(p - text);
    return text;
}
